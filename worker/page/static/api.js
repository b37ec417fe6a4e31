// Asks the server. What it refuses becomes an error with its reason.

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

// Sequence numbers have 64 bits, and numbers of JavaScript 53: they stay text. Within a string of
// JSON, the quotes would have backslashes.
const SEQUENCE = /"sequence":(\d+)/g;

export function parsed(text) {
  return JSON.parse(text.replace(SEQUENCE, '"sequence":"$1"'));
}

async function asked(path, given) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...given });
  } catch {
    throw new Refused(0, "The server can't be reached.");
  }
  const text = await answer.text();
  if (answer.ok) return text ? parsed(text) : null;
  let reason = `HTTP ${answer.status}`;
  try {
    reason = JSON.parse(text).error;
  } catch {
    // A proxy has answered.
  }
  throw new Refused(answer.status, reason);
}

export function get(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return asked(query ? `${path}?${query}` : path, {});
}

export function post(path, body) {
  return asked(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
}

let may = null;

// Whether who looks at the page may correct, too.
export async function mayCorrect() {
  may ??= get("v1/session").then((found) => found.may_correct, () => false);
  return may;
}

export function side(given) {
  if (given.sequence !== undefined) return `{"sequence":${BigInt(given.sequence)}}`;
  return JSON.stringify(given);
}

export function compare(left, right) {
  return post("v1/comparison", `{"left":${side(left)},"right":${side(right)}}`);
}
