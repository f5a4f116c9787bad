// Suggestions while typing: a listbox under any text field, moved through with the arrow keys.

import { el, plural, put } from "./dom.js";
import { ask } from "./service.js";

const PAUSE = 120; // milliseconds without a key before the service is asked
const COUNT = 8;

export class Suggestions {
  /**
   * `field` is typed into, `list` is the listbox, `choose` takes the title, `say` a sentence for screen readers,
   * `changed` a note on what was found. If `eager`, Enter takes the first one.
   */
  constructor({ field, list, choose, say = () => {}, changed = () => {}, eager = false }) {
    Object.assign(this, { field, list, choose, say, changed, eager, entities: [], active: -1, timer: 0, asking: null });
  }

  get open() {
    return !this.list.hidden;
  }

  /** Ask for titles like `query` after a pause. */
  ask(query) {
    clearTimeout(this.timer);
    this.asking?.abort();
    const wanted = query.trim();
    if (!wanted) return this.close();
    this.timer = setTimeout(() => this.fetch(wanted), PAUSE);
  }

  async fetch(query) {
    const mine = (this.asking = new AbortController());
    try {
      const answer = await ask("api/entities", { query: { q: query, count: COUNT }, signal: mine.signal });
      if (mine === this.asking) this.show(answer.entities, query);
    } catch (error) {
      if (error.name !== "AbortError") this.complain(error.message);
    }
  }

  show(entities, query) {
    const before = this.entities[this.active]?.title; // stays chosen if it is among the new ones
    this.entities = entities;
    const options = entities.map((entity, number) =>
      el(
        "li",
        {
          role: "option",
          id: `${this.list.id}-${number}`,
          "aria-selected": "false",
          onmousedown: (event) => event.preventDefault(),
          onclick: () => this.take(number),
        },
        el("span", { class: "title" }, ...emphasised(entity.title, query)),
        el("span", { class: "soft" }, remark(entity)),
      ),
    );
    put(this.list, ...options);
    this.list.hidden = !options.length;
    const still = entities.findIndex((entity) => entity.title === before);
    this.activate(still < 0 && this.eager && options.length ? 0 : still);
    this.expanded();
    this.changed(options.length ? "" : `No entity has a name like “${query}”.`);
    this.say(options.length ? `${plural(options.length, "suggestion")}. Move with the arrow keys, choose with Enter.` : "");
  }

  complain(words) {
    this.close();
    this.changed(words);
  }

  close() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = null;
    this.entities = [];
    put(this.list);
    this.list.hidden = true;
    this.activate(-1);
    this.expanded();
  }

  /** Handle a key of the field; true if it was for the list. */
  key(event) {
    if (!this.open || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
      return false;
    const last = this.entities.length - 1;
    if (event.key === "ArrowDown") this.activate(this.active >= last ? 0 : this.active + 1);
    else if (event.key === "ArrowUp") this.activate(this.active <= 0 ? last : this.active - 1);
    else if (event.key === "Enter" && this.active >= 0) this.take(this.active);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    return true;
  }

  activate(number) {
    this.active = number;
    for (const [index, option] of [...this.list.children].entries()) {
      option.setAttribute("aria-selected", String(index === number));
      if (index === number) option.scrollIntoView({ block: "nearest" });
    }
    if (number >= 0) this.field.setAttribute("aria-activedescendant", `${this.list.id}-${number}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  take(number) {
    const { title } = this.entities[number];
    this.close();
    this.choose(title);
  }

  expanded() {
    if (this.field.getAttribute("role") === "combobox") this.field.setAttribute("aria-expanded", String(this.open));
  }
}

/** Return the parts of a title, with the typed part in bold. */
function emphasised(title, query) {
  const at = title.toLowerCase().indexOf(query.toLowerCase());
  if (at < 0 || title.toLowerCase().length !== title.length) return [title];
  const end = at + query.length;
  return [title.slice(0, at), el("b", {}, title.slice(at, end)), title.slice(end)];
}

/** Return what is shown after a title. */
function remark({ oddity, added, count }) {
  if (oddity) return oddity;
  return added ? "added by you" : count ? plural(count, "link") : "";
}
