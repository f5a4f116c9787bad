// Copying a result: its link, its JSON, and the command line and the Python code that give the same result.

import { shared } from "./address.js";
import { el, put } from "./dom.js";

/** Write words for a shell. */
export const shell = (...words) =>
  words.map((word) => (/^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

/** Write a text for Python, which reads strings as JSON writes them. */
export const python = (text) => JSON.stringify(text);

/** Make the row of buttons that copy a result of a view: `value` as JSON, and its `command` and `code` (Python). */
export function copies(view, { value, command, code }) {
  const said = el("p", { class: "hint", role: "status" });
  const shown = el("pre", { tabindex: 0, "aria-label": "The copied text", hidden: true });
  const button = (name, write) =>
    el("button", { type: "button", class: "pill", onclick: () => copy(name, write(), said, shown) }, name);
  return el(
    "div",
    { class: "copies", role: "group", "aria-label": "Copy this result" },
    el(
      "div",
      { class: "row" },
      el("span", { class: "caption" }, "Copy"),
      button("Link", () => shared(view)),
      button("JSON", () => JSON.stringify(value, null, 2)),
      button("Command line", () => command),
      button("Python", () => code),
    ),
    said,
    shown,
  );
}

async function copy(name, text, said, shown) {
  let words = `${name} copied:`;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    words = "The browser does not let this page copy. Select the text here:"; // as on a page without TLS
  }
  put(said, words);
  put(shown, text);
  shown.hidden = false;
}
