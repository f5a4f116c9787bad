// A map of a neighbourhood: points in a plane, with labels that do not lie on each other.

import { el, svg } from "./dom.js";

const MARGIN = 28;
const LETTER = 6.4; // about as wide as a letter of a label
const LINE = 15;
const REACH = 16; // around a point a click still means it; under all points, so that it takes no click from another
const SPOTS = [
  { x: 10, y: 4, anchor: "start" },
  { x: -10, y: 4, anchor: "end" },
  { x: 0, y: -11, anchor: "middle" },
  { x: 0, y: 20, anchor: "middle" },
  { x: 8, y: -9, anchor: "start" },
  { x: 8, y: 17, anchor: "start" },
  { x: -8, y: -9, anchor: "end" },
  { x: -8, y: 17, anchor: "end" },
]; // where a label may stand, from its point
const KINDS = { self: "this one", entity: "entity", word: "word" };

/** Draw places ({ name, kind, x, y } from -1 to 1) on a map so many pixels wide; `open` takes the chosen one. */
export function map(places, width, open) {
  const height = Math.round(Math.min(Math.max(width * 0.72, 300), 460));
  const points = places.map((place) => ({
    ...place,
    left: MARGIN + ((place.x + 1) / 2) * (width - 2 * MARGIN),
    top: MARGIN + ((1 - place.y) / 2) * (height - 2 * MARGIN),
  }));
  const order = [...points].sort((one, other) => Number(other.kind === "self") - Number(one.kind === "self"));
  label(order, width, height);
  const nodes = points.map((point, number) => node(point, number === 0, () => open(point)));
  const picture = svg(
    "svg",
    {
      class: "map",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": "Map of the neighbourhood. Arrow keys move between the points, Enter opens one.",
      onkeydown: (event) => walk(event, points, nodes),
    },
    svg("line", { x1: 0, x2: width, y1: height / 2, y2: height / 2, class: "axis" }),
    svg("line", { y1: 0, y2: height, x1: width / 2, x2: width / 2, class: "axis" }),
    ...points.map((point) =>
      svg("circle", { cx: point.left, cy: point.top, r: REACH, class: "reach", onclick: () => open(point) }),
    ),
    ...nodes,
  );
  return el(
    "figure",
    { class: "card" },
    picture,
    el(
      "figcaption",
      { class: "legend" },
      ...Object.entries(KINDS).map(([kind, words]) => el("span", { class: `key ${kind}` }, words)),
      el("span", { class: "soft" }, "Near means alike; directions have no meaning."),
    ),
  );
}

function node(point, first, open) {
  const { left, top, place, name, kind } = point;
  return svg(
    "g",
    {
      class: `point ${kind}`,
      role: "button",
      tabindex: first ? 0 : -1,
      "data-name": name,
      "aria-label": `${name}, ${KINDS[kind]}`,
      transform: `translate(${left.toFixed(1)} ${top.toFixed(1)})`,
      onclick: open,
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        open();
      },
    },
    svg("title", {}, name),
    svg("circle", { r: kind === "self" ? 7 : 5, class: "dot" }),
    svg(
      "text",
      { x: place.x, y: place.y, "text-anchor": place.anchor, class: place.free ? undefined : "crowded" },
      name,
    ),
  );
}

/** Give every point a place for its label where nothing else is, if there is one; the first has a label anyway. */
function label(points, width, height) {
  const taken = points.map(({ left, top }) => [left - 6, top - 6, left + 6, top + 6]);
  const inside = (box) => box[0] >= 2 && box[1] >= 2 && box[2] <= width - 2 && box[3] <= height - 2;
  for (const [number, point] of points.entries()) {
    const wide = point.name.length * (number ? LETTER : 1.25 * LETTER);
    const choices = SPOTS.map(({ x, y, anchor }) => {
      const left = point.left + x - (anchor === "middle" ? wide / 2 : anchor === "end" ? wide : 0);
      const base = point.top + y;
      return { x, y, anchor, box: [left, base - LINE + 4, left + wide, base + 4] };
    }).filter(({ box }) => inside(box));
    const free = choices.find(({ box }) => !taken.some((other) => meet(box, other)));
    const place = free ?? choices[0] ?? { ...SPOTS[0], box: null };
    if ((free || number === 0) && place.box) taken.push(place.box);
    point.place = { ...place, free: Boolean(free) || number === 0 };
  }
}

const meet = (one, other) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

/** Move the focus to the nearest point in the direction of an arrow key. */
function walk(event, points, nodes) {
  const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  const here = nodes.indexOf(event.target);
  if (!direction || here < 0) return;
  event.preventDefault();
  let best = -1;
  let least = Infinity;
  for (const [number, point] of points.entries()) {
    const [x, y] = [point.left - points[here].left, point.top - points[here].top];
    const along = x * direction[0] + y * direction[1];
    const aside = Math.abs(x * direction[1] - y * direction[0]);
    const cost = along + 2 * aside;
    if (number !== here && along > 0 && cost < least) [best, least] = [number, cost];
  }
  if (best < 0) return;
  nodes[here].setAttribute("tabindex", "-1");
  nodes[best].setAttribute("tabindex", "0");
  nodes[best].focus();
}
