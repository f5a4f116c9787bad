// The view Teach: an entity from a sentence or two, and what the model says about it before and after.

import { comparison, heard, verdict } from "./bars.js";
import { byId, el, plural } from "./dom.js";
import { runner } from "./running.js";
import { ask } from "./service.js";

const START = {
  title: "Zorblax",
  description: "Zorblax is a Danish brewery in Aarhus. It makes dark beer and sells it in Denmark and Sweden.",
  aliases: "Zorblax Brewery",
  question: "[[Title]] is located in [MASK].",
};

const field = (name) => byId(`teach-${name}`);

export function teachView(model) {
  const run = runner(byId("view-teach"));
  for (const [name, value] of Object.entries(START)) field(name).value = value;
  const known = new Set(); // titles that were taught here

  byId("teach-form").addEventListener("submit", (event) => {
    event.preventDefault();
    teach(known.has(title()));
  });
  field("again").addEventListener("click", () => askOnly());
  field("title").addEventListener("input", () => (field("again").hidden = !known.has(title())));

  const title = () => field("title").value.trim();
  const top = Math.min(5, model.limits?.top ?? 5);

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
      const aliases = field("aliases").value.split(",").map((alias) => alias.trim()).filter(Boolean);
      const body = { title: title(), description: field("description").value, aliases, replace };
      let added;
      try {
        added = await ask("api/entities", { body, signal });
      } catch (error) {
        if (error.status === 409) error.remedy = { label: "Teach it anew", act: () => teach(true) };
        throw error;
      }
      known.add(title());
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
      { title: added ? "Before" : "BERT", note: fresh ? "the words alone" : "with the entity as it was", masks: fresh ? before.bert : before.concat },
      { title: added ? "After, concat" : "E-BERT concat", note: "the entity beside its words", masks: after.concat },
      { title: added ? "After, replace" : "E-BERT replace", note: "the entity instead of its words", masks: after.replace },
    ];
    const words = added?.words_used ?? [];
    byId("teach-results").replaceChildren(...[
      el("h2", { class: "verdict" }, ...verdict(columns, { first: added ? "Before it was" : "BERT says", others: added ? "now" : "with the entity" })),
      words.length > 0 && el("p", { class: "note" }, `Made from ${plural(words.length, "word")} of the description: ${words.join(", ")}.`),
      comparison(columns),
      el("p", { class: "links" }, el("a", { href: `#explore/entity/${encodeURIComponent(title())}` }, `Explore ${title()}`)),
    ].filter(Boolean));
    return `${added ? `${title()} is known now. ` : ""}${heard(columns)}.`;
  }

  return { open() {} };
}
