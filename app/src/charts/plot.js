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

const settings = { displaylogo: false, displayModeBar: "hover", doubleClick: "reset", showSendToCloud: false, plotlyServerURL: "", modeBarButtons: [["toImage", "resetScale2d"]] };
const drawn = new Map(); // element → { json, group }
const peersOf = (plot) => [...drawn].filter(([other, { group }]) => other !== plot && group && group === drawn.get(plot)?.group && other.data).map(([other]) => other);

/* The charts of a group have one cross-hair and one zoom. */
let busy = false;
const others = (plot, act) => {
  if (busy) return;
  busy = true;
  for (const peer of peersOf(plot)) try { act(peer); } catch { /* a peer with another axis */ }
  busy = false;
};

function share(plot) {
  plot.on("plotly_hover", (event) => others(plot, (peer) => Plotly.Fx.hover(peer, { xval: event.points[0].x })));
  plot.on("plotly_unhover", () => others(plot, (peer) => Plotly.Fx.unhover(peer)));
  plot.on("plotly_relayout", (change) => {
    const range = change["xaxis.range[0]"] !== undefined ? { "xaxis.range": [change["xaxis.range[0]"], change["xaxis.range[1]"]] } : change["xaxis.autorange"] && { "xaxis.autorange": true };
    if (range) others(plot, (peer) => Plotly.relayout(peer, range));
  });
}

const widths = new ResizeObserver((entries) => { for (const { target } of entries) if (target.data && target.clientWidth) Plotly.Plots.resize(target); });
const redraw = () => { for (const [plot, { json, group }] of drawn) draw(plot, json, group); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });

/** Draws a figure, or redraws it: zoom and selection stay. */
export async function draw(plot, json, group) {
  drawn.set(plot, { json, group });
  await load();
  if (!plot.isConnected || drawn.get(plot)?.json !== json) return;
  const fresh = !plot.data, { traces, layout } = parse(json);
  await Plotly.react(plot, traces, layout, settings);
  if (!fresh || !plot.isConnected) return;
  widths.observe(plot);
  if (group) share(plot);
}

/** Forgets a chart. */
export function purge(plot) {
  drawn.delete(plot);
  widths.unobserve(plot);
  if (plot.data) Plotly.purge(plot);
}
