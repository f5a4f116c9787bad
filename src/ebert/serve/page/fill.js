// The view Fill: a sentence, its entities, and what plain BERT and E-BERT answer.

import { comparison, heard, pieces, verdict } from "./bars.js";
import { byId, el, listed } from "./dom.js";
import { Editor } from "./editor.js";
import { parse } from "./mentions.js";
import { runner } from "./running.js";
import { ask } from "./service.js";

/** What the modes are called, and what they read. */
export const MODES = {
  bert: { title: "BERT", note: "the words alone" },
  concat: { title: "E-BERT concat", note: "the entity beside its words" },
  replace: { title: "E-BERT replace", note: "the entity instead of its words" },
};

export function fillView(model) {
  const view = byId("view-fill");
  const run = runner(view);
  const status = view.querySelector(".status");
  const editor = new Editor({
    root: byId("fill-editor"), marks: byId("fill-marks"), id: "fill-text", describedby: "fill-hint",
    submit: () => go(), say: (words) => (status.textContent = words),
  });
  let started = false;

  byId("fill-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  byId("fill-mark").addEventListener("click", () => editor.offer({ focus: true }));
  byId("fill-mask").addEventListener("click", () => editor.insertMask());
  byId("fill-top").addEventListener("change", () => go());
  byId("fill-examples").append(...groups(model.examples ?? [], take));
  editor.mask = model.mask ?? editor.mask;

  function take(example) {
    editor.set(example.text);
    go(example.note);
  }

  async function go(note = "") {
    const asked = editor.marked;
    await run("Asking BERT with and without the entities …", async (signal) => {
      const top = Math.min(Number(byId("fill-top").value), model.limits?.top ?? Infinity);
      const answer = await ask("api/fill", { body: { ...editor.request, top }, signal });
      history.replaceState(null, "", `#fill/${encodeURIComponent(asked)}`);
      editor.missing(answer.missing ?? []);
      const columns = answer.results.map((result) => ({ ...MODES[result.mode], key: result.mode, ...result }));
      byId("fill-results").replaceChildren(...shown(columns, answer, note));
      return `Answered. ${heard(columns)}.`;
    });
  }

  return {
    open(argument) {
      if (argument && argument !== editor.marked) {
        editor.set(argument);
        go();
      } else if (!started && !editor.text && model.examples?.length) {
        take(model.examples[0]);
      }
      started = true;
    },
  };
}

function shown(columns, answer, note) {
  const marked = answer.mentions.length > 0;
  const others = marked ? "with the entity" : "with no entity marked";
  const missing = answer.missing ?? [];
  return [
    el("h2", { class: "verdict" }, ...verdict(columns, { first: "BERT says", others })),
    note && el("p", { class: "note" }, note),
    !marked && el("p", { class: "notice" }, "No entity is marked, so all three read the same words. Select a name above."),
    missing.length > 0 && el("p", { class: "notice" }, `There is no vector for ${listed(missing)}: its words are read as plain words.`),
    comparison(columns),
    pieces(columns, new Set(answer.mentions.map((mention) => mention.entity))),
  ].filter(Boolean);
}

function groups(examples, take) {
  const byName = Map.groupBy(examples, (example) => example.group ?? "Examples");
  return [...byName].map(([name, members]) =>
    el("div", { class: "group", role: "group", "aria-label": name },
      el("p", { class: "caption" }, name),
      el("ul", { class: "pills" }, ...members.map((example) =>
        el("li", {}, el("button", { type: "button", class: "pill", title: parse(example.text).text, onclick: () => take(example) },
          label(example)))))));
}

function label(example) {
  const { text, mentions } = parse(example.text);
  return mentions.length ? listed(mentions.map((mention) => text.slice(mention.start, mention.end))) : text;
}
