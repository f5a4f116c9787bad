// The view Explore: what is near an entity or a word, as lists and as a map.

import { address, keep } from "./address.js";
import { copies, python, shell } from "./copying.js";
import { away, byId, el, listed, plural, put, styled } from "./dom.js";
import { map } from "./map.js";
import { runner } from "./running.js";
import { ask } from "./service.js";
import { Suggestions } from "./suggestions.js";
import { TAUGHT } from "./teach.js";

const COUNT = 12; // neighbours of each kind
const SAMPLES = 5;

const place = (kind, name) => address("explore", { [kind]: name });

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
  let stale = false; // whether the results may be out of date
  let redraw = () => {};

  field.addEventListener("input", () => suggestions.ask(field.value));
  field.addEventListener("keydown", (event) => suggestions.key(event));
  field.addEventListener("blur", () => suggestions.close());
  byId("explore-form").addEventListener("submit", (event) => {
    event.preventDefault();
    suggestions.close();
    const sample = model.places?.[0];
    const remedies = sample ? [{ label: sample, act: () => visit("entity", sample) }] : [];
    if (!run.empty(field, "Write the name of an entity first.", ...remedies)) visit("entity", field.value.trim());
  });
  put(
    byId("explore-samples"),
    ...(model.places ?? [])
      .slice(0, SAMPLES)
      .map((name) => el("li", {}, el("a", { class: "pill", href: place("entity", name) }, name))),
  );
  byId("explore-samples").closest(".group").hidden = !model.places?.length;
  new ResizeObserver(() => redraw()).observe(byId("explore-results"));
  document.addEventListener(TAUGHT, () => (stale = true));

  function visit(kind, name) {
    if (location.hash === place(kind, name)) go(kind, name);
    else location.hash = place(kind, name);
  }

  async function go(kind, name, how) {
    const own = (current = `${kind}/${name}`);
    let there = false;
    stale = false;
    field.value = name;
    const job = async (signal) => {
      const results = byId("explore-results");
      if (kind === "word") {
        const answer = await ask("api/nearest", { query: { name, kind, count: 2 * COUNT }, signal });
        redraw = () => {};
        put(results, ...word(answer), copies("explore", { value: answer, ...spelled(model.store, kind, name) }));
        keep("explore", { word: name });
        there = true;
        return `${plural(answer.neighbours.length, "neighbour")} of the word “${answer.name}”.`;
      }
      const answer = await ask("api/explore", { query: { name, count: COUNT }, signal });
      const copied = copies("explore", { value: answer, ...spelled(model.store, kind, answer.entity.title) });
      put(results, ...entity(answer), copied);
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
      keep("explore", { entity: name });
      there = true;
      const near = [plural(answer.entities.length, "entity", "entities"), plural(answer.words.length, "word")];
      return `${answer.entity.title}: ${listed(near)} nearby.`;
    };
    const explained = (...asked) =>
      job(...asked).catch((error) => {
        error.remedies = error.suggestions?.map((title) => ({ label: title, act: () => visit("entity", title) }));
        throw error;
      });
    await run(`Finding the neighbours of ${name} …`, explained, how);
    if (!there && current === own) current = ""; // asked again, it may be there
  }

  return {
    open({ entity, word }) {
      const [kind, name] = word ? ["word", word] : ["entity", entity];
      if (name) {
        if (stale || current !== `${kind}/${name}`) go(kind, name);
      } else if (!current && model.places?.length) {
        go("entity", model.places[0], { still: true });
      }
      requestAnimationFrame(() => redraw());
    },
  };
}

/** The commands and the Python code that give the nearest names. */
function spelled(store, kind, name) {
  const asked = ["ebert", "vectors", "nearest", store, name, "--top"];
  const word = kind === "word";
  const kinds = word ? ["both"] : ["entities", "words"];
  return {
    command: kinds
      .map((one) => shell(...asked, String(word ? 2 * COUNT : COUNT), "--kind", one, ...(word ? ["--word"] : [])))
      .join("\n"),
    code: [
      "import ebert\n",
      `vectors = ebert.Vectors.open(${python(store)})`,
      ...kinds.map((one) => {
        const how = word ? `top=${2 * COUNT}, kind="${one}", word=True` : `top=${COUNT}, kind="${one}"`;
        return `print(vectors.nearest(${python(name)}, ${how}))`;
      }),
      "",
    ].join("\n"),
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
        "nearest, corrected for hubs; the number is the cosine",
        entities.map((one) => ({ ...one, kind: "entity" })),
      ),
      near(
        "Words",
        "nearest, corrected for hubs; the number is the cosine",
        words.map((one) => ({ ...one, kind: "word" })),
      ),
      near(
        "Wordpieces",
        "nearest to the projected vector",
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
      near("Entities", "nearest, corrected for hubs; the number is the cosine", of("entity")),
      near("Words", "nearest, corrected for hubs; the number is the cosine", of("word")),
    ),
  ];
}

function near(title, note, members) {
  const rows = members.map(({ name, kind, similarity }) =>
    el(
      "li",
      { class: "bar flat" },
      el("span", { class: "token" }, kind ? el("a", { href: place(kind, name) }, name) : name),
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
