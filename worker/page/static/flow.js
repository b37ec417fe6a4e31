// How documents pass through the stages.

import { get } from "./api.js";
import { excerpt, make, moment, notice, number, shown, span, table } from "./dom.js";

const EVERY = 2_000;

function trend(stage) {
  if (stage.trend === null) return "–";
  if (Math.abs(stage.trend) < 0.05) return "steady";
  return `${stage.trend > 0 ? "+" : "−"}${number(Math.abs(stage.trend), 1)}/s`;
}

function rate(value) {
  return value === null ? "–" : `${number(value, value > 0 && value < 10 ? 1 : 0)}/s`;
}

function stages(flow) {
  return table(
    [["Stage", ""], ["Rate", "number"], ["Behind", "number"], ["Oldest", "number"], ["Trend", "number"], ["Clear in", "number"]],
    flow.stages.map((one) => [
      one.name, rate(one.per_second), `${number(one.lag)} ${one.unit}`,
      one.lag ? span(one.lag_seconds) : "–", trend(one), one.lag ? span(one.clear_seconds) : "–",
    ]),
    "stack",
  );
}

function outputs(flow) {
  return table(
    [["Topic", ""], ["Rate", "number"]],
    flow.outputs.map((one) => [make("code", {}, one.topic), rate(one.per_second)]),
    "fit",
  );
}

function shards(flow) {
  return table(
    [["Shard", ""], ["Owner", "text"], ["Behind", "number"], ["This server's copy", "number"]],
    flow.shards.map((one) => [
      number(one.number),
      one.owner === null ? make("strong", {}, "nobody") : shown(one.owner),
      `${number(one.lag)} frames`,
      one.restoring ? "is being restored" : one.copy_behind === null ? "–" : one.copy_behind ? `${number(one.copy_behind)} behind` : "up to date",
    ]),
    "stack fit",
  );
}

function rejected(flow) {
  if (!flow.rejected.length) return make("p", { class: "quiet" }, "None of the newest documents was rejected.");
  return table(
    [["Reason", "narrow"], ["Documents", "number"], ["The latest", "text"], ["At", "narrow"], ["Send again", ""]],
    flow.rejected.map((one) => [
      shown(one.reason), number(one.count),
      make("div", {}, make("div", {}, shown(one.detail)), make("div", { class: "quiet small" }, `source ${one.source} `, excerpt(one.text, 160))),
      moment(one.time), make("code", {}, one.command),
    ]),
    "stack",
  );
}

export async function view(main) {
  const place = make("div");
  main.append(make("h1", {}, "Flow"), place);
  const draw = (flow) => place.replaceChildren(
    ...(flow.trouble === null ? [] : [notice(flow.trouble, true)]),
    stages(flow),
    make("h2", {}, "Published"), outputs(flow),
    make("h2", {}, "Shards"), shards(flow),
    make("h2", {}, "Rejected"), rejected(flow),
  );
  draw(await get("v1/flow"));
  const turn = async () => {
    if (!document.hidden && !place.contains(document.activeElement)) {
      try {
        draw(await get("v1/flow"));
      } catch (error) {
        place.prepend(notice(error.message, true));
        if (error.status === 401) return;
      }
    }
    setTimeout(turn, EVERY);
  };
  setTimeout(turn, EVERY);
}
