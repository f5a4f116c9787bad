// The address of the page, #view?name=value: every result has one, so that it can be shared.

const VIEWS = ["fill", "link", "explore", "teach"];
const latest = new Map(); // the last address of each view

/** Return the view that the address names, and the values that come with it. */
export function read() {
  const [name, ...rest] = location.hash.slice(1).split("?");
  const view = VIEWS.includes(name) ? name : VIEWS[0];
  const values = Object.fromEntries(new URLSearchParams(rest.join("?")));
  if (rest.length) latest.set(view, location.hash);
  return { view, values };
}

/** Write the address of a view; values that are empty are left out. */
export function address(view, values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `#${view}?${new URLSearchParams(given)}` : `#${view}`;
}

/** Keep the values of a view in its address; if another view is open, the page keeps the address of that view. */
export function keep(view, values) {
  const own = address(view, values);
  if (read().view === view) history.replaceState(null, "", own);
  latest.set(view, own);
}

/** Return the address that a view had last. */
export const last = (view) => latest.get(view) ?? `#${view}`;

/** Return the whole URL of what a view shows, without the token. */
export const shared = (view) => location.origin + location.pathname + location.search + last(view);
