// Figures of the report: drawn when they come into view, changed by the buttons above them.
const charts = new Map();  // element of a figure -> what it shows

function linesOf(drawing, panel, shown) {
  const axis = shown.x || panel.axis, names = {range: "range", quartiles: "quartiles", interval: "95 % interval"};
  const drawn = panel.series.map(series => lineAndBand({...series.look, name: series.name}, {
    x: series.x[axis], y: series.y[shown.y], scale: shown.scale, visible: !shown.hidden.has(series.name), axis: drawing.x[axis], band: names[drawing.band],
  }));
  const positive = v => shown.scale === "linear" || v > 0 ? v : null;
  const overlay = panel.overlay.map((line, k) => ({
    x: line.x[axis], y: line.y.map(positive), name: line.name, mode: "lines",
    line: {color: css("--soft"), width: 1.8, dash: ["dash", "dot", "dashdot"][k % 3]}, hovertemplate: `${line.name}<br>%{y:.3~g}<extra></extra>`,
  }));
  const layout = baseLayout(drawing.x[axis], drawing.y[shown.y], drawing.x_scale, shown.scale);
  return [drawn.map(([band]) => band).concat(drawn.map(([, line]) => line), overlay), layout];
}

function pointsOf(drawing, panel, shown) {
  const count = panel.series.length, several = panel.series.some(series => series.category.length > 1);
  const place = new Map(drawing.categories.map((name, k) => [name, k]));
  const traces = panel.series.map((series, k) => {
    const shift = several ? (k - (count - 1) / 2) * 0.6 / Math.max(count, 2) : 0;
    const colour = colourOf(series.look);
    return {
      x: series.value, y: series.category.map(name => place.get(name) + shift), name: series.name, mode: "markers",
      marker: {color: colour, symbol: series.look.symbol, size: 9}, visible: !shown.hidden.has(series.name),
      error_x: {type: "data", symmetric: false, array: series.high.map((v, i) => v - series.value[i]), arrayminus: series.value.map((v, i) => v - series.low[i]), color: colour, thickness: 2, width: 5},
      customdata: series.category.map((name, i) => [name, series.low[i], series.high[i]]),
      hovertemplate: `<b>%{customdata[0]}</b>${several ? "<br>%{fullData.name}" : ""}<br>%{x:.4~g} [%{customdata[1]:.4~g}, %{customdata[2]:.4~g}]<extra></extra>`,
    };
  });
  const layout = baseLayout(Object.values(drawing.x)[0], "", drawing.scale, "linear");
  Object.assign(layout.xaxis, {rangemode: "normal"});
  Object.assign(layout.yaxis, {tickvals: drawing.categories.map((_, k) => k), ticktext: drawing.categories, range: [drawing.categories.length - 0.5, -0.5], title: {text: ""}});
  layout.shapes = drawing.marks.map(mark => ({
    type: "line", yref: "paper", y0: 0, y1: 1, x0: mark.value, x1: mark.value, line: {color: css("--soft"), width: 1.5, dash: "dot"},
  }));
  layout.annotations = drawing.marks.map(mark => ({
    text: mark.name, x: drawing.scale === "log" ? Math.log10(mark.value) : mark.value, yref: "paper", y: 1, yanchor: "bottom", showarrow: false, font: {color: css("--soft"), size: 12},
  }));
  if (drawing.marks.length) layout.margin.t = 30;
  return [traces, layout];
}

function heatOf(drawing, panel) {
  const few = drawing.rows.length * drawing.columns.length <= 100;
  const layout = baseLayout(Object.values(drawing.x)[0], Object.values(drawing.y)[0], "category", "category");
  return [[{
    type: "heatmap", x: drawing.columns, y: drawing.rows, z: panel.values, colorscale: "Cividis", colorbar: {title: {text: drawing.value, side: "right"}, thickness: 12},
    texttemplate: few ? "%{z:.3~g}" : "", hovertemplate: "%{x}, %{y}<br>%{z:.4~g}<extra></extra>",
  }], layout];
}

// Logarithmic axes of about a decade have ticks at 1, 2 and 5; shorter ones what plotly finds; very
// long ones every other power.
function fitTicks(axis, values) {
  if (axis.type !== "log") return;
  const found = values.flat().filter(v => v > 0), decades = Math.log10(Math.max(...found) / Math.min(...found));
  axis.dtick = decades > 8 ? 2 : decades > 1.5 ? 1 : decades > 0.7 ? "D2" : null;
}

const MAKERS = {lines: linesOf, points: pointsOf, heat: heatOf};

function draw(element) {
  const drawing = figures[element.dataset.figure], shown = charts.get(element);
  for (const button of element.querySelectorAll("[data-group]"))
    button.setAttribute("aria-pressed", String(shown[button.dataset.group] === button.dataset.value));
  for (const button of element.querySelectorAll("[data-line]"))
    button.setAttribute("aria-pressed", String(!shown.hidden.has(button.dataset.line)));
  shown.drawn = true;
  return Promise.all([...element.querySelectorAll("[data-panel]")].map(plot => {
    const panel = drawing.panels[plot.dataset.panel];
    const [traces, layout] = MAKERS[drawing.kind](drawing, panel, shown);
    const seen = traces.filter(({visible}) => visible !== false);
    fitLogAxis(layout, traces);
    fitTicks(layout.xaxis, seen.map(({x}) => Array.from(x)));
    fitTicks(layout.yaxis, seen.map(({y}) => Array.from(y)));
    const range = panel.zoom && panel.zoom[shown.y];
    if (range) Object.assign(layout.yaxis, {range: shown.scale === "log" ? range.map(Math.log10) : range, dtick: null});
    return Plotly.react(plot, traces, layout, CONFIG);
  }));
}

function drawAll() {
  return Promise.all([...charts.keys()].filter(element => !charts.get(element).drawn).map(draw));
}

const watcher = new IntersectionObserver(entries => {
  for (const {isIntersecting, target} of entries)
    if (isIntersecting && !charts.get(target).drawn) draw(target);
}, {rootMargin: "400px"});

for (const element of document.querySelectorAll("figure[data-figure]")) {
  const drawing = figures[element.dataset.figure];
  if (!drawing) continue;
  const paired = drawing.kind === "lines" && drawing.panels[0].axis;
  charts.set(element, {x: paired ? "" : Object.keys(drawing.x)[0], y: Object.keys(drawing.y || {})[0], scale: drawing.scale, hidden: new Set(), drawn: false});
  element.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    const shown = charts.get(element), {group, value, line} = button.dataset;
    if (group) shown[group] = value;
    else if (!shown.hidden.delete(line)) shown.hidden.add(line);
    draw(element);
  });
  watcher.observe(element);
}
if (matchMedia("(max-width: 75rem)").matches) document.querySelector("nav details").open = false;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...charts.keys()].filter(element => charts.get(element).drawn).forEach(draw));
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("main details")) details.open = true;
  drawAll();
});
