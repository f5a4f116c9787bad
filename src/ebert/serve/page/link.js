// The view Link: a text to find entities in, and what was found.

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
  text.value = Object.values(SAMPLES)[0];
  put(
    byId("link-samples"),
    ...Object.entries(SAMPLES).map(([name, sample]) =>
      el(
        "li",
        {},
        el(
          "button",
          {
            type: "button",
            class: "pill",
            onclick: () => {
              text.value = sample;
              go();
            },
          },
          name,
        ),
      ),
    ),
  );
  const usual = model.linker?.rounds ?? 1;
  const choices = Array.from({ length: Math.max(MOST_ROUNDS, usual) }, (_, number) => number + 1);
  byId("link-rounds").append(...choices.map((n) => el("option", { value: n, selected: n === Math.max(usual, 3) }, n)));
  if (model.linker) byId("link-name").textContent = `Linker: ${model.linker.name}`;
  else put(byId("link-results"), without());

  byId("link-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) go();
  });

  async function go() {
    await run("Reading the text and weighing candidates …", async (signal) => {
      const body = { text: text.value, rounds: Number(byId("link-rounds").value), trace: true };
      const answer = await ask("api/link", { body, signal });
      const linked = new LinkedText(answer, run.say);
      put(byId("link-results"), linked.root);
      return `Found ${plural(answer.mentions.length, "entity", "entities")}.`;
    });
  }

  return { open() {} };
}

function without() {
  return el(
    "div",
    { class: "card empty" },
    el("h2", {}, "No linker here"),
    el("p", {}, "This service has a model but nothing that links. Start it with one:"),
    el("pre", {}, "ebert serve MODEL --linker LINKER"),
  );
}
