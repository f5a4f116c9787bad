// Talking to the service: JSON in and out, the token, and errors in words.

const KEY = "ebert-token";

/** Something went wrong, in words for people. */
export class Trouble extends Error {
  constructor(words, status = 0, suggestions = []) {
    super(words);
    Object.assign(this, { status, suggestions });
  }
}

/** Take the token out of the page's address (`#token=…` or `?token=…`) and keep it for this tab. */
export function takeToken() {
  const asked = new URLSearchParams(location.search);
  const match = location.hash.match(/^#(?:(.*)&)?token=([^&]*)$/);
  const token = match ? decoded(match[2]) : asked.get("token");
  if (!token) return;
  keepToken(token);
  asked.delete("token");
  const search = asked.size ? `?${asked}` : "";
  const hash = match ? (match[1] ? `#${match[1]}` : "") : location.hash;
  history.replaceState(null, "", location.pathname + search + hash);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a token with a % that was put there as it is
  }
}

/** Keep a token for this tab. */
export function keepToken(token) {
  sessionStorage.setItem(KEY, token.trim());
}

/** Ask the service; with `body` it is a POST. Return the JSON, or throw `Trouble`. */
export async function ask(path, { query, body, signal } = {}) {
  const headers = { accept: "application/json" };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  const address = query ? `${path}?${new URLSearchParams(query)}` : path;
  const method = body ? "POST" : "GET";
  let answer;
  try {
    answer = await fetch(address, { method, headers, signal, body: body && JSON.stringify(body), credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble(
      "The service does not answer. It may have been stopped, or the connection was lost. " +
        "Check that “ebert serve” is still running, and try again. Your text is still here.",
    );
  }
  const value = await answer.json().catch(() => null);
  if (answer.ok && value !== null) return value;
  throw trouble(answer, value);
}

function trouble(answer, value) {
  if (answer.status === 401) document.dispatchEvent(new CustomEvent("ebert-token-wanted"));
  const wait = Number(answer.headers.get("retry-after"));
  const again = answer.status === 503 && wait > 0 ? ` Try again in ${wait} ${wait === 1 ? "second" : "seconds"}.` : "";
  const names = value?.suggestions ?? [];
  let said = typeof value?.error === "string" ? sentence(value.error) : "";
  if (names.length) said = `${said.split("; did you mean")[0]}. Did you mean:`; // the names follow, as buttons
  const words = said || `The service answered with status ${answer.status} and did not say why.`;
  return new Trouble(words + again, answer.status, names);
}

function sentence(words) {
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…]['"”)]?$/.test(text) ? text : `${text}.`;
}
