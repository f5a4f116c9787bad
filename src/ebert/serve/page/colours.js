// The coloured layer under the text of the editor, with its mentions and masks; and the list of its mentions.

import { el } from "./dom.js";

/**
 * Return the text in parts, with the classes that colour them. `chosen` and `anchor` are [start, end] or nothing: the
 * words that are being marked, and the words above a popover.
 */
export function colours({ text, mentions, mask, unknown, chosen, anchor }) {
  const cuts = new Set([0, text.length]);
  for (const { start, end } of mentions) cuts.add(start).add(end);
  for (const at of anchor ?? []) cuts.add(Math.min(at, text.length));
  const places = [...cuts].sort((one, other) => one - other);
  const within = (start, end, span) => Boolean(span && start >= span[0] && end <= span[1]);
  const parts = places.slice(1).map((end, number) => {
    const start = places[number];
    const mention = mentions.find((one) => within(start, end, [one.start, one.end]));
    const kinds = [
      mention && "entity",
      mention && unknown.has(mention.entity) && "unknown",
      within(start, end, chosen) && "chosen",
    ];
    const names = kinds.filter(Boolean).join(" ");
    return el(
      "span",
      { class: names || null, "data-anchor": within(start, end, anchor) },
      ...masked(text.slice(start, end), mask),
    );
  });
  return [...parts, "\u200b"]; // which keeps the height of a last empty line
}

function masked(words, mask) {
  return words
    .split(mask)
    .flatMap((piece, number) => (number ? [el("span", { class: "mask" }, mask), piece] : [piece]));
}

/** Draw a mention of the list, with a button that calls `drop`. */
export function chip(mention, { text, unknown, drop }) {
  const words = text.slice(mention.start, mention.end);
  const missing = unknown.has(mention.entity);
  return el(
    "li",
    { class: missing ? "chip unknown" : "chip" },
    el("span", {}, words === mention.entity ? words : `${words} → ${mention.entity}`),
    missing && el("span", { class: "soft" }, "no vector"),
    el("button", { type: "button", "aria-label": `Unmark ${words}`, onclick: drop }, "×"),
  );
}
