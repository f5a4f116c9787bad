// The view Explore: what is near an entity or a word, as lists and as a map.

import { away, byId, el, listed, plural, put, styled } from "./dom.js";
import { map } from "./map.js";
import { runner } from "./running.js";
import { ask } from "./service.js";
import { Suggestions } from "./suggestions.js";
import { TAUGHT } from "./teach.js";

const COUNT = 12; // neighbours of each kind
const SAMPLES = 5;

const address = (kind, name) => `#explore/${kind}/${encodeURIComponent(name)}`;

export function exploreView(model) {
  const view = byId("view-explore");
  const run = runner(view);
  const field = byId("explore-name");
  const suggestions = new Suggestions({
    field,
    list: byId("explore-list"),
    choose: (title) => {
      field.value = title;
      visit("entity", title);
    },
    say: run.say,
    changed: (words) => words && run.say(words),
  });
  let current = "";
  let stale = false; // whether what is shown may have changed since
  let redraw = () => {};

  field.addEventListener("input", () => suggestions.ask(field.value));
  field.addEventListener("keydown", (event) => suggestions.key(event));
  field.addEventListener("blur", () => suggestions.close());
  byId("explore-form").addEventListener("submit", (event) => {
    event.preventDefault();
    suggestions.close();
    if (field.value.trim()) visit("entity", field.value.trim());
  });
  put(
    byId("explore-samples"),
    ...(model.places ?? [])
      .slice(0, SAMPLES)
      .map((name) => el("li", {}, el("a", { class: "pill", href: address("entity", name) }, name))),
  );
  new ResizeObserver(() => redraw()).observe(byId("explore-results"));
  document.addEventListener(TAUGHT, () => (stale = true));

  function visit(kind, name) {
    if (location.hash === address(kind, name)) go(kind, name);
    else location.hash = address(kind, name);
  }

  async function go(kind, name) {
    const own = (current = `${kind}/${name}`);
    let there = false;
    stale = false;
    field.value = name;
    await run(`Looking around ${name} …`, async (signal) => {
      const results = byId("explore-results");
      if (kind === "word") {
        const answer = await ask("api/nearest", { query: { name, kind, count: 2 * COUNT }, signal });
        redraw = () => {};
        put(results, ...word(answer));
        there = true;
        return `${plural(answer.neighbours.length, "neighbour")} of the word “${answer.name}”.`;
      }
      const answer = await ask("api/explore", { query: { name, count: COUNT }, signal });
      put(results, ...entity(answer));
      const slot = results.querySelector(".slot");
      let drawn = 0;
      redraw = () => {
        const width = Math.floor(slot.clientWidth);
        if (width && width !== drawn)
          slot.replaceChildren(
            map(answer.map, (drawn = width) - 2, (place) => {
              if (place.kind !== "self") visit(place.kind, place.name);
            }),
          );
      };
      redraw();
      there = true;
      const near = [plural(answer.entities.length, "entity", "entities"), plural(answer.words.length, "word")];
      return `${answer.entity.title}: ${listed(near)} nearby.`;
    });
    if (!there && current === own) current = ""; // asked again, it may be there
  }

  return {
    open(argument) {
      const [kind, ...rest] = argument ? argument.split("/") : [];
      const name = rest.join("/");
      if (name && ["entity", "word"].includes(kind)) {
        if (stale || current !== `${kind}/${name}`) go(kind, name);
      } else if (!current && model.places?.length) {
        go("entity", model.places[0]);
      }
      requestAnimationFrame(() => redraw());
    },
  };
}

function entity({ entity, entities, words, wordpieces }) {
  const facts = [
    entity.added
      ? "added by you"
      : entity.count && `linked ${entity.count === 1 ? "once" : `${plural(entity.count, "time")}`}`,
    entity.wikidata &&
      away(`https://www.wikidata.org/wiki/${encodeURIComponent(entity.wikidata)}`, `${entity.wikidata} ↗`),
  ].filter(Boolean);
  return [
    el(
      "header",
      { class: "about" },
      el("h2", { class: "verdict" }, entity.title),
      el("p", { class: "soft facts" }, ...facts.map((fact) => el("span", {}, fact))),
    ),
    el("div", { class: "slot" }),
    el(
      "div",
      { class: "columns" },
      near(
        "Entities",
        "nearest in the space",
        entities.map((one) => ({ ...one, kind: "entity" })),
      ),
      near(
        "Words",
        "nearest in the space",
        words.map((one) => ({ ...one, kind: "word" })),
      ),
      near(
        "Wordpieces",
        "nearest to the carried vector",
        wordpieces.map((one) => ({ name: one.token, similarity: one.similarity })),
      ),
    ),
  ];
}

function word({ name, neighbours }) {
  const of = (kind) => neighbours.filter((one) => one.kind === kind);
  return [
    el("header", { class: "about" }, el("h2", { class: "verdict" }, `“${name}”`), el("p", { class: "soft" }, "a word")),
    el(
      "div",
      { class: "columns" },
      near("Entities", "nearest in the space", of("entity")),
      near("Words", "nearest in the space", of("word")),
    ),
  ];
}

function near(title, note, members) {
  const rows = members.map(({ name, kind, similarity }) =>
    el(
      "li",
      { class: "bar flat" },
      el("span", { class: "token" }, kind ? el("a", { href: address(kind, name) }, name) : name),
      el("span", { class: "share" }, similarity.toFixed(2)),
      styled(
        el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill" })),
        "--share",
        Math.max(0, similarity),
      ),
    ),
  );
  return el(
    "article",
    { class: "column base" },
    el("header", {}, el("h3", {}, title), el("p", { class: "soft" }, note)),
    members.length
      ? el("ol", { class: "bars", "aria-label": title }, ...rows)
      : el("p", { class: "soft" }, "None among the nearest."),
  );
}
