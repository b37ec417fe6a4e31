// How many documents came when.

import { count, make } from "./dom.js";

const BINS = 60;
const HEIGHT = 160;

function binned(times) {
  const first = Math.min(...times);
  const width = Math.max((Math.max(...times) - first) / BINS, 1_000);
  const counts = new Array(BINS + 1).fill(0);
  for (const time of times) counts[Math.floor((time - first) / width)] += 1;
  // None is a gap: of 0, the outline of a bar would be left.
  return [counts.map((_, at) => (first + at * width) / 1_000), counts.map((one) => one || null)];
}

// Times are in UTC, as everywhere on the page; the first of a day has its date.
function labels(_, seconds) {
  let day = "";
  const end = seconds.length > 1 && seconds[1] - seconds[0] < 60 ? 19 : 16;
  return seconds.map((one) => {
    const text = new Date(one * 1_000).toISOString();
    const date = text.slice(0, 10) === day ? "" : `\n${text.slice(0, 10)}`;
    day = text.slice(0, 10);
    return text.slice(11, end) + date;
  });
}

export async function timePlot(place, given) {
  const times = given.filter((time) => time >= 0);
  if (times.length < 2) return;
  const { default: Plot } = await import("./uPlot.esm.js");
  const sheet = make("link", { rel: "stylesheet", href: "static/uPlot.min.css" });
  const loaded = new Promise((resolve) => { sheet.addEventListener("load", resolve); sheet.addEventListener("error", resolve); });
  document.head.append(sheet);
  await loaded;
  const data = binned(times);
  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const [accent, quiet, line] = ["--accent", "--quiet", "--line"].map((name) => style.getPropertyValue(name).trim());
    const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const options = {
      tzDate: (one) => Plot.tzDate(new Date(one * 1_000), "Etc/UTC"), width: place.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { show: false },
      series: [{}, { stroke: accent, fill: accent, paths: Plot.paths.bars({ size: [0.7] }), points: { show: false } }],
      axes: [{ ...axis, space: 80, values: labels }, { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }],
      scales: { y: { range: (_, __, most) => [0, Math.max(most, 1)] } },
    };
    place.replaceChildren();
    new Plot(options, data, place);
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `When ${count(times.length, "document")} came: ${Math.max(...data[1])} in the busiest of ${BINS} equal spans`);
  };
  draw();
  new ResizeObserver(() => { if (place.firstChild?.offsetWidth !== place.clientWidth) draw(); }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
