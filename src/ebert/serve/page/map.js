// A map of a neighbourhood: points in a plane, with labels that do not overlap.
//
// If there is no room for the label of a point, it is shown when the mouse, the focus or a finger is on the point.

import { el, put, svg } from "./dom.js";

const MARGIN = 28;
const LETTER = 6.4; // about as wide as a letter of a label
const LINE = 15;
const REACH = 18; // pixels around a point that still count as the point
const APART = 11; // pixels between two points, at least, so that each can be pointed at
const STEPS = 40; // in which they move apart
const SPOTS = [
  { x: 10, y: 4, anchor: "start" },
  { x: -10, y: 4, anchor: "end" },
  { x: 0, y: -11, anchor: "middle" },
  { x: 0, y: 20, anchor: "middle" },
  { x: 8, y: -9, anchor: "start" },
  { x: 8, y: 17, anchor: "start" },
  { x: -8, y: -9, anchor: "end" },
  { x: -8, y: 17, anchor: "end" },
]; // where a label may be, relative to its point
const KINDS = { self: "this one", entity: "entity", word: "word" };

/** Draw places ({ name, kind, x, y } from -1 to 1) on a map so many pixels wide; `open` takes the chosen one. */
export function map(places, width, open) {
  const height = Math.round(Math.min(Math.max(width * 0.72, 300), 460));
  const points = places.map((place) => ({
    ...place,
    left: MARGIN + ((place.x + 1) / 2) * (width - 2 * MARGIN),
    top: MARGIN + ((1 - place.y) / 2) * (height - 2 * MARGIN),
  }));
  spread(points, width, height);
  const order = [...points].sort((one, other) => Number(other.kind === "self") - Number(one.kind === "self"));
  label(order, width, height);
  const nodes = points.map((point, number) => node(point, number === 0));
  const callout = svg("g", { class: "callout", "aria-hidden": "true" });
  let active = -1; // the point whose name is shown
  let finger = false; // whether a finger points, not a mouse

  const show = (number) => {
    if (number === active) return;
    active = number;
    for (const [index, one] of nodes.entries()) one.classList.toggle("active", index === number);
    put(callout);
    if (number >= 0) name(callout, points[number], width, height);
  };
  const nearest = (event) => {
    const frame = picture.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    const far = points.map((point) => Math.hypot(point.left - x, point.top - y));
    const best = far.indexOf(Math.min(...far));
    return far[best] <= REACH ? best : -1;
  };
  const picture = svg(
    "svg",
    {
      class: "map",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": "Map of the neighbourhood. Arrow keys move between the points, Enter opens one.",
      onkeydown: (event) => {
        const here = nodes.indexOf(event.target);
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          if (here >= 0) open(points[here]);
        } else walk(event, points, nodes);
      },
      onfocusin: (event) => event.target.matches(":focus-visible") && show(nodes.indexOf(event.target)),
      onfocusout: (event) => event.relatedTarget && show(-1),
      onpointerdown: (event) => (finger = event.pointerType !== "mouse"),
      onpointermove: (event) => event.pointerType === "mouse" && show(nearest(event)),
      onpointerleave: (event) => event.pointerType === "mouse" && show(-1),
      onclick: (event) => {
        const number = event.detail ? nearest(event) : nodes.indexOf(event.target.closest(".point"));
        const again = number === active;
        show(number);
        if (number >= 0 && (again || !finger)) open(points[number]);
      },
    },
    svg("line", { x1: 0, x2: width, y1: height / 2, y2: height / 2, class: "axis" }),
    svg("line", { y1: 0, y2: height, x1: width / 2, x2: width / 2, class: "axis" }),
    ...nodes,
    callout,
  );
  return el(
    "figure",
    { class: "card" },
    picture,
    el(
      "figcaption",
      { class: "legend" },
      ...Object.entries(KINDS).map(([kind, words]) => el("span", { class: `key ${kind}` }, words)),
      el("span", { class: "soft" }, "Points that are close are similar; directions have no meaning."),
      el("span", { class: "soft touched" }, "Tap a point to see its name, and again to open it."),
    ),
  );
}

function node({ left, top, place, name, kind }, first) {
  return svg(
    "g",
    {
      class: `point ${kind}`,
      role: "button",
      tabindex: first ? 0 : -1,
      "data-name": name,
      "aria-label": `${name}, ${KINDS[kind]}`,
      transform: `translate(${left.toFixed(1)} ${top.toFixed(1)})`,
    },
    svg("circle", { r: kind === "self" ? 7 : 5, class: "dot" }),
    place.free && svg("text", { x: place.x, y: place.y, "text-anchor": place.anchor }, name),
  );
}

/** Draw the name of a point over everything else, inside the map. */
function name(callout, { left, top, name: words }, width, height) {
  const text = svg("text", { y: 0 }, words);
  const box = svg("rect", { rx: 5, height: 24 });
  callout.append(box, text);
  const room = width - 4;
  if (text.getComputedTextLength() > room - 16) {
    text.setAttribute("textLength", room - 16);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
  const wide = Math.min(text.getComputedTextLength() + 16, room);
  const x = Math.min(Math.max(left - wide / 2, 2), width - wide - 2);
  const y = top > 44 ? top - 36 : Math.min(top + 12, height - 26);
  box.setAttribute("width", wide);
  text.setAttribute("x", 8);
  text.setAttribute("y", 16.5);
  callout.setAttribute("transform", `translate(${x} ${y})`);
}

/** Move overlapping points apart. */
function spread(points, width, height) {
  for (let step = 0; step < STEPS; step += 1) {
    for (const [number, one] of points.entries()) {
      for (const other of points.slice(0, number)) {
        let [x, y] = [one.left - other.left, one.top - other.top];
        const far = Math.hypot(x, y);
        if (far >= APART) continue;
        if (!far) [x, y] = [Math.cos(number), Math.sin(number)];
        const by = (APART - far) / 2 / (far || 1);
        move(one, x * by, y * by, width, height);
        move(other, -x * by, -y * by, width, height);
      }
    }
  }
}

function move(point, x, y, width, height) {
  point.left = Math.min(Math.max(point.left + x, MARGIN / 2), width - MARGIN / 2);
  point.top = Math.min(Math.max(point.top + y, MARGIN / 2), height - MARGIN / 2);
}

/** Find free space for the label of every point, if there is any; the first point has a label in any case. */
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
