// Saying what a view is doing: it is busy, it is done, or it went wrong.

import { el } from "./dom.js";

/** Give a function `run(words, job)` for a view: it says the words while the job runs, and then what the job returns. */
export function runner(view) {
  const status = view.querySelector(".status");
  const trouble = view.querySelector(".trouble");
  const results = view.querySelector(".results");
  let current = null;

  return async function run(words, job) {
    current?.abort();
    const mine = (current = new AbortController());
    const say = (text) => {
      if (mine === current) status.textContent = text;
    };
    trouble.replaceChildren();
    results.setAttribute("aria-busy", "true");
    status.classList.add("busy");
    say(words);
    try {
      const done = await job(mine.signal, say);
      say(done ?? "");
    } catch (error) {
      if (mine !== current || error.name === "AbortError") return;
      say("");
      const { remedy } = error; // what can be done about it, if anything: { label, act }
      trouble.replaceChildren(error.message, ...(remedy ? [el("button", { type: "button", onclick: remedy.act }, remedy.label)] : []));
      if (!("status" in error)) console.error(error); // a fault of the page itself
    } finally {
      if (mine === current) {
        results.removeAttribute("aria-busy");
        status.classList.remove("busy");
        current = null;
      }
    }
  };
}
