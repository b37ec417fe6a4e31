// Makes elements. Texts are hostile: they pass through `shown`, and reach the page as text alone.

// Controls, formats and separators: a browser would obey some, and show others as nothing. Line
// breaks and tabs are fine, and so are the joiners that scripts and emoji need.
const ESCAPED = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const PLAIN = new Set("\n\t\u200c\u200d");
const MOST = 20_000;

export function make(name, given = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// A text of a document, within `bdi`: its direction stays its own.
export function shown(text, most = MOST) {
  const all = make("bdi", { dir: "auto" });
  fill(all, text, most);
  return all;
}

// The beginning of a text, in one line.
export function excerpt(text, most) {
  const line = text.replace(/\s+/g, " ");
  return shown(line.length > most ? `${line.slice(0, most)}…` : line);
}

function fill(all, text, most) {
  all.replaceChildren();
  let plain = "";
  const cut = text.length > most;
  for (const character of cut ? text.slice(0, most) : text) {
    if (ESCAPED.test(character) && !PLAIN.has(character)) {
      all.append(plain, escaped(character));
      plain = "";
    } else {
      plain += character;
    }
  }
  all.append(plain);
  if (cut) {
    const left = text.length - most;
    const more = make("button", { class: "plain", onclick: () => fill(all, text, most * 10) });
    more.textContent = `… ${count(left, "more character")}`;
    all.append(more);
  }
}

function escaped(character) {
  const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return make("span", { class: "escape" }, `U+${code}`);
}

// An id. A long one is cut in the middle: what distinguishes ids is at their ends.
export function ident(id, most = 48) {
  const characters = [...id];
  const half = Math.floor((most - 1) / 2);
  const cut = characters.length > most;
  const text = cut ? `${characters.slice(0, half).join("")}…${characters.slice(-half).join("")}` : id;
  const found = make("span", { class: "id" }, shown(text));
  if (cut) found.title = characters.slice(0, 300).join("");
  return found;
}

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function count(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// A time in ms since 1970, or in ISO 8601.
export function moment(time) {
  if (time === null || time === undefined || time < 0) return "–";
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  const text = date.toISOString();
  return make("time", { datetime: text, title: text }, `${text.slice(0, 10)} ${text.slice(11, 19)}`);
}

export function table(heads, rows, kind = "") {
  return make(
    "div", { class: "wide", tabindex: "0", role: "region", "aria-label": heads[0][0] },
    make(
      "table", { class: kind },
      make("thead", {}, make("tr", {}, heads.map(([name, of]) => make("th", { class: of, scope: "col" }, name)))),
      make("tbody", {}, rows.map((cells) => make(
        "tr", {}, cells.map((cell, at) => make("td", { class: heads[at][1], "data-name": at || heads[at][1] === "number" ? heads[at][0] : null }, cell)),
      ))),
    ),
  );
}

export function notice(text, bad = false) {
  return make("p", { class: bad ? "notice bad" : "notice", role: bad ? "alert" : "status" }, text);
}
