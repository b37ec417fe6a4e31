// What people correct: the dialogs, each with its undo, and the list of what holds.

import { get, mayCorrect, post, side } from "./api.js";
import { excerpt, ident, make, moment, notice, table } from "./dom.js";

const LONGEST_REASON = 200;

function send(given) {
  return post("v1/corrections", given);
}

const kinds = {
  allow: {
    name: "Not a duplicate",
    head: "Allow this text",
    about: "It holds for what comes from now on. What was published stays.",
    done: "It is allowed.",
    choices: ["What is near to it", "Only the same text"],
    make: (one, why, chosen) => `{"allow":{"of":${side(one.sequence === null ? { text: one.text } : { sequence: one.sequence })},"exact":${chosen === 1},"why":${JSON.stringify(why)}}}`,
    undo: (sent) => JSON.stringify({ withdraw: { id: sent.id } }),
    undone: "It is no longer allowed.",
  },
  forget: {
    name: "Forget",
    head: "Forget a document",
    about: "Nothing matches it from now on. What was published stays.",
    done: "It is forgotten.",
    make: (one, why) => `{"forget":{"id":${JSON.stringify(one.id)},"sequence":${BigInt(one.sequence)},"why":${JSON.stringify(why)}}}`,
    undo: (sent) => JSON.stringify({ restore: { id: sent.id } }),
    undone: "It was sent again: it is judged and published anew.",
  },
};

// The result of a correction, with its undo.
function result(kind, sent, close) {
  const place = make("div", { class: "tools" });
  const undo = make("button", { type: "button" }, "Undo");
  undo.addEventListener("click", async () => {
    undo.disabled = true;
    try {
      await send(kind.undo(sent));
      place.replaceChildren(notice(kind.undone), close);
      close.focus();
    } catch (error) {
      place.replaceChildren(notice(error.message, true), undo, close);
      undo.disabled = false;
    }
  });
  place.append(notice(kind.done), undo, close);
  return place;
}

function radios(name, labels) {
  return labels.map((label, at) => make("label", { class: "choice" },
    make("input", { type: "radio", name, value: String(at), checked: at === 0 }), label));
}

// A dialog that corrects one of some documents, or a text, and then offers the undo.
function open(kind, documents) {
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const why = make("input", { id: "why", maxlength: LONGEST_REASON, autocomplete: "off" });
  const which = documents.length > 1
    ? make("fieldset", {}, make("legend", {}, "Which one?"), radios("which", documents.map((one) => ident(one.id))))
    : make("p", {}, documents[0].id === null ? "The text" : ident(documents[0].id));
  const said = make("div");
  const form = make("form", {}, which,
    kind.choices ? make("fieldset", {}, make("legend", {}, "What is allowed?"), radios("chosen", kind.choices)) : null,
    make("p", {}, make("label", { for: "why" }, "Reason"), why),
    make("p", { class: "quiet small" }, kind.about), said,
    make("div", { class: "tools" }, make("button", { class: "main" }, kind.head), close));
  const dialog = make("dialog", { "aria-labelledby": "correcting" }, make("h2", { id: "correcting" }, kind.head), form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = new FormData(form);
    const one = documents[Number(given.get("which") ?? 0)];
    const button = form.querySelector("button.main");
    button.disabled = true;
    try {
      const sent = await send(kind.make(one, why.value, Number(given.get("chosen") ?? 0)));
      form.replaceWith(result(kind, sent, close));
      close.previousSibling.focus();
    } catch (error) {
      said.replaceChildren(notice(error.message, true));
      button.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  form.querySelector("button.main").focus();
}

// Buttons that correct. The first document can be allowed, and each be forgotten, the last one first:
// it is what others match.
export function buttons(documents, look = null) {
  const allowed = documents.slice(0, 1).filter((one) => !one.gone);
  const known = documents.filter((one) => one.id !== null && one.sequence !== null).reverse();
  const offered = [[kinds.allow, allowed], [kinds.forget, known]].filter(([, some]) => some.length);
  return offered.map(([kind, some]) => make("button", { type: "button", class: look, onclick: () => open(kind, some) }, kind.name));
}

// Those of a comparison; none for who may not correct.
export async function actions(found, text = null) {
  return (await mayCorrect()) ? buttons([{ ...found.left, text }, found.right]) : [];
}

function undoOf(one, row) {
  const kind = kinds[one.kind];
  const button = make("button", { type: "button" }, one.kind === "allow" ? "Withdraw" : "Send again");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await send(kind.undo(one));
      row.replaceChildren(make("span", { role: "status" }, kind.undone));
    } catch (error) {
      row.replaceChildren(button, make("span", { role: "alert" }, ` ${error.message}`));
      button.disabled = false;
    }
  });
  row.append(button);
  return row;
}

function what(one) {
  if (one.kind === "forget") return make("span", {}, `Forgotten: ${one.source ? `what was at ${one.source} ` : ""}`, ident(one.id));
  return make("span", {}, `${one.exact ? "Allowed, exactly" : "Allowed"}: `, excerpt(one.text, 160),
    make("span", { class: "quiet small" }, " ", ident(one.id)));
}

export async function view(main, query) {
  main.append(make("h1", {}, "Corrections"));
  const [found, may] = [await get("v1/corrections", { cursor: query.get("cursor") }), await mayCorrect()];
  if (!found.corrections.length) {
    main.append(notice("Nothing is corrected. On a pair or a campaign, say what is no duplicate, or what to forget."));
    return;
  }
  const heads = [["What", "text"], ["When", "narrow"], ["By", ""], ["Reason", ""], ["Until", "narrow"]];
  main.append(table(
    may ? [...heads, ["", "narrow"]] : heads,
    found.corrections.map((one) => [
      what(one), moment(one.at), excerpt(one.by || "–", 100), excerpt(one.why || "–", 200), one.until === null ? "–" : moment(one.until),
      ...(may ? [undoOf(one, make("span"))] : []),
    ]),
    "stack",
  ));
  if (found.next !== null) main.append(make("p", {}, make("a", { href: `corrections?${new URLSearchParams({ cursor: found.next })}` }, "Earlier ones")));
}
