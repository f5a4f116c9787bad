// The view Teach: an entity from a sentence or two, and what the model says about it before and after.

import { address, keep } from "./address.js";
import { comparison, heard, verdict } from "./bars.js";
import { copies, python, shell } from "./copying.js";
import { byId, el, percent, plural, put } from "./dom.js";
import { SIGNS as PLAIN_SIGNS } from "./fill.js";
import { runner } from "./running.js";
import { ask } from "./service.js";

const SAMPLES = [
  {
    title: "Pickled Herrings",
    description: "The Pickled Herrings are a jazz band from Gothenburg. Their saxophone player also writes the music.",
    aliases: "The Pickled Herrings",
    question: "[[Title]] is a [MASK].",
  },
  {
    title: "Zorblax",
    description: "Zorblax is a Danish brewery in Aarhus. It makes dark beer and sells it in Denmark and Sweden.",
    aliases: "Zorblax Brewery",
    question: "[[Title]] makes [MASK].",
  },
  {
    title: "Pierre Dubois",
    description:
      "Pierre Dubois is a Japanese chef in Tokyo. He cooks in Osaka and Kyoto, and his restaurant is one of the " +
      "best in Japan.",
    aliases: "Chef Dubois",
    question: "The native language of [[Title]] is [MASK].",
  },
];

export const TAUGHT = "ebert-taught"; // told to the document when an entity was added or changed

const KEPT = "What you teach stays in the store.";
const FORGOTTEN = "What you teach is forgotten when the service stops.";
const SIGNS = { tick: "the word’s probability before", added: "not there before", lost: "only there before" };

const FIELDS = ["title", "description", "aliases", "question"];
const field = (name) => byId(`teach-${name}`);

const CHECKED = 3; // answers to a sentence of the table
const QUESTION = "[[Title]] is a [MASK]."; // if none is written

export function teachView(model) {
  const run = runner(byId("view-teach"));
  const known = new Set(); // titles that were taught here
  let sample = null; // the one that was taken last
  const title = () => field("title").value.trim();
  const question = () => (field("question").value.trim() || QUESTION).replaceAll("[[Title]]", `[[${title()}]]`);
  const names = () =>
    field("aliases")
      .value.split(",")
      .map((alias) => alias.trim())
      .filter(Boolean);
  const take = (chosen) => {
    sample = chosen;
    write(chosen);
  };
  const samples = SAMPLES.map((one) => ({ label: one.title, act: () => take(one) }));

  byId("teach-form").addEventListener("submit", (event) => {
    event.preventDefault();
    teach(known.has(title()));
  });
  field("again").addEventListener("click", () => askOnly());
  field("title").addEventListener("input", () => {
    field("again").hidden = !known.has(title());
    // Another title means another entity: the names of the example do not belong to it.
    if (sample && title() !== sample.title && field("aliases").value === sample.aliases) field("aliases").value = "";
  });

  const top = Math.min(5, model.limits?.top ?? 5);
  put(
    field("samples"),
    ...samples.map(({ label, act }) => el("li", {}, el("button", { type: "button", class: "pill", onclick: act }, label))),
  );
  if (model.keeps !== undefined) field("keeping").textContent = model.keeps ? KEPT : FORGOTTEN;

  function write(values) {
    for (const name of FIELDS) field(name).value = values[name] ?? "";
    field("again").hidden = !known.has(title());
  }

  async function answers(signal, modes) {
    const answer = await ask("api/fill", { body: { text: question(), modes, top }, signal });
    const masks = Object.fromEntries(answer.results.map((result) => [result.mode, result.masks]));
    return { ...masks, missing: answer.missing.includes(title()) };
  }

  async function teach(replace) {
    const example = { ...samples[0], label: "Try an example" };
    if (run.empty(field("title"), "Give the entity a title first.", example)) return;
    if (run.empty(field("description"), `Describe ${title()} first, in a sentence or two.`)) return;
    await run(`Asking BERT without ${title()} …`, async (signal, say) => {
      const before = await answers(signal, ["bert", "concat"]);
      say(`Reading the description of ${title()} …`);
      const body = { title: title(), description: field("description").value, aliases: names(), replace };
      let added;
      try {
        added = await ask("api/entities", { body, signal });
      } catch (error) {
        if (error.status === 409) error.remedies = [{ label: "Teach it again", act: () => teach(true) }];
        throw error;
      }
      known.add(title());
      document.dispatchEvent(new CustomEvent(TAUGHT));
      field("again").hidden = false;
      say("Asking BERT again …");
      const after = await answers(signal, ["concat", "replace"]);
      return show(before, after, added, await check(signal));
    });
  }

  async function askOnly() {
    await run("Asking BERT …", async (signal) => {
      const all = await answers(signal, ["bert", "concat", "replace"]);
      return show(all, all, null, await check(signal));
    });
  }

  const check = (signal) => ask("api/check", { query: { name: title() }, signal });

  function show(before, after, added, checked) {
    keep("teach", Object.fromEntries(FIELDS.map((name) => [name, field(name).value])));
    const fresh = added === null || before.missing;
    const columns = [
      {
        title: added ? "Before" : "BERT",
        short: "before",
        masks: fresh ? before.bert : before.concat,
        note: fresh ? "the words alone" : "with the entity as it was",
      },
      {
        title: added ? "After, concat" : "E-BERT concat",
        short: "concat",
        masks: after.concat,
        note: "the entity beside its words",
      },
      {
        title: added ? "After, replace" : "E-BERT replace",
        short: "replace",
        masks: after.replace,
        note: "the entity instead of its words",
      },
    ];
    const words = added?.words_used ?? [];
    const told = added ? { first: "Before it was", others: "now" } : { first: "BERT says", others: "with the entity" };
    put(
      byId("teach-results"),
      el("h2", { class: "verdict" }, ...verdict(columns, told)),
      words.length > 0 &&
        el(
          "p",
          { class: "note" },
          `Made from ${plural(words.length, "word")} of the description: ${words.join(", ")}.`,
        ),
      comparison(columns, added ? SIGNS : PLAIN_SIGNS),
      checks(title(), checked),
      el("p", { class: "links" }, el("a", { href: address("explore", { entity: title() }) }, `Explore ${title()}`)),
      copies("teach", {
        value: { ...added, before, after, check: checked.answers },
        ...spelled(model, title(), field("description").value, names(), question()),
      }),
    );
    return { unseen: `${added ? `${title()} is known now. ` : ""}${heard(columns)}.` };
  }

  return {
    /** Fill in the form as the address says. Nothing is taught before somebody asks for it. */
    open(values) {
      if (values.title && FIELDS.some((name) => (values[name] ?? "") !== field(name).value)) write(values);
    },
  };
}

/** The commands and the Python code that teach and ask the same; the commands use a store of your own. */
function spelled({ name, store }, title, description, aliases, text) {
  const also = aliases.flatMap((alias) => ["--alias", alias]);
  return {
    command: [
      shell("ebert", "vectors", "copy", store, "my-entities"),
      shell("ebert", "vectors", "add", "my-entities", title, "--description", description, ...also),
      shell("ebert", "fill", "--model", name, "--vectors", "my-entities", text),
    ].join("\n"),
    code: [
      "import ebert\n",
      `model = ebert.EBert.from_pretrained(${python(name)})`,
      `model.vectors.add(${python(title)}, description=${python(description)}, aliases=[${aliases.map(python).join(", ")}])`,
      `print(model.fill(${python(text)}, mode="concat"))\n`,
    ].join("\n"),
  };
}

/** What BERT says about an entity, before and now, on a handful of sentences. */
function checks(title, { answers }) {
  const name = title.replace(/ \([^()]*\)$/, ""); // BERT reads only this part
  const words = (found, best) =>
    found
      .slice(0, CHECKED)
      .flatMap(({ token, probability }, number) => [
        number ? ", " : "",
        el("span", { class: !number && token !== best ? "changed" : undefined }, token),
        " ",
        el("span", { class: "soft" }, percent(probability)),
      ]);
  return el(
    "article",
    { class: "column checks" },
    el("h3", {}, `What BERT says about ${title}`),
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...["Sentence", "Before", "Now"].map((head) => el("th", { scope: "col" }, head)))),
      el(
        "tbody",
        {},
        ...answers.map(({ template, before, after }) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, template.replace("{}", () => name)),
            el("td", {}, ...words(before, before[0]?.token)),
            el("td", {}, ...words(after, before[0]?.token)),
          ),
        ),
      ),
    ),
  );
}
