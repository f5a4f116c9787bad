// The view Fill: a sentence, its entities, and what plain BERT and E-BERT answer.

import { keep } from "./address.js";
import { comparison, heard, pieces, verdict } from "./bars.js";
import { copies, python, shell } from "./copying.js";
import { byId, el, listed, put } from "./dom.js";
import { Editor } from "./editor.js";
import { parse } from "./mentions.js";
import { runner } from "./running.js";
import { ask } from "./service.js";

/** What the modes are called, and what they read. */
const MODES = {
  bert: { title: "BERT", short: "BERT", note: "the words alone" },
  concat: { title: "E-BERT concat", short: "concat", note: "the entity beside its words" },
  replace: { title: "E-BERT replace", short: "replace", note: "the entity instead of its words" },
};

const UNMARKED = "No entity is marked, so all three read the same words. Select a name in the sentence to mark it.";

const USUAL = 5; // answers for each mask

/** What the signs at the answers mean. */
export const SIGNS = {
  tick: "BERT’s probability for the same word",
  added: "not among BERT’s answers",
  lost: "BERT’s answer, in neither of the others",
};

export function fillView(model) {
  const run = runner(byId("view-fill"));
  const editor = new Editor({
    root: byId("fill-editor"),
    marks: byId("fill-marks"),
    id: "fill-text",
    describedby: "fill-hint",
    submit: () => go(),
    say: run.say,
  });
  editor.mask = model.mask ?? editor.mask;
  const examples = model.examples ?? [];

  byId("fill-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  byId("fill-mark").addEventListener("click", () => editor.offer({ focus: true }));
  byId("fill-mask").addEventListener("click", () => editor.insertMask());
  byId("fill-top").addEventListener("change", () => go());
  drawExamples();

  function take(chosen, how) {
    editor.set(chosen.text);
    go(how);
  }

  function drawExamples() {
    const groups = Map.groupBy(examples, (one) => one.group ?? "Examples");
    put(
      byId("fill-examples"),
      ...[...groups].map(([name, members]) =>
        el(
          "div",
          { class: "group", role: "group", "aria-label": name },
          el("p", { class: "caption" }, name),
          el(
            "ul",
            { class: "pills" },
            ...members.map((one) =>
              el(
                "li",
                {},
                el(
                  "button",
                  {
                    type: "button",
                    class: "pill",
                    title: parse(one.text).text,
                    "data-text": one.text,
                    onclick: () => take(one),
                  },
                  label(one),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }

  async function go(how) {
    const asked = editor.marked;
    markExample(asked);
    const remedies = examples.slice(0, 1).map((one) => ({ label: "Try an example", act: () => take(one) }));
    if (run.empty(editor.area, `Write a sentence first, with ${editor.mask} where the answer goes.`, ...remedies))
      return;
    const job = async (signal) => {
      const top = Math.min(Number(byId("fill-top").value), model.limits?.top ?? Infinity);
      const answer = await ask("api/fill", { body: { ...editor.request, top }, signal });
      keep("fill", { text: asked, top: top === USUAL ? "" : top });
      editor.missing(answer.missing);
      const columns = answer.results.map((result) => ({ ...MODES[result.mode], ...result }));
      put(
        byId("fill-results"),
        ...shown(columns, answer, examples.find((one) => one.text === asked)?.note),
        copies("fill", { value: answer, ...spelled(model.name, asked, top, answer.results) }),
      );
      return { unseen: `${heard(columns)}.` };
    };
    await run("Asking BERT with and without the entities …", job, how);
  }

  function markExample(asked) {
    for (const pill of byId("fill-examples").querySelectorAll(".pill")) {
      if (pill.dataset.text === asked) pill.setAttribute("aria-current", "true");
      else pill.removeAttribute("aria-current");
    }
  }

  return {
    open({ text, top = String(USUAL) }) {
      if (text && (text !== editor.marked || top !== byId("fill-top").value)) {
        editor.set(text);
        byId("fill-top").value = top;
        go();
      } else if (!editor.text && examples.length) {
        take(examples[0], { still: true });
      }
    },
  };
}

/** The command and the Python code that give the same result. */
function spelled(model, text, top, results) {
  const modes = results.map((result) => python(result.mode)).join(", ");
  return {
    command: shell("ebert", "fill", "--model", model, "--top", String(top), text),
    code: [
      "import ebert\n",
      `model = ebert.EBert.from_pretrained(${python(model)})`,
      `for mode in [${modes}]:`,
      `    print(mode, model.fill(${python(text)}, mode=mode, top=${top}))\n`,
    ].join("\n"),
  };
}

function shown(columns, { mentions, missing }, note) {
  const known = mentions.filter((mention) => !missing.includes(mention.entity));
  const others = known.length ? `with ${known.length > 1 ? "the entities" : "the entity"}` : "without an entity";
  return [
    el("h2", { class: "verdict" }, ...verdict(columns, { first: "BERT says", others })),
    note && el("p", { class: "note" }, note),
    !mentions.length && el("p", { class: "notice" }, UNMARKED),
    missing.length > 0 &&
      el("p", { class: "notice" }, `There is no vector for ${listed(missing)}, so its words are read as plain words.`),
    comparison(columns, SIGNS),
    pieces(columns),
  ];
}

function label(example) {
  const { text, mentions } = parse(example.text);
  return mentions.length ? listed(mentions.map((mention) => mention.entity)) : text;
}
