"""Tables of Wikidata ids and titles, for data with ids when a store knows few."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ebert.errors import EbertError
from ebert.text import titles

FORMS = "it should be JSON such as {'Q90': 'Paris'}, or lines of a title, a tab and an id"


def read_ids(path: str | Path) -> dict[int, str]:
    """Read titles (or URLs of pages) by Wikidata id; of two titles of an id the first counts.

    The file is JSON ``{"Q90": "Paris", ...}``; or the published list of FB15k's entities, whose objects have a
    `wikidata_id` and the URL of their page, `wikipedia`; or lines ``title TAB Q90``, in either order.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
        pairs = _from_json(json.loads(text), path) if text.lstrip().startswith(("{", "[")) else _from_lines(text, path)
    except (OSError, ValueError) as error:  # not UTF-8, or not JSON
        raise EbertError(f"{path} cannot be read ({error}); {FORMS}") from None
    found: dict[int, str] = {}
    for number, title in pairs:
        found.setdefault(number, title)
    if not found:
        raise EbertError(f"{path} has no Wikidata ids with titles; {FORMS}")
    return found


def _from_json(table: Any, path: str | Path) -> Iterator[tuple[int, str]]:
    if not isinstance(table, dict):
        raise EbertError(f"{path} is not a table of ids; {FORMS}")
    for key, value in table.items():
        name, title = (value.get("wikidata_id"), value.get("wikipedia")) if isinstance(value, dict) else (key, value)
        number = titles.wikidata_id(name) if isinstance(name, str) else None
        if number is not None and isinstance(title, str) and title.strip():
            yield number, title


def _from_lines(text: str, path: str | Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            left, _, right = line.rstrip("\r").partition("\t")
            name, title = (right, left) if titles.wikidata_id(right) is not None else (left, right)
            item = titles.wikidata_id(name)
            if item is None or not title.strip():
                raise EbertError(f"{path}, line {number}: no title and Wikidata id separated by a tab; {FORMS}")
            yield item, title.strip()
