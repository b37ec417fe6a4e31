// Shows the view that the address names. All addresses are relative, so a proxy may have the page
// under any path; and all views are beside one another there.

import { mayCorrect, post, Refused } from "./api.js";
import { make, notice } from "./dom.js";

const VIEWS = new Map([
  ["", ["Live", () => import("./live.js")]],
  ["pair", ["Pair", () => import("./pair.js")]],
  ["campaigns", ["Campaigns", () => import("./campaigns.js")]],
  ["ask", ["Ask", () => import("./ask.js")]],
  ["search", ["Search", () => import("./search.js")]],
  ["flow", ["Flow", () => import("./flow.js")]],
  ["corrections", ["Corrections", () => import("./corrections.js")]],
]);

const main = document.querySelector("main");
document.querySelector(".late").remove();

function signIn() {
  const token = make("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const said = make("div");
  const form = make("form", {},
    make("p", {}, make("label", { for: "token" }, "The token of this server")),
    make("div", { class: "tools" }, token, make("button", { class: "main" }, "Sign in")), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await post("v1/session", JSON.stringify({ token: token.value.trim() }));
      location.reload();
    } catch (error) {
      said.replaceChildren(notice(error.message, true));
    }
  });
  main.replaceChildren(make("h1", {}, "Sign in"), form);
  token.focus();
}

async function show() {
  const own = location.pathname.split("/").pop();
  const [name, load] = VIEWS.get(own) ?? VIEWS.get("");
  const query = new URLSearchParams(location.search);
  document.title = `${name} – neardup`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === (own || "./")) link.setAttribute("aria-current", "page");
  }
  const by = document.querySelector("#by");
  if (own === "search" && ["id", "header", "text"].includes(query.get("by"))) by.value = query.get("by");
  if (own === "search") document.querySelector("#q").value = query.get("q") ?? "";
  try {
    const { view } = await load();
    await view(main, query);
  } catch (error) {
    if (error instanceof Refused && error.status === 401) signIn();
    else if (error instanceof Refused) main.append(notice(error.message, true));
    else throw error;
  }
}

show();
mayCorrect().then((may) => { document.querySelector('nav a[href="corrections"]').hidden = !may; });
