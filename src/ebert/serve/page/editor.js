// The sentence editor: a plain text area over a backdrop that colours its mentions and masks.
//
// Words are marked by selecting them: a small box under them suggests entities. `[[` and a name suggests while typing,
// and markup that is complete turns into a mention at once.

import { chip, colours } from "./colours.js";
import { el, put, styled } from "./dom.js";
import { add, parse, shift, toPoints, write } from "./mentions.js";
import { Suggestions } from "./suggestions.js";

const OPEN = /\[\[([^[\]|]*)$/; // a mention that is being typed
const SETTLED = 200; // milliseconds after which a selection counts

export class Editor {
  /** Fill `root` with the editor. `marks` lists the mentions, Enter calls `submit`, `say` takes what happens. */
  constructor({ root, marks, id, describedby, submit, say }) {
    Object.assign(this, { root, marks, say, mask: "[MASK]", text: "", mentions: [], unknown: new Set(), timer: 0 });
    this.backdrop = el("div", { class: "backdrop", "aria-hidden": "true" });
    this.area = el("textarea", {
      id,
      rows: 2,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      "aria-describedby": describedby,
      "aria-autocomplete": "list",
      "aria-controls": `${id}-typed`,
      placeholder: "The native language of … is [MASK].",
    });
    this.makeTyped(id);
    this.makeBox(id);
    root.append(this.backdrop, this.area, this.typed, this.box);
    this.area.addEventListener("input", () => this.edited());
    this.area.addEventListener("keydown", (event) => this.key(event, submit));
    document.addEventListener("selectionchange", () => this.selectionMoved());
    this.area.addEventListener("select", () => this.selectionMoved());
    root.addEventListener("focusout", (event) => {
      if (!root.contains(event.relatedTarget)) this.close();
    });
    this.draw();
  }

  makeTyped(id) {
    const list = el("ul", {
      class: "options",
      role: "listbox",
      id: `${id}-typed`,
      "aria-label": "Suggested entities",
      hidden: true,
    });
    this.typed = el("div", { class: "popover typed" }, list);
    this.typing = new Suggestions({
      field: this.area,
      list,
      say: this.say,
      eager: true,
      choose: (title) => this.finishTyped(title),
      changed: () => this.place(this.typed),
    });
  }

  makeBox(id) {
    const list = el("ul", {
      class: "options",
      role: "listbox",
      id: `${id}-options`,
      "aria-label": "Suggested entities",
      hidden: true,
    });
    this.question = el("label", { class: "caption", for: `${id}-entity` });
    this.field = el("input", {
      id: `${id}-entity`,
      type: "text",
      role: "combobox",
      "aria-expanded": "false",
      "aria-autocomplete": "list",
      "aria-controls": list.id,
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.marking.ask(this.field.value),
      onkeydown: (event) => this.boxKey(event),
    });
    this.note = el("p", { class: "hint" });
    this.box = el(
      "div",
      { class: "popover box", role: "group", "aria-label": "Mark an entity", hidden: true },
      this.question,
      this.field,
      list,
      this.note,
    );
    this.marking = new Suggestions({
      field: this.field,
      list,
      say: this.say,
      eager: true,
      choose: (title) => this.markSelected(title),
      changed: (words) => {
        this.note.textContent = words;
        this.place(this.box);
      },
    });
  }

  // The content

  /** Put in a text with `[[…]]` markup. */
  set(marked) {
    const { text, mentions } = parse(marked);
    this.mentions = mentions;
    this.text = this.area.value = text;
    this.unknown.clear();
    this.close();
    this.draw();
  }

  /** The text with its mentions as markup. */
  get marked() {
    return write(this.text, this.mentions);
  }

  /** The request to the service. Leftover brackets are sent as they are, so that the service says what is wrong. */
  get request() {
    if (this.text.includes("[[")) return { text: this.marked };
    const mentions = this.mentions.map(({ start, end, entity }) => ({
      start: toPoints(this.text, start),
      end: toPoints(this.text, end),
      entity,
    }));
    return { text: this.text, mentions };
  }

  /** Say which entities have no vector. */
  missing(titles) {
    this.unknown = new Set(titles);
    this.draw();
  }

  insertMask() {
    const { selectionStart: start, selectionEnd: end } = this.area;
    this.area.focus();
    this.area.setRangeText(this.mask, start, end, "end");
    this.edited();
  }

  edited() {
    const now = this.area.value;
    const parsed = parse(now, shift(this.mentions, this.text, now));
    this.mentions = parsed.mentions;
    this.text = parsed.text;
    if (parsed.text !== now) {
      const caret = parsed.moved(this.area.selectionEnd);
      this.area.value = parsed.text;
      this.area.setSelectionRange(caret, caret);
    }
    this.closeBox();
    this.draw();
    this.suggestTyped();
  }

  // Typing [[

  suggestTyped() {
    const opened = this.text.slice(0, this.area.selectionEnd).match(OPEN);
    if (opened) this.typing.ask(opened[1]);
    else this.typing.close();
    this.anchor = opened && [opened.index, this.area.selectionEnd];
    this.place(this.typed);
  }

  finishTyped(title) {
    const caret = this.area.selectionEnd;
    const start = this.text.slice(0, caret).match(OPEN)?.index ?? caret;
    const after = this.text.slice(caret).match(/^[^[\]|]*\]\]/)?.[0].length ?? 0; // brackets may be closed already
    this.area.setRangeText(`[[${title}]]`, start, caret + after, "end");
    this.edited();
  }

  // Marking a selection

  selectionMoved() {
    clearTimeout(this.timer);
    if (document.activeElement !== this.area) return;
    if (this.area.selectionStart === this.area.selectionEnd) {
      this.closeBox();
      return;
    }
    this.timer = setTimeout(() => this.offer(), SETTLED);
  }

  /** Open the box for the selected words, or for the word at the caret; `focus` goes into it. */
  offer({ focus = false } = {}) {
    const span = this.selected(focus);
    if (!span) {
      if (focus) this.say("Select the words that name the entity first.");
      return;
    }
    const words = this.text.slice(...span);
    const same = this.span && this.span[0] === span[0] && this.span[1] === span[1] && !this.box.hidden;
    this.typing.close();
    this.span = this.anchor = span;
    this.box.hidden = false;
    if (!same) {
      this.question.textContent = `Which entity is “${words}”?`;
      this.note.textContent = "Looking for entities …";
      this.field.value = words;
      this.marking.ask(words);
    }
    this.draw();
    this.place(this.box);
    if (focus) {
      this.field.focus();
      this.field.select();
    }
  }

  selected(widen) {
    let { selectionStart: start, selectionEnd: end } = this.area;
    if (start === end && widen) {
      while (start > 0 && /[\p{L}\p{N}'’-]/u.test(this.text[start - 1])) start -= 1;
      while (end < this.text.length && /[\p{L}\p{N}'’-]/u.test(this.text[end])) end += 1;
    }
    const words = this.text.slice(start, end);
    start += words.length - words.trimStart().length;
    end = start + words.trim().length;
    return start < end && this.text.slice(start, end) !== this.mask ? [start, end] : null;
  }

  markSelected(entity) {
    const [start, end] = this.span;
    this.mentions = add(this.mentions, { start, end, entity });
    this.closeBox();
    this.area.focus();
    this.area.setSelectionRange(end, end);
    this.draw();
    this.say(`Marked “${this.text.slice(start, end)}” as ${entity}.`);
  }

  unmark(mention) {
    this.mentions = this.mentions.filter((one) => one !== mention);
    this.draw();
    this.area.focus();
  }

  // Keys

  key(event, submit) {
    if (this.typing.key(event)) return;
    if (event.key === "e" && event.ctrlKey && !event.altKey) {
      event.preventDefault();
      this.offer({ focus: true });
    } else if (event.key === "ArrowDown" && !this.box.hidden && !event.shiftKey) {
      event.preventDefault();
      this.field.focus();
    } else if (event.key === "Escape") {
      this.close();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.close();
      submit();
    }
  }

  boxKey(event) {
    if (event.key === "Escape") {
      this.closeBox();
      this.area.focus();
    } else if (!this.marking.key(event) && event.key === "Enter") {
      event.preventDefault(); // it would send the form
    }
  }

  // Drawing

  close() {
    this.typing.close();
    this.closeBox();
  }

  closeBox() {
    clearTimeout(this.timer);
    this.marking.close();
    if (this.box.hidden) return;
    this.box.hidden = true;
    this.span = null;
    this.draw();
  }

  draw() {
    const { text, mentions, mask, unknown, span, anchor } = this;
    put(this.backdrop, ...colours({ text, mentions, mask, unknown, chosen: span, anchor }));
    put(this.marks, ...mentions.map((mention) => chip(mention, { text, unknown, drop: () => this.unmark(mention) })));
    this.marks.hidden = !mentions.length;
  }

  /** Put a popover under the words that it is about, inside the editor. */
  place(popover) {
    if (!this.anchor) return;
    this.draw();
    const words = this.backdrop.querySelector("[data-anchor]");
    if (!words) return;
    const frame = this.root.getBoundingClientRect();
    const rects = words.getClientRects();
    const rect = rects[rects.length - 1];
    const left = Math.min(Math.max(0, rect.left - frame.left), Math.max(0, frame.width - popover.offsetWidth));
    styled(popover, "left", `${left}px`);
    styled(popover, "top", `${rect.bottom - frame.top + 6}px`);
  }
}
