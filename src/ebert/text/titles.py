"""The spellings people use for an entity: its title, a URL of its Wikipedia page, its Wikidata id."""

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote

from ebert.errors import EbertError
from ebert.text import letters

_MARKS = re.compile("[\u200e\u200f\u202a-\u202e]")  # of writing direction: unseen, and copied along from web pages
# English pages only: the title in a French URL names something else in English.
_URL = re.compile(r"^(?:https?:)?(?://)?(?:(?:en|www)\.)?(?:m\.)?wikipedia\.org/", re.IGNORECASE)
_WIKIDATA = re.compile(
    r"^(?:https?://(?:www\.|m\.)?wikidata\.org/(?:wiki|entity)/|wd:)?Q([1-9][0-9]{0,17})$", re.IGNORECASE | re.ASCII
)


def clean(title: str) -> str:
    """Write a title as Wikipedia does: composed letters, blanks for underscores, none doubled, none at the ends."""
    if not title.isascii():
        title = unicodedata.normalize("NFC", _MARKS.sub("", title))
    return " ".join(title.replace("_", " ").split())


def usable(title: str) -> str:
    """Return a title as `clean` does, or nothing if it has an invisible character: nobody could find it."""
    title = clean(title)
    return "" if letters.unseen(title) else title


def spellings(name: str) -> list[str]:
    """Return the titles that `name` may stand for, the most likely first.

    >>> spellings(" jean_Marais ")
    ['jean Marais', 'Jean Marais']
    >>> spellings("https://en.wikipedia.org/wiki/Beyonc%C3%A9#Career")[0]
    'Beyoncé'
    """
    title = clean(_from_url(name.strip()))
    if not title:
        return []
    # Wikipedia's titles begin with a capital; those of other knowledge bases need not.
    forms = [title, _first(title, str.upper), _first(title, str.lower)]
    if page := _without_section(title):
        forms += [page, _first(page, str.upper)]
    return list(dict.fromkeys(forms))


def wikidata_id(name: str) -> int | None:
    """Return the number of a Wikidata id such as ``Q168359``, or None."""
    match = _WIKIDATA.match(name.strip())
    return int(match[1]) if match else None


def is_text(name: str) -> bool:
    """Return whether a name can be encoded: half a surrogate pair cannot."""
    try:
        name.encode()  # much faster than to look at every letter
    except UnicodeEncodeError:
        return False
    return True


def as_text(name: str) -> str:
    """Return a name that can be encoded: characters that cannot become question marks."""
    return name.encode("utf-8", "replace").decode()


def read_titles(path: str | Path) -> list[str]:
    """Read a file of titles, one per line."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise EbertError(f"there is no file {path}; it should have one title per line") from None
    except UnicodeDecodeError as error:
        raise EbertError(f"{path} is not UTF-8 text ({error})") from None
    titles = [line.strip() for line in lines if line.strip()]
    if not titles:
        raise EbertError(f"{path} has no titles in it; it should have one per line")
    return titles


def _first(title: str, change: Callable[[str], str]) -> str:
    """Change the case of the first letter, unless that makes two of it (ß, ŉ, İ), which Wikipedia does not do."""
    letter = change(title[0])
    return letter + title[1:] if len(letter) == 1 else title


def _without_section(title: str) -> str | None:
    """Return the page of 'Jean Marais#Career'. 'C#', 'C# (language)' and 'F#A#∞' are no sections of a letter."""
    page, _, section = title.partition("#")
    return page.strip() if section and section[0] != " " and len(page) > 1 else None


def _from_url(name: str) -> str:
    """Return the title in the URL of a Wikipedia page; anything else is a title already."""
    url = _URL.match(name)
    if not url:
        return name
    path, _, query = name[url.end() :].partition("#")[0].partition("?")
    if title := parse_qs(query).get("title"):
        return title[0]
    return unquote(path[len("wiki/") :]) if path.startswith("wiki/") else ""
