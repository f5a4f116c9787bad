// Answers side by side: what the first column (the base) says, and what the others say differently.

import { el, listed, percent, styled } from "./dom.js";

/**
 * Draw columns of answers, a block for every mask. A column is { title, note, masks: [[{ token, probability }]] }.
 * Answers of a later column that the base does not have are new; answers of the base that no other keeps are lost.
 */
export function comparison(columns) {
  const count = Math.max(...columns.map((column) => column.masks.length));
  const blocks = Array.from({ length: count }, (_, mask) =>
    el("div", { class: "block" },
      count > 1 && el("h3", { class: "blank" }, `Blank ${mask + 1}`),
      el("div", { class: "columns" }, ...columns.map((column, number) => drawn(columns, number, mask)))));
  return el("div", { class: "comparison" }, ...blocks);
}

/** Say in a sentence how the best answers differ. `others` says who the later columns are, as in "with the entity". */
export function verdict(columns, { first, others }) {
  const [base, ...rest] = columns.map((column) => column.masks[0]?.[0]?.token ?? "nothing");
  const told = rest.map((token, number) => ({ token, title: columns[number + 1].title }));
  const said = [...new Set(rest)];
  const strong = (token, changed) => el("strong", { class: changed ? "changed" : undefined }, token);
  if (!rest.length) return [`${first} `, strong(base), "."];
  if (said.length === 1 && said[0] === base) return [`${first} `, strong(base), `, and ${others} it stays so.`];
  if (said.length === 1) return [`${first} `, strong(base), `; ${others} it is `, strong(said[0], true), "."];
  const parts = told.flatMap(({ token, title }, number) => [
    number ? ", " : "", strong(token, token !== base), ` (${title})`,
  ]);
  return [`${first} `, strong(base), `; ${others} it is `, ...parts, "."];
}

function drawn(columns, number, mask) {
  const { title, note, masks } = columns[number];
  const answers = masks[mask] ?? [];
  const base = columns[0].masks[mask] ?? [];
  const others = columns.slice(1).map((column) => tokens(column.masks[mask]));
  const known = new Map(base.map(({ token, probability }) => [token, probability]));
  const rows = answers.map((answer) =>
    number === 0
      ? bar(answer, { lost: others.length > 0 && others.every((kept) => !kept.has(answer.token)) })
      : bar(answer, { added: !known.has(answer.token), before: known.get(answer.token) }));
  const gone = number === 0 ? [] : base.map(({ token }) => token).filter((token) => !tokens(answers).has(token));
  const best = answers[0];
  const changed = number > 0 && best && best.token !== base[0]?.token;
  return el("article", { class: number ? "column" : "column base" },
    el("header", {}, el("h3", {}, title), el("p", { class: "soft" }, note)),
    best && el("p", { class: changed ? "best changed" : "best", "data-best": best.token },
      el("span", { class: "word" }, best.token), el("span", { class: "share" }, percent(best.probability))),
    el("ol", { class: "bars", "aria-label": `Answers of ${title}` }, ...rows),
    gone.length > 0 && el("p", { class: "gone" }, "No longer here: ", ...gone.flatMap((token, index) => [
      index ? ", " : "", el("s", {}, token)])));
}

function bar({ token, probability }, { added = false, lost = false, before } = {}) {
  const track = styled(el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill" })), "--share", probability);
  if (before !== undefined) styled(track, "--before", before).append(el("span", { class: "before" }));
  const kinds = ["bar", added && "new", lost && "lost"].filter(Boolean).join(" ");
  const said = before === undefined ? "" : `, was ${percent(before)}`;
  return el("li", { class: kinds, "data-token": token },
    el("span", { class: "token" }, token, added && el("span", { class: "tag" }, "new"), lost && el("span", { class: "tag" }, "lost")),
    track,
    el("span", { class: "share" }, percent(probability), el("span", { class: "unseen" }, said)));
}

/** Show what the encoder read: wordpieces, and entities in their place. */
export function pieces(results, titles) {
  const rows = results.filter((result) => result.pieces?.length).map((result) =>
    el("div", { class: "read" }, el("dt", {}, result.title),
      el("dd", {}, ...result.pieces.map((piece, index) => {
        const entity = result.entities ? result.entities.includes(index) : result.key !== "bert" && titles.has(piece.replaceAll("_", " "));
        return el("span", { class: entity ? "piece entity" : "piece" }, piece);
      }))));
  return rows.length > 0 && el("details", { class: "reading" },
    el("summary", {}, "What the encoder reads"), el("dl", {}, ...rows));
}

/** Describe the best answers for the status line. */
export function heard(columns) {
  return listed(columns.map(({ title, masks }) => `${title}: ${masks.map((mask) => mask[0]?.token ?? "nothing").join(", ")}`));
}

const tokens = (answers) => new Set((answers ?? []).map((answer) => answer.token));
