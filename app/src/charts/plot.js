// The binding to Plotly, the only JavaScript of ours. Figures come as JSON whose colours are tokens of the style sheet.

let bundle;
const load = () => bundle ??= new Promise((done, fail) => {
  const script = document.createElement("script");
  script.src = "/plotly.min.js";
  script.onload = done;
  script.onerror = () => { bundle = undefined; script.remove(); fail(new Error("the chart library did not load")); };
  document.head.append(script);
});

const probe = document.createElement("span");
probe.hidden = true;

/** What a token is now: `--x`, `--x@18` (18 % over nothing) or `--x/44` (44 % over the page); `--words` is the font. */
function resolve(token) {
  if (token === "--words") return getComputedStyle(document.body).fontFamily;
  const [, name, over, share] = /^(--[\w-]+?)(?:([@/])(\d+))?$/.exec(token) ?? [];
  if (!name) return token;
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = over ? `color-mix(in srgb, var(${name}) ${share}%, ${over === "@" ? "transparent" : "var(--page)"})` : `var(${name})`;
  return getComputedStyle(probe).color;
}

const parse = (json) => {
  const known = new Map();
  const colour = (token) => known.get(token) ?? known.set(token, resolve(token)).get(token);
  return JSON.parse(json, (_, value) => typeof value === "string" && value.startsWith("--") ? colour(value) : value);
};

const drawn = new Map(); // element → { json, group, own: the ranges of its figure, zoom: the reader's x range }
const groupOf = (plot) => [...drawn.keys()].filter((other) => other === plot || (other.data && drawn.get(plot).group && drawn.get(other).group === drawn.get(plot).group));

/** Back to all there is, in every chart of the group. */
const reset = (plot) => act(plot, groupOf(plot), (peer) => {
  const chart = drawn.get(peer);
  chart.zoom = undefined;
  Plotly.relayout(peer, { "xaxis.range": chart.own.x, "yaxis.range": chart.own.y });
});

const settings = () => ({
  displaylogo: false, displayModeBar: "hover", doubleClick: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtons: [["toImage", { name: "reset", title: "All", icon: Plotly.Icons.home, click: reset }]],
});

/* The charts of a group have one cross-hair and one zoom. */
let busy = false;
function act(plot, charts, what) {
  if (busy) return;
  busy = true;
  for (const chart of charts) try { what(chart); } catch { /* a peer with another axis */ }
  busy = false;
}
const others = (plot, what) => act(plot, groupOf(plot).filter((peer) => peer !== plot), what);

function share(plot) {
  plot.on("plotly_hover", (event) => others(plot, (peer) => Plotly.Fx.hover(peer, { xval: event.points[0].x })));
  plot.on("plotly_unhover", () => others(plot, (peer) => Plotly.Fx.unhover(peer)));
  plot.on("plotly_doubleclick", () => reset(plot));
  plot.on("plotly_relayout", (change) => {
    if (busy || change["xaxis.range[0]"] === undefined) return;
    const zoom = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    drawn.get(plot).zoom = zoom;
    others(plot, (peer) => { drawn.get(peer).zoom = zoom; Plotly.relayout(peer, { "xaxis.range": zoom }); });
  });
}

const widths = new ResizeObserver((entries) => { for (const { target } of entries) if (target.data && target.clientWidth) Plotly.Plots.resize(target); });
const redraw = () => { for (const [plot, { json, group }] of drawn) draw(plot, json, group); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });

/** Draws a figure, or redraws it: zoom and selection stay. */
export async function draw(plot, json, group) {
  const chart = Object.assign(drawn.get(plot) ?? {}, { json, group });
  drawn.set(plot, chart);
  await load();
  if (!plot.isConnected || chart.json !== json) return;
  const fresh = !plot.data, { traces, layout } = parse(json);
  chart.own = { x: layout.xaxis.range, y: layout.yaxis.range };
  if (chart.zoom) layout.xaxis.range = chart.zoom;
  await Plotly.react(plot, traces, layout, settings());
  if (!fresh || !plot.isConnected) return;
  widths.observe(plot);
  share(plot);
}

/** Forgets a chart. */
export function purge(plot) {
  drawn.delete(plot);
  widths.unobserve(plot);
  if (plot.data) Plotly.purge(plot);
}
