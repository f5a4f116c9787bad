// The view Link: a text to find entities in, and what was found.

import { keep } from "./address.js";
import { copies, python, shell } from "./copying.js";
import { byId, el, plural, put } from "./dom.js";
import { LinkedText } from "./linked.js";
import { runner } from "./running.js";
import { ask } from "./service.js";

const SAMPLES = {
  "The Beatles":
    "The Beatles played in Hamburg before they became famous in Liverpool. John Lennon and Paul McCartney wrote most " +
    "of their songs.",
  "Two jaguars":
    "Jaguar and Land Rover were sold by Ford to Tata Motors. The jaguar lives in the Amazon, from Brazil to Bolivia.",
  Mozart:
    "Mozart was born in Salzburg and died in Vienna, where he knew Haydn. His opera Don Giovanni was first " +
    "played in Prague.",
};
const MOST_ROUNDS = 5;

export function linkView(model) {
  const run = runner(byId("view-link"));
  const text = byId("link-text");
  const rounds = byId("link-rounds");
  const samples = Object.entries(SAMPLES).map(([name, sample]) => ({ label: name, act: () => take(sample) }));
  put(
    byId("link-samples"),
    ...samples.map(({ label, act }) => el("li", {}, el("button", { type: "button", class: "pill", onclick: act }, label))),
  );
  const usual = model.linker?.rounds ?? 1;
  const choices = Array.from({ length: Math.max(MOST_ROUNDS, usual) }, (_, number) => number + 1);
  rounds.append(...choices.map((n) => el("option", { value: n, selected: n === usual }, n)));
  if (model.linker) byId("link-name").textContent = `Linker: ${model.linker.name}`;
  else put(byId("link-results"), without());

  byId("link-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) go();
  });

  function take(sample, how) {
    text.value = sample;
    go({}, how);
  }

  /** Link the text, and show it as `state` says: { step, least, chosen }. */
  async function go(state = {}, how = {}) {
    if (run.empty(text, "Write or paste a text first.", { ...samples[0], label: "Try an example" })) return;
    const job = async (signal) => {
      const asked = { text: text.value, rounds: Number(rounds.value) };
      const answer = await ask("api/link", { body: { ...asked, trace: true }, signal });
      const moved = (now) => keep("link", { text: asked.text, rounds: asked.rounds === usual ? "" : asked.rounds, ...now });
      const linked = new LinkedText(answer, { say: run.say, moved, ...state });
      put(byId("link-results"), linked.root, copies("link", { value: answer, ...spelled(model, asked) }));
      return `Found ${plural(answer.mentions.length, "entity", "entities")}.`;
    };
    await run("Reading the text and weighing candidates …", job, how);
  }

  return {
    open({ text: wanted, rounds: times = String(usual), ...state }) {
      if (wanted && (wanted !== text.value || times !== rounds.value)) {
        text.value = wanted;
        rounds.value = times;
        go(state);
      } else if (!text.value && model.linker) {
        take(Object.values(SAMPLES)[0], { still: true });
      }
    },
  };
}

/** The command and the Python code that give the same result. */
function spelled({ name, linker }, { text, rounds }) {
  const own = linker.name.startsWith(`${name} (`) ? name : linker.name; // of a model that links without training
  return {
    command: shell("ebert", "link", "run", own, "--rounds", String(rounds), "--text", text),
    code: [
      "import ebert\n",
      `linker = ebert.Linker.from_pretrained(${python(own)}, rounds=${rounds})`,
      `for mention in linker(${python(text)}).mentions:`,
      "    print(mention.text, mention.entity, mention.probability)\n",
    ].join("\n"),
  };
}

function without() {
  return el(
    "div",
    { class: "card empty" },
    el("h2", {}, "No linker here"),
    el("p", {}, "This service has a model but no linker. Start it with one:"),
    el("pre", {}, "ebert serve MODEL --linker LINKER"),
  );
}
