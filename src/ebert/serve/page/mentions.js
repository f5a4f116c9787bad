// Texts with mentions: { start, end, entity }, in UTF-16 units as the browser counts. The service counts code points.

const MARKUP = /\[\[([^[\]|]+)(?:\|((?:[^[\]]|\[[^[\]]*\])+))?\]\]/g;

/** Read `[[Title]]` and `[[Title|words]]`; return the plain text and its mentions, after those that exist already. */
export function parse(marked, before = []) {
  let text = "";
  let last = 0;
  const moves = []; // [position in the marked text, position in the plain one]
  const found = [];
  for (const match of marked.matchAll(MARKUP)) {
    const entity = match[1].trim();
    if (!entity) continue;
    const surface = match[2] ?? entity.replaceAll("_", " ");
    text += marked.slice(last, match.index);
    found.push({ start: text.length, end: text.length + surface.length, entity });
    text += surface;
    last = match.index + match[0].length;
    moves.push([last, text.length]);
  }
  text += marked.slice(last);
  const moved = (position) => {
    const [from, to] = moves.findLast(([from]) => from <= position) ?? [0, 0];
    return position - from + to;
  };
  const kept = before.map((one) => ({ ...one, start: moved(one.start), end: moved(one.end) }));
  return { text, mentions: ordered([...kept.filter((one) => !overlapping(one, found)), ...found]), moved };
}

/** Write a text with its mentions as markup. */
export function write(text, mentions) {
  let out = "";
  let last = 0;
  for (const { start, end, entity } of mentions) {
    const surface = text.slice(start, end);
    out += text.slice(last, start) + (surface === entity ? `[[${entity}]]` : `[[${entity}|${surface}]]`);
    last = end;
  }
  return out + text.slice(last);
}

/** Move mentions along with an edit of their text; drop those that it changes. */
export function shift(mentions, before, after) {
  let head = 0;
  const most = Math.min(before.length, after.length);
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const by = after.length - before.length;
  const stop = before.length - tail; // before[head:stop] was replaced
  return mentions
    .filter((one) => one.end <= head || one.start >= stop)
    .map((one) => (one.end <= head ? one : { ...one, start: one.start + by, end: one.end + by }));
}

/** Add a mention; drop others that overlap it. */
export function add(mentions, mention) {
  return ordered([...mentions.filter((one) => !overlapping(one, [mention])), mention]);
}

/** Count in code points, for the service. */
export const toPoints = (text, unit) => Array.from(text.slice(0, unit)).length;

/** Return a function that turns offsets in code points, from the service, into the browser's offsets. */
export function fromPoints(text) {
  const units = [0];
  for (const point of text) units.push(units.at(-1) + point.length);
  return (point) => units[Math.min(point, units.length - 1)];
}

const overlapping = (one, others) => others.some((other) => one.start < other.end && other.start < one.end);
const ordered = (mentions) => mentions.sort((one, other) => one.start - other.start);
