// Answers side by side: what the first column (the base) says, and what the others say differently.

import { el, listed, percent, styled } from "./dom.js";

/**
 * Draw columns of answers, a block for every mask. A column is { title, note, masks: [[{ token, probability }]] }.
 * Answers of a later column that the base does not have are new; answers of the base that no other keeps are lost.
 * `signs` explains the signs: { tick, added, lost }.
 */
export function comparison(columns, signs) {
  const count = Math.max(...columns.map((column) => column.masks.length));
  const blocks = Array.from({ length: count }, (_, mask) =>
    el(
      "div",
      { class: "block" },
      count > 1 && el("h3", { class: "blank" }, `Blank ${mask + 1}`),
      el("div", { class: "columns" }, ...columns.map((_, number) => column(columns, number, mask))),
    ),
  );
  return el("div", { class: "comparison" }, ...blocks, columns.length > 1 && legend(signs));
}

/** Say in a sentence how the best answers differ: `first` introduces the base's answer, `others` the other answers. */
export function verdict(columns, { first, others }) {
  const [base, ...rest] = columns.map(best);
  const strong = (words, changed) => el("strong", { class: changed ? "changed" : undefined }, words);
  if (!rest.length) return [`${first} `, strong(base), "."];
  const said = [...new Set(rest)];
  if (said.length === 1 && said[0] === base)
    return [`${first} `, strong(base), `; ${others}, still `, strong(base), "."];
  if (said.length === 1) return [`${first} `, strong(base), `; ${others}, `, strong(said[0], true), "."];
  const parts = rest.flatMap((words, number) => [
    number ? " or " : "",
    strong(words, words !== base),
    ` (${columns[number + 1].short})`,
  ]);
  return [`${first} `, strong(base), `; ${others}, `, ...parts, "."];
}

/** Say the best answers, for screen readers. */
export const heard = (columns) => listed(columns.map((one) => `${one.title}: ${best(one)}`));

const best = ({ masks }) => masks.map((answers) => answers[0]?.token ?? "nothing").join(" … ");
const tokens = (answers) => new Set((answers ?? []).map((answer) => answer.token));

function column(columns, number, mask) {
  const { title, note, masks } = columns[number];
  const answers = masks[mask] ?? [];
  const base = columns[0].masks[mask] ?? [];
  const others = columns.slice(1).map((one) => tokens(one.masks[mask]));
  const known = new Map(base.map(({ token, probability }) => [token, probability]));
  const rows = answers.map((answer) =>
    number === 0
      ? bar(answer, { lost: others.length > 0 && others.every((kept) => !kept.has(answer.token)) })
      : bar(answer, { added: !known.has(answer.token), before: known.get(answer.token) }),
  );
  const gone = number === 0 ? [] : base.map(({ token }) => token).filter((token) => !tokens(answers).has(token));
  const top = answers[0];
  const changed = number > 0 && top && top.token !== base[0]?.token;
  return el(
    "article",
    { class: number ? "column" : "column base" },
    el("header", {}, el("h3", {}, title), el("p", { class: "soft" }, note)),
    top &&
      el(
        "p",
        { class: changed ? "best changed" : "best", "data-best": top.token },
        el("span", { class: "word" }, top.token),
        el("span", { class: "share" }, percent(top.probability)),
      ),
    el("ol", { class: "bars", "aria-label": `Answers: ${title}` }, ...rows),
    gone.length > 0 &&
      el("p", { class: "gone" }, "Gone: ", ...gone.flatMap((token, index) => [index ? ", " : "", el("s", {}, token)])),
  );
}

function bar({ token, probability }, { added = false, lost = false, before } = {}) {
  const track = styled(
    el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill" })),
    "--share",
    probability,
  );
  if (before !== undefined) styled(track, "--before", before).append(el("span", { class: "before" }));
  const kinds = ["bar", added && "new", lost && "lost"].filter(Boolean).join(" ");
  return el(
    "li",
    { class: kinds, "data-token": token },
    el(
      "span",
      { class: "token" },
      el("span", { class: "word" }, token),
      added && el("span", { class: "tag" }, "new"),
      lost && el("span", { class: "tag" }, "lost"),
    ),
    el(
      "span",
      { class: "share" },
      percent(probability),
      before !== undefined && el("span", { class: "unseen" }, `, was ${percent(before)}`),
    ),
    track,
  );
}

function legend({ tick, added, lost }) {
  return el(
    "p",
    { class: "legend", "aria-hidden": "true" },
    el("span", {}, el("span", { class: "tick" }), tick),
    el("span", {}, el("span", { class: "tag new" }, "new"), added),
    el("span", {}, el("span", { class: "tag lost" }, "lost"), lost),
  );
}

/** Show what the encoder read: wordpieces, and entities in their place. */
export function pieces(columns) {
  const piece = (words, entity) => el("span", { class: entity ? "piece entity" : "piece" }, words);
  const rows = columns.map((one) =>
    el(
      "div",
      { class: "read" },
      el("dt", {}, one.title),
      el("dd", {}, ...one.pieces.map((words, index) => piece(words, one.entities.includes(index)))),
    ),
  );
  return el("details", { class: "reading" }, el("summary", {}, "What the encoder reads"), el("dl", {}, ...rows));
}
