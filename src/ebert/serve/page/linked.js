// A linked text: its entities, how sure the linker is, which candidates it had, and in which order it decided.

import { address } from "./address.js";
import { away, el, percent, plural, put, styled } from "./dom.js";
import { fromPoints } from "./mentions.js";

const SHOWN = 8; // candidates in the table; the others are counted
const MOST = 95; // percent that can be asked for

const within = (number, most) => Math.min(Math.max(Math.trunc(number) || 0, 0), most);

export class LinkedText {
  /**
   * Draw what was found. `say` is called with what happens, and `moved` with the state ({ step, least, chosen }) when it
   * changes. A first state may be given: the round, the least percentage, and where the chosen entity begins.
   */
  constructor(answer, { say, moved, step, least, chosen }) {
    Object.assign(this, { say, moved, text: answer.text, unit: fromPoints(answer.text) });
    this.rounds = answer.rounds?.length ? answer.rounds : [answer.mentions];
    this.round = step ? within(Number(step) - 1, this.rounds.length - 1) : this.rounds.length - 1;
    this.least = within(Number(least ?? 0), MOST) / 100;
    this.chosen = this.rounds[this.round].find((mention) => String(mention.start) === chosen) ?? null;
    this.prose = el("div", { class: "linked", role: "group", "aria-label": "The text with its entities" });
    this.detail = el("aside", {
      class: "card detail",
      "aria-label": "Candidates",
      onkeydown: (event) => event.key === "Escape" && this.close(),
    });
    this.root = el(
      "div",
      { class: "linking" },
      el("div", { class: "card" }, this.controls(), this.prose, legend()),
      this.detail,
    );
    this.draw();
  }

  controls() {
    this.where = el("span", { class: "where", role: "status" });
    this.back = el("button", { type: "button", "aria-label": "Earlier round", onclick: () => this.step(-1) }, "←");
    this.forth = el("button", { type: "button", "aria-label": "Later round", onclick: () => this.step(1) }, "→");
    const percents = Math.round(this.least * 100);
    const sure = el("output", {}, `${percents}% sure`);
    const slider = el("input", {
      type: "range",
      min: 0,
      max: MOST,
      step: 5,
      value: percents,
      "aria-label": "Show only entities with at least this probability",
      oninput: () => {
        this.least = Number(slider.value) / 100;
        sure.textContent = `${slider.value}% sure`;
        this.draw();
      },
    });
    return el(
      "div",
      { class: "controls" },
      el(
        "div",
        { class: "stepper", role: "group", "aria-label": "Rounds of refinement" },
        this.back,
        this.where,
        this.forth,
      ),
      el("label", { class: "inline" }, "At least", slider, sure),
    );
  }

  step(by) {
    this.round = within(this.round + by, this.rounds.length - 1);
    this.draw();
  }

  close() {
    const before = this.prose.querySelector("[aria-pressed=true]");
    const place = [...this.prose.children].indexOf(before);
    this.chosen = null;
    this.draw();
    this.prose.children[place]?.focus();
  }

  draw() {
    const mentions = this.rounds[this.round];
    const before = new Set((this.rounds[this.round - 1] ?? []).map(key));
    const shown = mentions.filter((mention) => mention.probability >= this.least);
    const fresh = shown.filter((mention) => !before.has(key(mention)));
    const parts = [];
    let last = 0;
    for (const mention of shown) {
      parts.push(
        this.text.slice(last, this.unit(mention.start)),
        this.entity(mention, this.round > 0 && fresh.includes(mention)),
      );
      last = this.unit(mention.end);
    }
    put(this.prose, ...parts, this.text.slice(last));
    // Not `disabled`: a keyboard user would lose the focus.
    this.back.setAttribute("aria-disabled", String(this.round === 0));
    this.forth.setAttribute("aria-disabled", String(this.round === this.rounds.length - 1));
    this.where.textContent = this.said(mentions.length, fresh.length);
    const kept = shown.find((mention) => this.chosen && key(mention) === key(this.chosen));
    this.show(kept ?? null, shown.length);
    this.moved({
      step: this.round < this.rounds.length - 1 ? this.round + 1 : "",
      least: this.least ? Math.round(this.least * 100) : "",
      chosen: kept ? kept.start : "",
    });
  }

  said(count, fresh) {
    const round = `Round ${this.round + 1} of ${this.rounds.length}`;
    return `${round}: ${plural(count, "entity", "entities")}${this.round ? `, ${fresh} new` : ""}`;
  }

  entity(mention, fresh) {
    const open = () => {
      this.chosen = mention;
      this.draw();
      const pressed = this.prose.querySelector("[aria-pressed=true]");
      pressed.focus({ preventScroll: true });
      pressed.scrollIntoView({ block: "nearest" }); // above the candidates on a phone
      this.say(`${mention.text} is ${mention.entity}. ${plural(mention.candidates.length, "candidate")}.`);
    };
    const node = el(
      "span",
      {
        class: fresh ? "entity new" : "entity",
        role: "button",
        tabindex: 0,
        "aria-pressed": String(Boolean(this.chosen && key(this.chosen) === key(mention))),
        onclick: open,
        onkeydown: (event) => {
          if (event.key === "Escape") this.close();
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          open();
        },
      },
      mention.text,
      el(
        "span",
        { class: "label" },
        unseen(": "),
        el("span", { class: "title" }, mention.entity),
        unseen(", "),
        el("span", { class: "sure" }, percent(mention.probability)),
        unseen(" sure"),
      ),
    );
    return styled(node, "--sure", mention.probability);
  }

  show(mention, count) {
    this.detail.classList.toggle("open", Boolean(mention));
    if (!mention) {
      const words = count ? "Choose an entity to see the other candidates." : "No entity was found here.";
      put(this.detail, el("p", { class: "soft" }, words));
      return;
    }
    const { text, entity, wikidata, id, url, candidates, null_probability: none } = mention;
    const wikipedia = /^https:\/\/[a-z-]+\.wikipedia\.org\//.test(url ?? "");
    const page = url?.startsWith("https://") && away(url, wikipedia ? "Wikipedia ↗" : "Its page ↗");
    const item = wikidata && away(`https://www.wikidata.org/wiki/${wikidata}`, `${wikidata} ↗`);
    put(
      this.detail,
      el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => this.close() }, "×"),
      el("h2", {}, `“${text}”`),
      el(
        "p",
        { class: "links" },
        el("strong", {}, entity),
        page,
        item,
        el("a", { href: address("explore", { entity }) }, "Explore"),
      ),
      id && id !== url && el("p", { class: "soft" }, `Your id: ${id}`),
      table(candidates, entity, none),
      candidates.length > SHOWN &&
        el("p", { class: "soft" }, `and ${plural(candidates.length - SHOWN, "candidate")} less likely`),
    );
  }
}

function table(candidates, chosen, none) {
  const row = (name, prior, score, probability, taken = false) =>
    el(
      "tr",
      { class: taken ? "taken" : undefined },
      el("th", { scope: "row" }, name, taken && el("span", { class: "tag" }, "chosen")),
      el("td", {}, prior),
      el("td", {}, score),
      el(
        "td",
        {},
        percent(probability),
        styled(
          el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill" })),
          "--share",
          probability,
        ),
      ),
    );
  return el(
    "table",
    {},
    el("caption", { class: "unseen" }, "Candidates with their prior, score and probability"),
    el(
      "thead",
      {},
      el("tr", {}, ...["Candidate", "Prior", "Score", "Sure"].map((head) => el("th", { scope: "col" }, head))),
    ),
    el(
      "tbody",
      {},
      ...candidates
        .slice(0, SHOWN)
        .map((one) =>
          row(one.entity, percent(one.prior), one.score.toFixed(2), one.probability, one.entity === chosen),
        ),
      row(el("em", {}, "no entity"), "–", "–", none),
    ),
  );
}

function legend() {
  const swatches = [0.25, 0.5, 0.75, 1].map((share) =>
    styled(el("span", { class: "swatch" }, percent(share)), "--sure", share),
  );
  return el("p", { class: "legend" }, "Sure: ", ...swatches, el("span", { class: "swatch new" }, "new in this round"));
}

const unseen = (words) => el("span", { class: "unseen" }, words);
const key = (mention) => `${mention.start} ${mention.end} ${mention.entity}`;
