"""Write linked documents for programs (JSONL), for the browser (HTML) and for reading (brackets)."""

import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, Literal, get_args

from ebert.errors import EbertError
from ebert.linking.document import Linked, LinkedMention
from ebert.text.passage import write_markup

Format = Literal["jsonl", "html", "brackets"]

PAGE = """<!doctype html>
<html>
<head>
<meta charset="utf-8">
<title>Linked text</title>
<style>
body { font: 16px/1.6 system-ui, sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em; color: #222; }
article { white-space: pre-wrap; overflow-wrap: anywhere; margin-bottom: 2em; }
h2 { font-size: 1em; color: #555; border-bottom: 1px solid #ddd; }
mark { border-radius: .2em; padding: 0 .15em; color: inherit; }
mark a { color: inherit; text-decoration: none; border-bottom: 1px solid #555; }
@media print {
 mark::after { content: " [" attr(data-entity) "]"; font-size: .8em; color: #555; }
}
@media screen and (prefers-color-scheme: dark) {
 body { background: #181818; color: #ddd; } h2 { color: #aaa; border-color: #444; } mark { color: #111; }
}
</style>
</head>
<body>
"""
END = "</body>\n</html>\n"
PALE, STRONG = 25, 85  # percent of colour for a probability of 0 and of 1


def lines(linked: Iterable[Linked], form: str) -> Iterator[str]:
    """Yield the text of documents in a format, part by part; joined, the parts are the file."""
    if form not in get_args(Format):
        raise EbertError(f"unknown format {form!r}; choose one of {', '.join(get_args(Format))}")
    if form == "html":
        yield PAGE
    for one in linked:
        if form == "jsonl":
            yield json.dumps(as_json(one), ensure_ascii=False) + "\n"
        else:
            yield article(one) if form == "html" else brackets(one) + "\n"
    if form == "html":
        yield END


def as_json(linked: Linked) -> dict[str, Any]:
    """Return a document as an object of JSON; offsets count characters."""
    return {
        "id": linked.document.id,
        "text": linked.document.text,
        "mentions": [mention_value(mention) for mention in linked.mentions],
    }


def brackets(linked: Linked) -> str:
    """Write links into the text, ``[[Tony Adams|Adams]] and ...``, as `Passage.parse` reads them.

    A bar in the title of your own entity is written as a broken bar, as the markup cannot contain it.
    """
    text, out, done = linked.document.text, "", 0
    for mention in linked.mentions:
        span = [(mention.start - done, mention.end - done, mention.entity.replace("|", "¦"))]
        out += write_markup(text[done : mention.end], span)
        done = mention.end
    return out + write_markup(text[done:], [])


def article(linked: Linked) -> str:
    """Write a document as HTML. The surer a link is, the stronger it is highlighted.

    Hovering shows the title and the other candidates; in print the title stands after the words.
    """
    text = linked.document.text
    parts, done = [f"<h2>{escape(linked.document.id)}</h2>\n<article dir='auto'>"], 0
    for mention in linked.mentions:
        strength = round(PALE + (STRONG - PALE) * mention.probability)
        surface = escape(text[mention.start : mention.end])
        if mention.url is not None:
            surface = f"<a href='{escape(mention.url)}'>{surface}</a>"
        parts += [
            escape(text[done : mention.start]),
            f"<mark style='background: color-mix(in srgb, gold {strength}%, white)' title='{escape(_hint(mention))}' "
            f"data-entity='{escape(mention.entity)}'>",
            surface,
            "</mark>",
        ]
        done = mention.end
    return "".join([*parts, escape(text[done:]), "</article>\n"])


def _hint(mention: LinkedMention) -> str:
    """Return the title with its ids, and the candidates with their probabilities, one per line."""
    named = " · ".join(filter(None, (mention.entity, mention.wikidata_id, mention.id)))
    others = [f"{one.title}: {one.probability:.1%}" for one in mention.candidates[:5]]
    return "\n".join([named, *others, f"no entity: {mention.null:.1%}"])


def mention_value(mention: LinkedMention) -> dict[str, Any]:
    """Return a mention as an object of JSON."""
    return {
        "start": mention.start,
        "end": mention.end,
        "text": mention.text,
        "entity": mention.entity,
        "wikidata": mention.wikidata_id,
        "id": mention.id,
        "url": mention.url,
        "probability": round(mention.probability, 6),
        "null_probability": round(mention.null, 6),
        "candidates": [
            {
                "entity": one.title,
                "prior": round(one.prior, 6),
                "score": round(one.score, 4),
                "probability": round(one.probability, 6),
            }
            for one in mention.candidates
        ],
    }
