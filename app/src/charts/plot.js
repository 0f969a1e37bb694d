// The only JavaScript of ours: it starts the program and binds it to Plotly. Figures are JSON whose colours are style sheet tokens.

/* What the program is made of, the page's HTML says. The page is painted first: over a slow line the program would take most
   of what the style sheets need. A page that nobody sees is not painted: it waits no longer than 400 ms. */
const part = (kind) => [...document.querySelectorAll(`meta[name="program-${kind}"]`)].map((meta) => meta.content);
const ahead = (rel, href, more) => document.head.append(Object.assign(document.createElement("link"), { rel, href, ...more }));
let started = false;
function start() {
  if (started) return;
  started = true;
  for (const href of part("part")) ahead("preload", href, { as: "fetch", type: "application/wasm", crossOrigin: "anonymous" });
  for (const href of part("module")) ahead("modulepreload", href);
  import(part("start")[0]).then((program) => program.default());
}
new PerformanceObserver(start).observe({ type: "paint", buffered: true });
setTimeout(start, 400);

/* The library is large: it is fetched and run when the page has nothing else to do. */
const idle = () => new Promise((done) => window.requestIdleCallback ? requestIdleCallback(done, { timeout: 2000 }) : setTimeout(done, 200));
let bundle;
const load = () => bundle ??= idle().then(() => new Promise((done, fail) => {
  const failed = () => { bundle = undefined; script.remove(); fail(new Error("the chart library did not load")); };
  const script = Object.assign(document.createElement("script"), { src: "/plotly.min.js", onload: done, onerror: failed });
  document.head.append(script);
}));

const probe = Object.assign(document.createElement("span"), { hidden: true });
/** What a token is now: `--x`, `--x@18` (18 % over nothing) or `--x/44` (44 % over the page); `--words` is the font. */
function resolve(token) {
  if (token === "--words") return getComputedStyle(document.body).fontFamily;
  const [, name, over, share] = /^(--[\w-]+?)(?:([@/])(\d+))?$/.exec(token) ?? [];
  if (!name) return token;
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = over ? `color-mix(in srgb, var(${name}) ${share}%, ${over === "@" ? "transparent" : "var(--page)"})` : `var(${name})`;
  return getComputedStyle(probe).color;
}
const known = new Map(); // What tokens are, until the theme changes: asking the style sheet costs a layout.
const colour = (token) => known.get(token) ?? known.set(token, resolve(token)).get(token);
const parse = (json) => JSON.parse(json, (_, value) => typeof value === "string" && value.startsWith("--") ? colour(value) : value);
const drawn = new Map(); // element → { json, zoom, group, tell }
const tell = (plot, what, text) => drawn.get(plot)?.tell(what, text);
const settings = () => ({
  displaylogo: false, displayModeBar: "hover", doubleClick: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtons: [["toImage", { name: "svg", title: "Download as SVG", icon: Plotly.Icons.disk, click: (plot) => Plotly.downloadImage(plot, { format: "svg", filename: "benchtrail" }) }, { name: "reset", title: "All", icon: Plotly.Icons.home, click: (plot) => tell(plot, "zoom", "") }]],
});

/* The charts of a group have one cross-hair. Their zoom is the page's: it is told, and comes back with the next drawing. */
let busy = false;
function others(plot, what) {
  const group = drawn.get(plot)?.group;
  if (busy || !group) return;
  busy = true;
  for (const [peer, chart] of drawn) if (peer !== plot && peer.data && chart.group === group) try { what(peer); } catch { /* a peer with another axis */ }
  busy = false;
}
function listen(plot) {
  plot.on("plotly_hover", (event) => others(plot, (peer) => Plotly.Fx.hover(peer, { xval: event.points[0].x })));
  plot.on("plotly_unhover", () => others(plot, (peer) => Plotly.Fx.unhover(peer)));
  plot.on("plotly_doubleclick", () => tell(plot, "zoom", ""));
  plot.on("plotly_click", ({ event, points }) => { // Of the points at the pointer, all lines' under a shared hover, the nearest.
    const away = ({ y, yaxis }) => Math.abs(plot.getBoundingClientRect().top + yaxis._offset + yaxis.d2p(y) - event.clientY);
    const [named] = points.filter((point) => point.customdata ?? point.data.meta).sort((a, b) => away(a) - away(b));
    if (named) tell(plot, "pick", String(named.customdata ?? `${named.data.meta} ${named.x}`));
  });
  plot.on("plotly_relayout", (change) => {
    if (change["xaxis.range[0]"] === undefined && change["yaxis.range[0]"] === undefined) return;
    const { xaxis, yaxis } = plot.layout;
    tell(plot, "zoom", [...xaxis.range, ...(yaxis.fixedrange ? [] : yaxis.range)].map((end) => +Number(end).toPrecision(6)).join());
  });
}
const widths = new ResizeObserver((entries) => { for (const { target } of entries) if (target.data && target.clientWidth) Plotly.Plots.resize(target); });
const redraw = () => { known.clear(); for (const [plot, { json, zoom, group, tell }] of drawn) draw(plot, json, zoom, group, tell); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
/* One chart a task, so that a page full of them leaves the main thread free in between. */
let last = Promise.resolve();
const turn = () => last = last.then(() => new Promise((next) => setTimeout(next)));

/** Draws a figure, or redraws it: `zoom` is "x0,x1" or "x0,x1,y0,y1", or empty for all there is. */
export async function draw(plot, json, zoom, group, tell) {
  const chart = Object.assign(drawn.get(plot) ?? {}, { json, zoom, group, tell });
  drawn.set(plot, chart);
  await load().then(turn);
  if (!plot.isConnected || chart.json !== json || chart.zoom !== zoom) return;
  const fresh = !plot.data, { traces, layout } = parse(json);
  const ends = zoom ? zoom.split(",").map(Number) : [];
  if (ends.length) layout.xaxis.range = ends.slice(0, 2);
  if (ends.length === 4) layout.yaxis.range = ends.slice(2);
  await Plotly.react(plot, traces, layout, settings());
  if (fresh && plot.isConnected) { widths.observe(plot); listen(plot); }
}

/** Forgets a chart. */
export function purge(plot) {
  drawn.delete(plot);
  widths.unobserve(plot);
  if (plot.data) Plotly.purge(plot);
}
