// The view Teach: an entity from a sentence or two, and what the model says about it before and after.

import { comparison, heard, verdict } from "./bars.js";
import { byId, el, plural, put } from "./dom.js";
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
const SIGNS = { tick: "what the word had before", added: "not there before", lost: "only there before" };

const field = (name) => byId(`teach-${name}`);

export function teachView(model) {
  const run = runner(byId("view-teach"));
  const take = (sample) => {
    for (const [name, value] of Object.entries(sample)) field(name).value = value;
    field("again").hidden = !known.has(title());
  };
  const known = new Set(); // titles that were taught here
  const title = () => field("title").value.trim();

  byId("teach-form").addEventListener("submit", (event) => {
    event.preventDefault();
    teach(known.has(title()));
  });
  field("again").addEventListener("click", () => askOnly());
  field("title").addEventListener("input", () => (field("again").hidden = !known.has(title())));

  const top = Math.min(5, model.limits?.top ?? 5);
  put(
    field("samples"),
    ...SAMPLES.map((sample) =>
      el("li", {}, el("button", { type: "button", class: "pill", onclick: () => take(sample) }, sample.title)),
    ),
  );
  take(SAMPLES[0]);
  if (model.keeps !== undefined) field("keeping").textContent = model.keeps ? KEPT : FORGOTTEN;

  async function answers(signal, modes) {
    const text = field("question").value.replaceAll("[[Title]]", `[[${title()}]]`);
    const answer = await ask("api/fill", { body: { text, modes, top }, signal });
    const masks = Object.fromEntries(answer.results.map((result) => [result.mode, result.masks]));
    return { ...masks, missing: answer.missing.includes(title()) };
  }

  async function teach(replace) {
    await run(`Asking BERT before it knows ${title()} …`, async (signal, say) => {
      const before = await answers(signal, ["bert", "concat"]);
      say(`Reading the description of ${title()} …`);
      const aliases = field("aliases")
        .value.split(",")
        .map((alias) => alias.trim())
        .filter(Boolean);
      const body = { title: title(), description: field("description").value, aliases, replace };
      let added;
      try {
        added = await ask("api/entities", { body, signal });
      } catch (error) {
        if (error.status === 409) error.remedy = { label: "Teach it anew", act: () => teach(true) };
        throw error;
      }
      known.add(title());
      document.dispatchEvent(new CustomEvent(TAUGHT));
      field("again").hidden = false;
      say("Asking BERT again …");
      const after = await answers(signal, ["concat", "replace"]);
      return show(before, after, added);
    });
  }

  async function askOnly() {
    await run("Asking BERT …", async (signal) => {
      const all = await answers(signal, ["bert", "concat", "replace"]);
      return show(all, all, null);
    });
  }

  function show(before, after, added) {
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
      el(
        "p",
        { class: "links" },
        el("a", { href: `#explore/entity/${encodeURIComponent(title())}` }, `Explore ${title()}`),
      ),
    );
    return { unseen: `${added ? `${title()} is known now. ` : ""}${heard(columns)}.` };
  }

  return { open() {} };
}
