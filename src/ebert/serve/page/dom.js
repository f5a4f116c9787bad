// Making elements. Text is inserted as text nodes only: nothing from a user or the service is read as markup.

/** Make an element with attributes (`on…` are listeners) and children (elements or text). */
export function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...present(children));
  return node;
}

/** Put children into an element instead of what is there; those that are false, null or empty are left out. */
export function put(node, ...children) {
  node.replaceChildren(...present(children));
}

const present = (children) => children.filter((child) => child || child === 0);

/** Make a link to another site, which learns nothing of this page. */
export const away = (href, words) => el("a", { href, rel: "noreferrer noopener", target: "_blank" }, words);

/** Return the element with an id. */
export const byId = (id) => document.getElementById(id);

/** Set a custom property of CSS; the Content-Security-Policy allows that, but no style attributes. */
export function styled(node, name, value) {
  node.style.setProperty(name, value);
  return node;
}

/** Write a probability for people. */
export function percent(share) {
  if (share >= 0.995) return share === 1 ? "100%" : ">99%";
  if (share >= 0.1) return `${Math.round(share * 100)}%`;
  return share >= 0.001 ? `${(share * 100).toFixed(1)}%` : "<0.1%";
}

/** Write a whole number for people. */
export const whole = (number) => number.toLocaleString("en");

/** Write a number and its noun. */
export const plural = (number, noun, more = `${noun}s`) => `${whole(number)} ${number === 1 ? noun : more}`;

/** Join words as in a sentence. */
export function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
