"use strict";
// What pages with plots share: colours from the style sheet, lines with bands, the look of axes.
const CONFIG = {responsive: true, displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]]};
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = colour => [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
// Black is drawn in the colour of the text, which is light on a dark page; a shade goes towards it.
function colourOf(look) {
  const ink = css("--ink");
  if (!look.colour || look.colour === "#000000") return ink;
  const text = rgb(ink), shade = look.shade || 0;
  return "#" + rgb(look.colour).map((v, i) => Math.round(v + shade * (text[i] - v)).toString(16).padStart(2, "0")).join("");
}
const translucent = colour => `rgba(${rgb(colour).join(", ")}, 0.16)`;
const dashOf = look => look.dashes.length ? look.dashes.map(d => `${3 * d}px`).join(",") : "solid";

// Return the band from low to high and the line in the middle; a logarithmic axis has no place for zero.
function lineAndBand(look, {x, y: [middle, low, high], scale, visible, axis, band}) {
  const drawn = scale === "log" ? v => v > 0 : v => v !== null;
  const colour = colourOf(look);
  const kept = x.map((_, i) => i).filter(i => drawn(low[i]) && drawn(high[i]));
  const back = kept.slice().reverse();
  return [{
    x: kept.concat(back).map(i => x[i]), y: kept.map(i => high[i]).concat(back.map(i => low[i])),
    fill: "toself", fillcolor: translucent(colour), mode: "none", hoverinfo: "skip", visible,
  }, {
    x, y: middle.map(v => drawn(v) ? v : null), name: look.name, mode: "lines+markers", visible,
    line: {color: colour, width: 2, dash: dashOf(look)}, marker: {symbol: look.symbol, size: 8, maxdisplayed: 12},
    customdata: low.map((v, i) => [v, high[i]]),
    hovertemplate: `<b>%{fullData.name}</b><br>${axis} %{x}<br>%{y:.3~g}, ${band} %{customdata[0]:.3~g} to %{customdata[1]:.3~g}<extra></extra>`,
  }];
}

// Ticks at powers of ten, as many as there is room for; what is 12 powers below the rest is rounding.
function fitLogAxis(layout, traces) {
  if (layout.yaxis.type !== "log") return layout;
  let low = Infinity, high = 0;
  for (const {y, visible} of traces) if (visible !== false) for (const v of y) if (v > 0) { low = Math.min(low, v); high = Math.max(high, v); }
  if (!high) return layout;
  const decades = Math.log10(high / low);
  if (decades > 12) layout.yaxis.range = [Math.log10(high) - 12, Math.log10(high) + 0.3];
  layout.yaxis.dtick = decades > 8 ? 2 : decades > 1.5 ? 1 : null;
  return layout;
}

function baseLayout(xTitle, yTitle, xScale, yScale) {
  const ink = css("--ink"), line = css("--line");
  const axis = (title, type) => ({
    title: {text: title, font: {size: 14}}, type, gridcolor: line, linecolor: line, zeroline: false, automargin: true,
    tickfont: {size: type === "log" ? 11 : 13}, exponentformat: "power", minexponent: 5, dtick: type === "log" ? 1 : null,
  });
  return {
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", font: {color: ink, family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 13},
    margin: {l: 10, r: 15, t: 10, b: 10}, showlegend: false, modebar: {bgcolor: "transparent", color: css("--soft"), activecolor: ink}, hovermode: "closest",
    hoverlabel: {bgcolor: css("--card"), bordercolor: line, font: {color: ink}},
    xaxis: {...axis(xTitle, xScale), ...(xScale === "log" ? {} : {rangemode: "tozero"})}, yaxis: axis(yTitle, yScale),
  };
}
