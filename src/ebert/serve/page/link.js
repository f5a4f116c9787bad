// The view Link: a text with its entities, how sure the linker is, what it weighed, and in which order it decided.

import { byId, el, percent, plural, put, styled } from "./dom.js";
import { fromPoints } from "./mentions.js";
import { runner } from "./running.js";
import { ask } from "./service.js";

const SAMPLES = {
  "The Beatles":
    "The Beatles played in Hamburg before they became famous in Liverpool. John Lennon and Paul McCartney wrote most of " +
    "their songs.",
  "Two jaguars":
    "Jaguar and Land Rover were sold by Ford to Tata Motors. The jaguar lives in the Amazon, from Brazil to Bolivia.",
  Mozart:
    "Mozart was born in Salzburg and died in Vienna, where he knew Haydn. His opera Don Giovanni was first played in Prague.",
};
const MOST_ROUNDS = 5;
const SHOWN = 8; // candidates in the table; the others are counted

export function linkView(model) {
  const run = runner(byId("view-link"));
  const text = byId("link-text");
  text.value = Object.values(SAMPLES)[0];
  put(byId("link-samples"), ...Object.entries(SAMPLES).map(([name, sample]) =>
    el("li", {}, el("button", { type: "button", class: "pill", onclick: () => {
      text.value = sample;
      go();
    } }, name))));
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
  return el("div", { class: "card empty" },
    el("h2", {}, "No linker here"),
    el("p", {}, "This service has a model but nothing that links. Start it with one:"),
    el("pre", {}, "ebert serve MODEL --linker LINKER"));
}

class LinkedText {
  constructor(answer, say) {
    this.say = say;
    this.text = answer.text;
    this.unit = fromPoints(answer.text);
    this.rounds = answer.rounds?.length ? answer.rounds : [answer.mentions];
    this.round = this.rounds.length - 1;
    this.chosen = null;
    this.least = 0;
    this.prose = el("div", { class: "linked", role: "group", "aria-label": "The text with its entities" });
    this.detail = el("aside", { class: "card detail", "aria-label": "Candidates" });
    this.root = el("div", { class: "linking" },
      el("div", { class: "card" }, this.controls(), this.prose, legend()), this.detail);
    this.draw();
  }

  controls() {
    this.where = el("span", { class: "where", role: "status" });
    this.back = el("button", { type: "button", "aria-label": "Earlier round", onclick: () => this.step(-1) }, "←");
    this.forth = el("button", { type: "button", "aria-label": "Later round", onclick: () => this.step(1) }, "→");
    const sure = el("output", {}, "all");
    const slider = el("input", {
      type: "range", min: 0, max: 95, step: 5, value: 0, "aria-label": "Show entities at least so sure",
      oninput: () => {
        this.least = Number(slider.value) / 100;
        sure.textContent = this.least ? `from ${slider.value}%` : "all";
        this.draw();
      },
    });
    return el("div", { class: "controls" },
      el("div", { class: "stepper", role: "group", "aria-label": "Rounds of refinement" }, this.back, this.where, this.forth),
      el("label", { class: "inline" }, "Show", slider, sure));
  }

  step(by) {
    this.round = Math.min(Math.max(this.round + by, 0), this.rounds.length - 1);
    this.draw();
  }

  draw() {
    const mentions = this.rounds[this.round];
    const before = new Set((this.rounds[this.round - 1] ?? []).map(key));
    const shown = mentions.filter((mention) => mention.probability >= this.least);
    const fresh = shown.filter((mention) => !before.has(key(mention)));
    const parts = [];
    let last = 0;
    for (const mention of shown) {
      parts.push(this.text.slice(last, this.unit(mention.start)), this.entity(mention, this.round > 0 && fresh.includes(mention)));
      last = this.unit(mention.end);
    }
    put(this.prose, ...parts, this.text.slice(last));
    // Not `disabled`: that would take the focus from whoever steps with the keyboard.
    this.back.setAttribute("aria-disabled", String(this.round === 0));
    this.forth.setAttribute("aria-disabled", String(this.round === this.rounds.length - 1));
    this.where.textContent = this.said(mentions.length, fresh.length);
    const kept = shown.find((mention) => this.chosen && key(mention) === key(this.chosen));
    this.show(kept ?? null, shown.length);
  }

  said(count, fresh) {
    const round = `Round ${this.round + 1} of ${this.rounds.length}`;
    return `${round}: ${plural(count, "entity", "entities")}${this.round ? `, ${fresh} new` : ""}`;
  }

  entity(mention, fresh) {
    const open = () => {
      this.chosen = mention;
      this.draw();
      this.prose.querySelector("[aria-pressed=true]")?.focus();
      this.say(`${mention.text} is ${mention.entity}. ${plural(mention.candidates.length, "candidate")} weighed.`);
    };
    const node = el("span", {
      class: fresh ? "entity new" : "entity", role: "button", tabindex: 0, title: mention.entity,
      "aria-pressed": String(Boolean(this.chosen && key(this.chosen) === key(mention))),
      "aria-label": `${mention.text}: ${mention.entity}, ${percent(mention.probability)} sure`,
      onclick: open,
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        open();
      },
    }, mention.text, el("span", { class: "sure" }, percent(mention.probability)));
    return styled(node, "--sure", mention.probability);
  }

  show(mention, count) {
    if (!mention) {
      const words = count ? "Choose an entity in the text to see what else it could have been." : "No entity was found here.";
      put(this.detail, el("p", { class: "soft" }, words));
      return;
    }
    const { text, entity, url, candidates, null_probability: none } = mention;
    const page = url?.startsWith("https://") && el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, "Wikipedia ↗");
    put(this.detail,
      el("h2", {}, `“${text}”`),
      el("p", { class: "links" }, el("strong", {}, entity), page,
        el("a", { href: `#explore/entity/${encodeURIComponent(entity)}` }, "Explore")),
      table(candidates, entity, none),
      candidates.length > SHOWN && el("p", { class: "soft" }, `and ${plural(candidates.length - SHOWN, "candidate")} less likely`));
  }
}

function table(candidates, chosen, none) {
  const row = (name, prior, score, probability, taken = false) =>
    el("tr", { class: taken ? "taken" : undefined },
      el("th", { scope: "row" }, name, taken && el("span", { class: "tag" }, "chosen")),
      el("td", {}, prior), el("td", {}, score),
      el("td", {}, percent(probability),
        styled(el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill" })), "--share", probability)));
  return el("table", {},
    el("caption", { class: "unseen" }, "Candidates with their prior, score and probability"),
    el("thead", {}, el("tr", {}, ...["Candidate", "Prior", "Score", "Sure"].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {},
      ...candidates.slice(0, SHOWN).map((one) =>
        row(one.entity, percent(one.prior), one.score.toFixed(2), one.probability, one.entity === chosen)),
      row(el("em", {}, "no entity"), "–", "–", none)));
}

function legend() {
  const swatches = [0.25, 0.5, 0.75, 1].map((share) => styled(el("span", { class: "swatch" }, percent(share)), "--sure", share));
  return el("p", { class: "legend" }, "Sure: ", ...swatches, el("span", { class: "swatch new" }, "new in this round"));
}

const key = (mention) => `${mention.start} ${mention.end} ${mention.entity}`;
