"""The spellings people use for an entity: its title, a URL of its Wikipedia page, its Wikidata id."""

import re
from urllib.parse import parse_qs, unquote, urlsplit

_BLANKS = re.compile(r"[\s_]+")
_URL = re.compile(r"^(?:https?:)?(?://)?[a-z][a-z0-9-]*(?:\.m)?\.wikipedia\.org/", re.IGNORECASE)
_WIKIDATA = re.compile(r"^(?:https?://(?:www\.)?wikidata\.org/(?:wiki|entity)/)?Q([1-9][0-9]*)$", re.IGNORECASE)


def clean(title: str) -> str:
    """Write a title as Wikipedia shows it: blanks for underscores, none doubled, none at the ends."""
    return _BLANKS.sub(" ", title).strip()


def spellings(name: str) -> list[str]:
    """Give the titles that `name` may stand for, the likeliest first.

    >>> spellings(" jean_Marais ")
    ['jean Marais', 'Jean Marais']
    >>> spellings("https://en.wikipedia.org/wiki/Beyonc%C3%A9#Career")[0]
    'Beyoncé'
    """
    title = clean(_from_url(name))
    if not title:
        return []
    # Wikipedia's titles begin with a capital; those of other knowledge bases need not.
    forms = [title, title[0].upper() + title[1:], title[0].lower() + title[1:]]
    if (page := title.partition("#")[0].strip()) and page != title:  # a section of a page; 'C#' itself was tried above
        forms += [page, page[0].upper() + page[1:]]
    return list(dict.fromkeys(forms))


def wikidata_id(name: str) -> int | None:
    """Give the number of a Wikidata id such as ``Q168359``, or None."""
    match = _WIKIDATA.match(name.strip())
    return int(match[1]) if match else None


def _from_url(name: str) -> str:
    name = name.strip()
    if not _URL.match(name):
        return name
    parts = urlsplit(name if "//" in name.split("/wiki", 1)[0] else f"//{name}")
    if title := parse_qs(parts.query).get("title"):
        return title[0]
    page = parts.path.partition("/wiki/")[2] or parts.path.lstrip("/")
    return unquote(page)
