// Documents by id or by header, as they were published.

import { get } from "./api.js";
import { excerpt, ident, make, moment, notice, number, table } from "./dom.js";
import { address } from "./pair.js";

const EXAMPLES = { id: "an id", header: "a header, such as tenant=blue" };

function verdict(one) {
  const [best] = one.matches;
  if (one.verdict !== "duplicate" || best === undefined) return one.verdict;
  const right = best.sequence === null ? { match: best.id } : { sequence: best.sequence };
  return make("a", { href: address({ sequence: one.sequence }, right) }, `duplicate, ${number(best.similarity, 2)}`);
}

export async function view(main, query) {
  const by = query.get("by") === "header" ? "header" : "id";
  const q = query.get("q") ?? "";
  if (query.get("by") === "text") {
    location.replace(`ask?${new URLSearchParams({ text: q })}`);
    return;
  }
  main.append(make("h1", {}, "Documents with ", q ? make("span", { class: "id" }, excerpt(q, 200)) : EXAMPLES[by]));
  if (!q) return;
  const wait = make("p", { class: "quiet", role: "status" }, "Searching from the newest to the oldest…");
  main.append(wait);
  const found = await get("v1/documents", { [by]: q });
  wait.remove();
  const searched = `${number(found.searched)} offsets were searched, from the newest on`;
  if (!found.documents.length) {
    main.append(notice(found.complete ? `There is none: all ${searched}.` : `There is none among the newest: ${searched}.`));
    return;
  }
  main.append(
    table(
      [["Id", "narrow"], ["Text", "text"], ["Verdict", "narrow"], ["Published", "narrow"], ["", "narrow"]],
      found.documents.map((one) => [
        ident(one.id, 32), excerpt(one.text, 160), verdict(one), moment(one.time),
        make("a", { href: `ask?${new URLSearchParams({ id: one.id })}` }, "What it matches"),
      ]),
      "stack",
    ),
    make("p", { class: "quiet small" }, `${searched}.`),
  );
}
