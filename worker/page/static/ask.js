// What a text would match, and why.

import { compare, get, post } from "./api.js";
import { actions } from "./corrections.js";
import { count, ident, make, notice, number, shown, table } from "./dom.js";
import { compared } from "./pair.js";

const LONGEST_ADDRESS = 2_000;

async function answer(place, text, own = null) {
  place.replaceChildren(make("p", { class: "quiet", role: "status" }, "Asking…"));
  try {
    const reply = await post("v1/query", JSON.stringify({ text }));
    place.replaceChildren(...results(reply, text, own));
  } catch (error) {
    place.replaceChildren(notice(error.message, true));
  }
}

function results(reply, text, own) {
  const [found] = reply.answers;
  const matches = found.matches.filter((one) => own === null || one.sequence !== own.sequence);
  const least = `at threshold ${reply.threshold}`;
  const behind = reply.behind ? ` This server has yet to read ${count(reply.behind, "offset")} of the log.` : "";
  const allowed = found.allowed_by === undefined ? null : ident(found.allowed_by);
  const head = allowed ? ["Unique: its text is allowed by ", allowed] : matches.length ? `A duplicate: ${count(matches.length, "document")} match${matches.length === 1 ? "es" : ""} ${least}` : `Unique: nothing matches ${least}`;
  const parts = [make("h2", {}, head)];
  if (behind) parts.push(make("p", { class: "quiet" }, behind.trim()));
  const pair = make("div", { class: "pair", "aria-live": "polite" });
  const choose = async (one) => {
    try {
      const left = own === null ? { text } : { sequence: own.sequence };
      const found = await compare(left, { sequence: one.sequence });
      pair.replaceChildren(compared(found, await actions(found, text)));
    } catch (error) {
      pair.replaceChildren(notice(error.message, true));
    }
  };
  if (matches.length) {
    parts.push(table(
      [["Match", "text"], ["Similarity", "number"], ["Found in", "number"], ["", "narrow"]],
      matches.map((one) => [
        ident(one.id),
        `${one.similarity} ± ${one.error}`,
        one.same_text ? `the same text, ${count(one.bands.length, "band")}` : count(one.bands.length, "band"),
        make("button", { type: "button", onclick: () => choose(one) }, "Compare"),
      ]),
      "stack",
    ), pair);
    choose(matches[0]);
  }
  parts.push(make("p", { class: "quiet small" }, `${count(found.compared, "comparison")}, in ${count(found.buckets.length, "bucket")}.`));
  return parts;
}

async function ofDocument(place, id) {
  const { documents } = await get("v1/documents", { id });
  if (!documents.length) {
    place.append(notice("No document with this id is on the outputs, or it is too far back to be found."));
    return;
  }
  const [first] = documents;
  let text = first.text;
  try {
    text = (await get("v1/documents", { sequence: first.sequence })).documents[0].text;
  } catch (error) {
    if (error.status !== 404) throw error;
    place.append(notice(`Its text is gone: ${error.message}. What follows is about its beginning.`));
  }
  const below = make("div");
  place.append(make("h2", {}, ident(first.id)), make("div", { class: "side" }, make("div", { class: "body", tabindex: "0", role: "region", "aria-label": "The text" }, shown(text))), below);
  await answer(below, text, first);
}

export async function view(main, query) {
  const area = make("textarea", { id: "text", name: "text", required: true, maxlength: 2_000_000, dir: "auto" });
  const place = make("div");
  const form = make("form", {},
    make("p", {}, make("label", { for: "text" }, "A text: what would it match, if it came now? Nothing is written."), area),
    make("div", { class: "tools" }, make("button", { class: "main" }, "Ask")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = area.value;
    if (text.length <= LONGEST_ADDRESS) history.replaceState(null, "", `ask?${new URLSearchParams({ text })}`);
    answer(place, text);
  });
  main.append(make("h1", {}, "Ask"), form, place);
  if (query.has("text")) {
    area.value = query.get("text");
    await answer(place, area.value);
  } else if (query.has("id")) {
    await ofDocument(place, query.get("id"));
  }
}
