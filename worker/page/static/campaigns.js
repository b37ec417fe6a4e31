// Groups of documents that match each other: the list, and one of them.

import { get, mayCorrect } from "./api.js";
import { buttons } from "./corrections.js";
import { count, excerpt, ident, make, moment, notice, number, table } from "./dom.js";
import { address } from "./pair.js";
import { timePlot } from "./plot.js";

const SORTS = [["size", "Largest"], ["growth", "Fastest growing"], ["newest", "Newest"]];
const SINCE = [["1h", "the last hour"], ["24h", "the last day"], ["7d", "the last week"], ["", "all time"]];
const PLOTTED = 2_000;
const PAGE = 100;

function tabs(query) {
  const chosen = query.get("sort") ?? "size";
  return make("div", { class: "tabs" }, SORTS.map(([sort, name]) => {
    const given = new URLSearchParams(query);
    given.set("sort", sort);
    given.delete("cursor");
    return make("a", { href: `campaigns?${given}`, "aria-current": sort === chosen ? "true" : null }, name);
  }));
}

function filters(query) {
  const since = make("select", { name: "since", id: "since" }, SINCE.map(([value, name]) => make("option", { value, selected: value === (query.get("since") ?? "24h") }, name)));
  const least = make("input", { name: "min", id: "min", type: "number", min: "2", max: "1000000", value: query.get("min") ?? "3" });
  const form = make("form", { action: "campaigns", class: "tools" },
    make("input", { type: "hidden", name: "sort", value: query.get("sort") ?? "size" }),
    make("label", { for: "since" }, "within"), since,
    make("label", { for: "min" }, "of at least"), least,
    make("button", {}, "Show"));
  return form;
}

function growth(value) {
  return value ? `+${number(value)}/h` : "–";
}

async function describe(cell, one) {
  const { sequence } = one.representative;
  try {
    const { documents } = await get("v1/documents", { sequence });
    cell.replaceChildren(excerpt(documents[0].text, 160));
  } catch {
    cell.replaceChildren(make("span", { class: "quiet" }, "its text is gone"));
  }
}

async function list(main, query) {
  const since = query.has("since") ? query.get("since") : "24h";
  const given = { sort: query.get("sort") ?? "size", since, min: query.get("min") ?? "3", limit: 25, cursor: query.get("cursor") };
  main.append(make("h1", {}, "Campaigns"), make("div", { class: "tools" }, tabs(query), make("span", { class: "fill" }), filters(query)));
  const found = await get("v1/groups", given);
  const cells = found.groups.map((one) => make("span", {}, ident(one.representative.id)));
  if (!found.groups.length) main.append(notice(found.next === null ? "There is no such group." : "There is none among the first groups."));
  else main.append(table(
    [["Documents", "number"], ["Growth", "number"], ["Representative", "text"], ["First", "narrow"], ["Last", "narrow"]],
    found.groups.map((one, at) => [
      make("a", { href: `campaigns?${new URLSearchParams({ group: one.id })}` }, number(one.size)),
      growth(one.growth), cells[at], moment(one.first), moment(one.last),
    ]),
    "stack",
  ));
  if (found.next !== null) {
    const next = new URLSearchParams(query);
    next.set("cursor", found.next);
    main.append(make("p", {}, make("a", { href: `campaigns?${next}` }, "More")));
  }
  for (const [at, one] of found.groups.entries()) await describe(cells[at], one);
}

function members(group, found, may) {
  const first = group.representative;
  return found.map((one) => [
    ident(one.id), moment(one.time),
    one.sequence === first.sequence ? "representative" : make("a", { href: address({ sequence: one.sequence }, { sequence: first.sequence }) }, "Compare"),
    ...(may ? [make("span", { class: "acts" }, buttons([one], "plain"))] : []),
  ]);
}

// What the group consists of, if it has more than one cluster.
async function outline(place, path, group) {
  let found;
  try {
    found = await get(`${path}/outline`);
  } catch (error) {
    place.append(notice(error.message, true));
    return;
  }
  if (found.count < 2) return;
  const least = found.least === null ? "" : ` The least similar one to the representative: ${found.least}.`;
  const all = found.compared < found.size ? `, of the ${number(found.compared)} that were compared` : "";
  place.append(
    make("h2", {}, "A chain"),
    make("p", {}, `${count(found.count, "cluster")} of documents that match the first one of each${all}.${least}`),
    table(
      [["Documents", "number"], ["First", "text"], ["", "narrow"]],
      found.clusters.map((one) => {
        const [first] = one.members;
        const same = first.sequence === group.representative.sequence;
        return [number(one.size), ident(first.id), same ? "representative" : make("a", { href: address({ sequence: first.sequence }, { sequence: group.representative.sequence }) }, "Compare")];
      }),
      "stack",
    ),
  );
}

async function group(main, id) {
  const path = `v1/groups/${encodeURIComponent(id)}`;
  const found = await get(path, { limit: PAGE });
  const may = await mayCorrect();
  const text = make("p", {}, ident(found.representative.id));
  const plot = make("div", { class: "plot" });
  const below = make("div");
  const chain = make("div");
  main.append(
    make("h1", {}, `A campaign of ${count(found.size, "document")}`), text,
    make("dl", {},
      make("dt", {}, "First"), make("dd", {}, moment(found.first)),
      make("dt", {}, "Last"), make("dd", {}, moment(found.last)),
      make("dt", {}, "Growth"), make("dd", {}, growth(found.growth))),
    plot, chain, make("h2", {}, "Members"), below,
  );
  const all = [...found.members];
  const heads = [["Id", "text"], ["Time", "narrow"], ["", "narrow"], ...(may ? [["Correct", "narrow"]] : [])];
  const draw = () => below.replaceChildren(table(heads, members(found, all, may), "stack"));
  draw();
  await describe(text, found);
  let { next } = found;
  while (next !== null && all.length < PLOTTED) {
    const page = await get(path, { limit: PAGE, cursor: next });
    all.push(...page.members);
    next = page.next;
  }
  if (all.length > found.members.length) draw(); // Otherwise a button that has the focus would lose it.
  await timePlot(plot, all.map((one) => (one.time === null ? -1 : Date.parse(one.time))));
  if (next !== null) below.append(make("p", { class: "quiet" }, `The first ${count(all.length, "member")} of ${number(found.size)}.`));
  await outline(chain, path, found);
}

export async function view(main, query) {
  await (query.has("group") ? group(main, query.get("group")) : list(main, query));
}
