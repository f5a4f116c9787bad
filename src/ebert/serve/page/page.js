// The page of `ebert serve`: tabs, the way between views, and waiting for the model.

import { last, read } from "./address.js";
import { byId, plural } from "./dom.js";
import { exploreView } from "./explore.js";
import { fillView } from "./fill.js";
import { linkView } from "./link.js";
import { parse } from "./mentions.js";
import { ask, keepToken, takeToken } from "./service.js";
import { teachView } from "./teach.js";

const AGAIN = 1500; // milliseconds between questions whether the model is loaded

const tabs = [...document.querySelectorAll("[role=tab]")];
const nameOf = (tab) => tab.id.replace("tab-", "");
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
let views = null;

/** Show the view that the address names. */
function route() {
  const { view, values } = read();
  for (const tab of tabs) {
    const selected = nameOf(tab) === view;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
    byId(`view-${nameOf(tab)}`).hidden = !selected;
    if (selected) document.title = `${tab.textContent} · ebert`;
  }
  views?.[view].open(values);
}

function walkTabs(event) {
  const here = tabs.indexOf(event.target);
  const steps = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: tabs.length - 1 };
  if (here < 0 || !(event.key in steps)) return;
  event.preventDefault();
  const tab = tabs[(steps[event.key] + tabs.length) % tabs.length];
  tab.focus();
  tab.click();
}

/** Ask for the model until it is there, saying why it is not. */
async function connect() {
  const line = byId("model");
  for (;;) {
    try {
      const model = await ask("api/model");
      line.textContent = [model.name, model.encoder, plural(model.entities, "entity", "entities")]
        .filter((part, number, all) => all.indexOf(part) === number)
        .join(" · ");
      line.classList.remove("waiting");
      return model;
    } catch (error) {
      line.textContent = error.message;
      line.classList.add("waiting");
      if (error.status === 401)
        await new Promise((resolve) => document.addEventListener("ebert-token-kept", resolve, { once: true }));
      else await pause(AGAIN);
    }
  }
}

function watchToken() {
  const gate = byId("gate");
  document.addEventListener("ebert-token-wanted", () => {
    gate.hidden = false;
    byId("token").focus();
  });
  gate.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!byId("token").value.trim()) return;
    keepToken(byId("token").value);
    byId("token").value = "";
    gate.hidden = true;
    document.dispatchEvent(new CustomEvent("ebert-token-kept"));
  });
}

takeToken();
watchToken();
for (const tab of tabs) {
  tab.addEventListener("click", () => (location.hash = last(nameOf(tab))));
  tab.addEventListener("keydown", walkTabs);
}
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address belongs to the views
  byId("main").focus();
});
addEventListener("hashchange", route);
route();

const model = await connect();
model.places = (model.examples ?? [])
  .filter((one) => one.known)
  .flatMap((one) => parse(one.text).mentions.map((mention) => mention.entity));
views = { fill: fillView(model), link: linkView(model), explore: exploreView(model), teach: teachView(model) };
route();
document.documentElement.dataset.ready = "true";
