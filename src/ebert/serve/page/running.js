// Saying what a view is doing: it is busy, it is done, or it has failed.

import { el, put } from "./dom.js";

const EDGE = 16; // pixels that stay free around what is scrolled to

/**
 * Return a function `run(words, job)` for a view. It shows the words while the job runs, and then what the job returns:
 * a text, or { unseen } for screen readers. A job that is started while another runs replaces it. The page scrolls to
 * the result, but not with `still`.
 */
export function runner(view) {
  const status = view.querySelector(".status");
  const trouble = view.querySelector(".trouble");
  const results = view.querySelector(".results");
  let current = null;

  async function run(words, job, { still = false } = {}) {
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
      if (!still) reveal(results);
    } catch (error) {
      if (mine !== current || error.name === "AbortError") return;
      complain(error);
      if (!("status" in error)) console.error(error); // a fault of the page itself
    } finally {
      if (mine === current) {
        results.removeAttribute("aria-busy");
        status.classList.remove("busy");
        current = null;
      }
    }
  }

  /** Say what is wrong, and offer its remedies ({ label, act }), if it has any. */
  function complain({ message, remedies = [] }) {
    put(status);
    put(results); // they belong to another question
    const offers = remedies.map(({ label, act }) => el("button", { type: "button", onclick: act }, label));
    put(trouble, message, ...offers);
    reveal(trouble);
  }

  run.say = (words) => current === null && put(status, words);

  /** If a field is empty, say so, lead to it, and return true. */
  run.empty = (field, message, ...remedies) => {
    if (field.value.trim()) return false;
    current?.abort();
    current = null;
    status.classList.remove("busy");
    results.removeAttribute("aria-busy");
    complain({ message, remedies });
    field.focus({ preventScroll: true });
    return true;
  };
  return run;
}

/** Scroll until something is seen, or its beginning if it is higher than the window. */
function reveal(node) {
  const { top, bottom } = node.getBoundingClientRect();
  const by = top < EDGE ? top - EDGE : Math.min(top - EDGE, Math.max(0, bottom + EDGE - innerHeight));
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
  if (by) scrollBy({ top: by, behavior });
}
