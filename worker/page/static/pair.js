// Two texts side by side.

import { compare, get } from "./api.js";
import { actions } from "./corrections.js";
import { count, ident, make, moment, notice, shown } from "./dom.js";

const ALIKE = 600;
const KEPT = 160;
const NAMES = ["First", "Second"];

function part(span, text, whole) {
  if (text === "") return null;
  if (span.kind === "counts") return make("mark", {}, shown(text));
  if (span.kind === "aside") return make("span", { class: "aside" }, shown(text));
  if (whole || text.length <= ALIKE) return make("span", {}, shown(text));
  const left = text.length - 2 * KEPT;
  return make(
    "span", {},
    shown(text.slice(0, KEPT)),
    make("span", { class: "alike" }, ` … ${count(left, "character")} alike … `),
    shown(text.slice(-KEPT)),
  );
}

// The text of a document that is compared with nothing: the other one is gone.
function alone(document) {
  const place = make("span");
  if (document.gone === null && document.sequence !== null) {
    get("v1/documents", { sequence: document.sequence })
      .then(({ documents }) => place.append(shown(documents[0].text)))
      .catch((error) => place.append(make("span", { class: "quiet" }, `${error.message}.`)));
  }
  return place;
}

function side(found, at, whole) {
  const document = at ? found.right : found.left;
  const head = document.id === null ? "The text" : ident(document.id);
  const about = [];
  if (document.gone === null) about.push(count(document.characters, "character"));
  if (document.source !== null) about.push(`source ${document.source}`);
  const texts = found.spans.length ? found.spans.map((span) => part(span, at ? span.right : span.left, whole)) : alone(document);
  return make(
    "section", { class: "side", "aria-label": `${NAMES[at]} text` },
    make("div", { class: "head" }, head,
      make("span", { class: "small quiet" }, about.join(" · "), about.length && document.time !== null ? " · " : "",
        document.time === null ? "" : moment(document.time))),
    make("div", { class: "body", tabindex: "0", role: "region", "aria-label": `${NAMES[at]} text, as it is written` },
      document.gone === null ? texts : make("span", { class: "quiet" }, `Gone: ${document.gone}.`)),
  );
}

function bands(found) {
  const on = new Set(found.shared);
  const squares = Array.from({ length: found.bands }, (_, at) => make("i", { class: on.has(at) ? "on" : null }));
  return make("span", {},
    `${on.size} of ${found.bands}, of ${found.rows} slots each`,
    make("span", { class: "bands", "aria-hidden": "true" }, squares));
}

function facts(found) {
  const rows = [
    ["Exact similarity", found.similarity ?? "not computed for texts this long"],
    ["Estimate", `${found.estimate} ± ${found.error}; the threshold is ${found.threshold}`],
    ["Shared bands", bands(found)],
  ];
  if (found.same_text) rows.push(["Same text", "yes, once normalised"]);
  const [left, right] = found.left_out;
  if (left + right) rows.push(["Listed lines left out", `${left} of the first, ${right} of the second`]);
  return make("dl", {}, rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function sentence(found) {
  const ends = `at threshold ${found.threshold}`;
  return found.verdict === "duplicate" ? `Near duplicates ${ends}` : `Not near duplicates ${ends}`;
}

function legend(found) {
  const kinds = new Set(found.spans.map((span) => span.kind));
  const known = [
    ["counts", make("mark", {}, "differs")],
    ["aside", make("span", { class: "aside" }, "differs, but doesn't count")],
  ];
  const rows = known.filter(([kind]) => kinds.has(kind)).map(([, one]) => one);
  if (found.cut) rows.push(make("span", { class: "quiet" }, "parts of longer texts, from their first difference on"));
  if (found.coarse) rows.push(make("span", { class: "quiet" }, "so many differences that neighbours were judged together"));
  return rows.length ? make("p", { class: "legend small" }, rows) : null;
}

// The comparison, and `actions`: what can be done about it.
export function compared(found, actions = []) {
  const place = make("div", { class: "pair" });
  const draw = (whole) => {
    const long = found.spans.some((span) => span.kind === "same" && span.left.length > ALIKE);
    const toggle = long && make("button", { onclick: () => draw(!whole) }, whole ? "Only what differs" : "Whole texts");
    place.replaceChildren(
      make("div", { class: "tools" },
        make("h2", {}, found.verdict === null ? "No comparison" : sentence(found)), actions, toggle || null),
      ...(found.reason === null || found.left.gone || found.right.gone ? [] : [notice(`${found.reason}.`)]),
      make("div", { class: "sides" }, side(found, 0, whole), side(found, 1, whole)),
      ...(found.verdict === null ? [] : [legend(found), facts(found)].filter((one) => one !== null)),
    );
  };
  draw(false);
  return place;
}

export function address(left, right) {
  const given = { left: left.sequence, right: right.sequence, match: right.match };
  const named = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  return `pair?${new URLSearchParams(named)}`;
}

export async function view(main, query) {
  const right = query.has("right") ? { sequence: query.get("right") } : { match: query.get("match") ?? "" };
  const sequences = [query.get("left"), query.get("right") ?? "0"];
  if (right.match === "" || !sequences.every((one) => /^\d{1,20}$/.test(one ?? ""))) {
    main.append(make("h1", {}, "A pair"), notice("This address names no pair of documents.", true));
    return;
  }
  const left = { sequence: query.get("left") };
  const found = await compare(left, right);
  main.append(make("h1", {}, "A pair"), compared(found, await actions(found)));
}
