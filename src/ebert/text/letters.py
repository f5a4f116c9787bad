"""Invisible characters, and words that mix letters of two scripts which look alike."""

import re
import unicodedata
from collections.abc import Iterable

# Control characters, and what Unicode wants to be drawn as nothing: soft hyphens, marks of zero width or of writing
# direction, fillers, joiners, variation selectors, tags.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f")  # of a part of a country, such as Scotland
_JOINERS = "\u200c\u200d"
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_KEYCAP = "\u20e3"
# Scripts whose letters are never parted or joined by unseen marks; in Arabic, Indic and other scripts they are.
_PLAIN = {
    "LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "GEORGIAN", "HEBREW", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO",
    "THAI", "LAO", "ETHIOPIC", "CHEROKEE", "COPTIC", "LISU", "COMBINING", "DIGIT", "FULLWIDTH", "MODIFIER", "VARIATION",
}  # fmt: skip
_SELECTED = {"CJK", "MYANMAR", "PHAGS-PA", "INFORMATION"}  # whose letters have variants; the last one is an emoji
_ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")  # that have letters in common
_WORD = re.compile(r"\w+")


def unseen(name: str) -> str | None:
    """Return an invisible character of a name that its script does not need, or None.

    Persian and Indic words need joiners, as do emoji, which may need variation selectors and tags too.

    >>> unseen("Den\u200bmark")
    'U+200B (zero width space)'
    >>> unseen("می\u200cخواهم")
    """
    if name.isascii() and name.isprintable():
        return None
    name = _FLAG.sub("\U0001f3f4", name)
    for match in _UNSEEN.finditer(name):
        if not _is_needed(name, match.start()):
            code = f"U+{ord(match[0]):04X}"
            return f"{code} ({unicodedata.name(match[0], 'control character').lower()})"
    return None


def mixed(name: str) -> str | None:
    """Return the scripts that a word of a name mixes, although they have letters that look the same, or None.

    >>> mixed("Denm\u0430rk")
    'Latin and Cyrillic'
    """
    if name.isascii():
        return None
    for word in _WORD.findall(name):
        scripts = {_script(letter) for letter in word}
        if len(found := [script.title() for script in _ALIKE if script in scripts]) > 1:
            return " and ".join(found)
    return None


def oddity(name: str) -> str | None:
    """Return what makes a name look like another one that it is not, in a few words, or None."""
    if hidden := unseen(name):
        return f"has {hidden}"
    scripts = mixed(name)
    return f"mixes {scripts} letters" if scripts else None


def remark(name: str) -> str:
    """Return the text to show after a name: nothing, or its oddity in brackets."""
    odd = oddity(name)
    return f" ({odd})" if odd else ""


def listed(names: Iterable[str]) -> str:
    """Return names for people to read, each with its remark."""
    return ", ".join(f"{name}{remark(name)}" for name in names)


def _is_needed(name: str, place: int) -> bool:
    """Return whether an invisible mark is needed at its place."""
    before, mark, after = name[:place][-1:], name[place], name[place + 1 : place + 2]
    if mark in _JOINERS:
        return bool(before and after) and (_is_joined(before) or _is_joined(after))
    if before and _SELECTORS.match(mark):
        letter = before.isspace() or unicodedata.category(before)[0] in "LMN" or before.isascii()
        return not letter or _script(before) in _SELECTED or after == _KEYCAP
    return False


def _is_joined(letter: str) -> bool:
    """Return whether a letter is of a script that needs joiners, or an emoji."""
    kind = unicodedata.category(letter)
    return kind in ("So", "Sk") or (kind[0] in "LMN" and _script(letter) not in _PLAIN)


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
