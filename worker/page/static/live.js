// The latest duplicates, as they are committed.

import { compare, get, parsed } from "./api.js";
import { actions } from "./corrections.js";
import { excerpt, ident, make, notice, number } from "./dom.js";
import { address, compared } from "./pair.js";

const KEPT = 100;

export async function view(main) {
  const list = make("ol", { class: "feed" });
  const state = make("span", { class: "quiet small fill" });
  const pause = make("button", { "aria-pressed": "false" }, "Pause");
  const pair = make("div", { class: "pair" });
  const known = [];
  let chosen = null;
  let paused = false;
  let waiting = [];
  let missed = 0;

  const said = (text) => state.replaceChildren(text);
  const keyOf = (one) => one.source;

  function row(one) {
    const best = one.matches[0];
    const button = make(
      "button", { type: "button", onclick: () => { halt(true); choose(one); } },
      make("span", { class: "cut" }, ident(one.id, 36)),
      make("span", { class: "quiet" }, best ? number(best.similarity, 2) : ""),
      make("span", { class: "cut excerpt" }, excerpt(one.text, 200)),
    );
    return make("li", {}, button);
  }

  function add(duplicates) {
    for (const one of [...duplicates].reverse()) {
      known.unshift({ one, element: row(one) });
      list.prepend(known[0].element);
    }
    for (const last of known.splice(KEPT)) last.element.remove();
    mark();
  }

  function mark() {
    for (const { one, element } of known) {
      const button = element.firstChild;
      if (chosen !== null && keyOf(one) === keyOf(chosen)) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  async function choose(one) {
    chosen = one;
    mark();
    const left = { sequence: one.sequence };
    const best = one.matches[0];
    if (best === undefined) {
      pair.replaceChildren(notice("Its header names no match."));
      return;
    }
    const right = best.sequence === null ? { match: best.id } : { sequence: best.sequence };
    try {
      const found = await compare(left, right);
      const correct = await actions(found);
      if (chosen !== one) return;
      const links = [
        ...correct,
        make("button", { type: "button", onclick: () => step(-1), title: "k" }, "Previous"),
        make("button", { type: "button", onclick: () => step(1), title: "j" }, "Next"),
        make("a", { href: address(left, right) }, "Link to this pair"),
      ];
      pair.replaceChildren(compared(found, links));
    } catch (error) {
      if (chosen === one) pair.replaceChildren(notice(error.message, true));
    }
  }

  function step(by) {
    const at = known.findIndex(({ one }) => chosen !== null && keyOf(one) === keyOf(chosen));
    const next = known[Math.min(Math.max(at + by, 0), known.length - 1)];
    if (next === undefined) return;
    halt(true);
    choose(next.one);
    next.element.scrollIntoView({ block: "nearest" });
  }

  function halt(on) {
    paused = on;
    pause.textContent = on ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(on));
    if (!on) {
      add(waiting);
      waiting = [];
      missed = 0;
    }
    if (!on) said("Following");
    else if (missed === 0) said("Paused");
  }

  pause.addEventListener("click", () => halt(!paused));
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "p") halt(!paused);
    else return;
    event.preventDefault();
  });

  main.append(
    make("h1", {}, "Latest duplicates"),
    make("div", { class: "live" }, pair,
      make("section", { class: "list", "aria-label": "Latest duplicates" },
        make("div", { class: "tools" }, state, pause), make("p", { class: "keys" }, "Keys: ", make("kbd", {}, "j"), " next, ", make("kbd", {}, "k"), " previous, ", make("kbd", {}, "p"), " pause"), list)),
  );

  const page = await get("v1/duplicates", { limit: 50 });
  add(page.duplicates);
  if (page.duplicates.length) choose(page.duplicates[0]);
  else pair.append(notice("No duplicate has been published yet. This page shows each as it is committed."));
  said("Following");

  const stream = new EventSource("v1/duplicates/stream");
  stream.addEventListener("open", () => { if (!paused) said("Following"); });
  stream.addEventListener("message", (event) => {
    const news = parsed(event.data);
    if (paused) {
      waiting = [...news.duplicates, ...waiting].slice(0, KEPT);
      missed += news.of;
      said(`Paused, ${number(missed)} new`);
      return;
    }
    add(news.duplicates);
    const sampled = news.of > news.duplicates.length;
    said(sampled ? `Showing ${news.duplicates.length} of ${number(news.of)}` : "Following");
    if (chosen === null) choose(news.duplicates[0]);
  });
  stream.addEventListener("error", () => said("The connection is lost; trying again"));
}
