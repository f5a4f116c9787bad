"""One wiki: how it writes titles, what its namespaces are called, where a link on it leads."""

import html
import re
from dataclasses import dataclass, field
from functools import cached_property
from html.entities import name2codepoint
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from ebert.text import titles
from ebert.wikipedia import languages

FILE, CATEGORY, MEDIA = 6, 14, -2
LONGEST = 2000  # characters of a link target; a title has at most 255 bytes, which may be percent-encoded
REMEMBERED = 1 << 17  # link targets to cache; a wiki has millions, but most links go to few pages

_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z0-9]{2,32}));")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_PERCENT = re.compile("%[0-9a-fA-F]{2}")
# At the very beginning of a page: '#REDIRECT [[Target]]', with a colon or blanks or neither.
_REDIRECT = re.compile(
    r"\s*+#\s*+([^\s\[\]{}|<>:#]++)(?:\s++hướng)?\s*+:?\s*+\[\[([^\[\]{}|<>\n]++)(?:\|[^\[\]\n]*+)?\]\]([^\n]*+)"
)
_TAG = re.compile(r"<(?:\w+:)?(dbname|base|case)\b[^<>]*>([^<>]*)<")
_NAMESPACE = re.compile(r"<(?:\w+:)?namespace\b([^<>]*?)>([^<>]*)</")
_KEY = re.compile(r"""\bkey\s*=\s*["'](-?[0-9]{1,6})["']""")
_LANGUAGE = re.compile(r"""<(?:\w+:)?mediawiki\b[^<>]*\bxml:lang\s*=\s*["']([A-Za-z-]{2,20})["']""")
_HOST = re.compile(r"^(?:https?:)?//([a-z-]{2,12})\.(?:m\.)?wik[a-z]+\.org", re.IGNORECASE)
_DATABASE = re.compile(r"^([a-z_]{2,12}?)wik(?:i|tionary|ibooks|inews|iquote|isource|iversity|ivoyage)$")


@dataclass(frozen=True)
class Site:
    """A wiki: its language, what its namespaces are called, and whether 'apple' and 'Apple' are one page.

    >>> ENGLISH.title("jean_Marais#Career")
    'Jean Marais'
    """

    language: str = "en"
    namespaces: dict[str, int] = field(default_factory=lambda: languages.local_names("en"), repr=False)
    case: Literal["first-letter", "case-sensitive"] = "first-letter"
    seen: dict[str, str | None] = field(default_factory=dict, init=False, repr=False, compare=False)  # by `target`

    @classmethod
    def of(cls, language: str, case: Literal["first-letter", "case-sensitive"] = "first-letter") -> "Site":
        """Return the Wikipedia of a language."""
        return cls(language, languages.local_names(language), case)

    @classmethod
    def from_siteinfo(cls, xml: str) -> "Site":
        """Read the head of a dump; whatever it lacks is filled in from the language, and the language is English."""
        tags = {name: html.unescape(value).strip() for name, value in _TAG.findall(xml)}
        language = _language(xml, tags)
        names = languages.local_names(language)
        for attributes, name in _NAMESPACE.findall(xml):
            if (key := _KEY.search(attributes)) and (name := titles.clean(html.unescape(name)).lower()):
                names[name] = int(key[1])
        sensitive = tags.get("case") == "case-sensitive"
        return cls(language, names, "case-sensitive" if sensitive else "first-letter")

    def title(self, raw: str) -> str:
        """Write the target of a link, or a title, as the wiki does; empty if there is none."""
        page = decode(raw) if "&" in raw else raw
        page = unquote(page)
        page = titles.clean(page.partition("#")[0]).lstrip(": ")
        if not page:
            return ""
        before, colon, after = page.partition(":")
        if colon and (after := after.lstrip()) and before.rstrip().lower() in self.namespaces:
            return f"{self._capital(before.rstrip())}:{self._capital(after)}"
        return self._capital(page)

    def namespace(self, title: str) -> int:
        """Return the number of the namespace a title is in; articles are in 0."""
        before, colon, _ = title.partition(":")
        return self.namespaces.get(titles.clean(before).lower(), 0) if colon else 0

    def redirect(self, source: str) -> str | None:
        """Return the title that a page redirects to, or None if it is not a redirect."""
        match = _REDIRECT.match(source)
        if not match:
            return None
        word, target, rest = match.groups()
        # An unknown word, in capitals if the script has them, is a redirect too if nothing follows: no list looks so.
        alike = word[0].isalpha() and word == word.upper() and not rest.strip()
        if word.lower() not in languages.REDIRECT_WORDS and not alike:
            return None
        return self.title(target) or None

    def target(self, raw: str) -> str | None:
        """Return where a link leads: the title of an article, "" for mere text, None for what is not text.

        Files, categories and links to the same page in other languages are not part of the running text unless a colon
        stands before them.
        """
        if raw in self.seen:
            return self.seen[raw]
        if len(raw) > LONGEST:
            return ""
        if len(self.seen) >= REMEMBERED:
            self.seen.clear()
        found = self.seen[raw] = self._target(raw)
        return found

    def _target(self, raw: str) -> str | None:
        nothing: str | None = None  # what to give for files and the like
        while True:
            before, colon, after = raw.partition(":")
            if not colon or "#" in before.replace("&#", ""):
                return self.title(raw)
            prefix = titles.clean(before).lower()
            if prefix in self.namespaces:
                return nothing if self.namespaces[prefix] in (FILE, CATEGORY, MEDIA) else ""
            if prefix in languages.SISTERS or after.startswith("//"):
                return ""
            if prefix and prefix != self.language:
                return nothing if prefix in languages.LANGUAGES else self.title(raw)
            if not prefix:
                nothing = ""  # [[:Category:X]] is shown
            raw = after  # [[:X]], and [[en:X]] in the English Wikipedia

    def _capital(self, title: str) -> str:
        if self.case != "first-letter":
            return title
        letter = title[0].upper()
        # ß has no capital of one letter, and the capitals of Georgian are not used at the beginning of a title
        return letter + title[1:] if len(letter) == 1 and not "\u1c90" <= letter <= "\u1cbf" else title

    def __reduce__(self) -> tuple[type["Site"], tuple[Any, ...]]:
        return Site, (self.language, self.namespaces, self.case)  # a cache

    @cached_property
    def trail(self) -> str:
        """The letters that belong to the link right before them, as the inside of a character class."""
        return languages.trail(self.language)


def decode(text: str) -> str:
    """Replace HTML entities; unknown ones stay as they are."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        code = name2codepoint.get(name, 39 if name == "apos" else -1)
    else:
        code = int(decimal) if decimal else int(hexadecimal, 16)
    if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
        return match[0]
    if 0x80 <= code < 0xA0:  # people mean the character of Windows, and browsers show that
        return bytes([code]).decode("cp1252", "replace")
    return chr(code) if code >= 32 else " "


def unquote(text: str) -> str:
    """Replace %C3%A9 and the like, if what comes out is text."""
    if "%" not in text or not _PERCENT.search(text):
        return text
    try:
        decoded = unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        return text
    return text if _CONTROL.search(decoded) else decoded


def _language(xml: str, tags: dict[str, str]) -> str:
    if match := _LANGUAGE.search(xml):
        return match[1].lower()
    if (match := _HOST.match(tags.get("base", ""))) and match[1].lower() in languages.LANGUAGES:
        return match[1].lower()
    if match := _DATABASE.match(tags.get("dbname", "")):
        code = match[1].replace("_", "-")
        if code in languages.LANGUAGES:
            return code
    return "en"


ENGLISH = Site()
