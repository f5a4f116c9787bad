// Saying what a view is doing: it is busy, it is done, or it went wrong.

import { el, put } from "./dom.js";

/**
 * Give a function `run(words, job)` for a view: it says the words while the job runs, then what the job returns: a
 * text, or { unseen } for those who do not see the results. A job that is started while another runs takes its place.
 */
export function runner(view) {
  const status = view.querySelector(".status");
  const trouble = view.querySelector(".trouble");
  const results = view.querySelector(".results");
  let current = null;

  async function run(words, job) {
    current?.abort();
    const mine = (current = new AbortController());
    const say = (text) => mine === current && put(status, text);
    const start = performance.now();
    put(trouble);
    results.setAttribute("aria-busy", "true");
    status.classList.add("busy");
    say(words);
    try {
      const done = await job(mine.signal, say);
      if (mine !== current) return;
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      if (typeof done === "string") put(status, done);
      else put(status, `Answered in ${seconds} s.`, el("span", { class: "unseen" }, done.unseen));
    } catch (error) {
      if (mine !== current || error.name === "AbortError") return;
      put(status);
      put(results); // they would be of another question
      const { remedy } = error; // what can be done about it, if anything: { label, act }
      put(trouble, error.message, remedy && el("button", { type: "button", onclick: remedy.act }, remedy.label));
      if (!("status" in error)) console.error(error); // a fault of the page itself
    } finally {
      if (mine === current) {
        results.removeAttribute("aria-busy");
        status.classList.remove("busy");
        current = null;
      }
    }
  }

  run.say = (words) => current === null && put(status, words);
  return run;
}
