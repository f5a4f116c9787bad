"""Convert wikitext to running text with anchors: what a reader sees in the paragraphs of a page, and its links.

Templates, tables, references, files and headings are not part of it; lists are, one paragraph per entry. A line is a
paragraph: text that MediaWiki would join to one paragraph is two here if there is a line break in it.

The reader is written by hand: parsers that build a tree (mwparserfromhell) take many times as long, and not linear time
for some pages. One regular expression finds the next piece of markup, and a stack remembers what is open. The output is
one flat list. Something that turns out not to be text is cut off at its end again, and something that is never closed
needs no repair. So the time is always linear in the length of the page.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from ebert.wikipedia import wikitext_markup as markup
from ebert.wikipedia.site import ENGLISH, Site, decode
from ebert.wikipedia.templates import CLOSE, HEADING, OPEN, Keep, Link, Make, Template, Written, find_template
from ebert.wikipedia.wikitext_markup import BRACES, BRACKETS, HTML_TABLES, RAW, TABLES, Regions

_BLANKS = re.compile("  +")
_LOOSE = re.compile(rf"{OPEN}[\s{CLOSE}]|{CLOSE}(?<=\s{CLOSE})")  # an anchor with blanks at its edges, or with nothing


class Anchor(NamedTuple):
    """A link in the text: the characters `start` to `end` name the page `title`."""

    start: int
    end: int
    title: str


class Plain(NamedTuple):
    """The running text of a page, a paragraph a line; `text[:opening]` is what stands before the first heading."""

    text: str
    anchors: list[Anchor]
    opening: int


def to_plain(source: str, site: Site = ENGLISH) -> Plain:
    """Return the running text of a page and the links in it. Broken markup is read as well as possible; nothing raises.

    >>> to_plain("'''Jean Marais''' was a [[France|French]] [[actor]]s.{{citation needed}}").text
    'Jean Marais was a French actors.'
    """
    for mark in (OPEN, CLOSE, HEADING, "\r"):
        if mark in source:
            source = source.replace(mark, " ")
    reader = WikitextReader(source, site)
    reader.read()
    return _finish("".join(reader.written.pieces), reader.written.titles)


def _finish(text: str, titles: list[str]) -> Plain:
    """Tidy the blanks and remove the marks."""
    if "&" in text:
        text = decode(text)
    for blank in ("\t", "\xa0"):
        if blank in text:
            text = text.replace(blank, " ")
    if _LOOSE.search(text):
        text, titles = _tighten(text, titles)
    if "  " in text:
        text = _BLANKS.sub(" ", text)
    before, _, after = text.partition(HEADING)
    opening = _lines(before)
    text = "\n".join(filter(None, (opening, _lines(after))))
    parts = text.replace(CLOSE, OPEN).split(OPEN)  # between anchors, in an anchor, between anchors, ...
    anchors = []
    position = 0
    for before, surface, title in zip(parts[:-1:2], parts[1::2], titles, strict=True):
        start = position + len(before)
        position = start + len(surface)
        anchors.append(Anchor(start, position, title))
    return Plain("".join(parts), anchors, len(opening) - 2 * opening.count(OPEN))


def _tighten(text: str, titles: list[str]) -> tuple[str, list[str]]:
    """Put the blanks at the edges of anchors outside, and forget anchors that have no words, as [[Paris|&nbsp;]]."""
    before, *anchors = text.split(OPEN)
    pieces, filled = [before], []
    for anchor, title in zip(anchors, titles, strict=True):
        words, _, after = anchor.partition(CLOSE)
        left, right = words[:1].isspace(), words[-1:].isspace()
        if words := words.strip():
            pieces += [" " * left, OPEN, words, CLOSE]
            filled.append(title)
        pieces += [" " * right, after]
    return "".join(pieces), filled


def _lines(text: str) -> str:
    return "\n".join(filter(None, map(str.strip, text.split("\n"))))


# Every alternative begins with a literal character, not with a group: then `re` skips everything that is not markup at
# once. None can fail after reading far: what follows a repetition cannot match it, and nothing is tried twice (`*+`).
_MARKUP = r"""
  \[\[ ([^\[\]{{}}<|\n]*+) (?: \| ([^\[\]{{}}<\n]*+) )?+ \]\] ([{trail}]*+)     # 1 2 3: a link
| '('++)                                                                    # 4: italics, bold
| <()                                                                       # 5: a tag
| \n (?: (=[^\n]*+) | ([*\#:;]++[ \t]*+ | -{{4,}}+) )                         # 6: a heading?  7: a list, a rule
| \{{(\{{++)                                                                  # 8: a template
| \}}(\}}++)                                                                  # 9: its end
| \|()                                                                      # 10
| \[((?: (?:(?:https?|ftps?|news|irc|git):)?// | mailto: ) [^\s\[\]<>"]*+ [ \t]*+)  # 11: a link to outside
| \[\[ ([^\[\]{{}}<|\n]*+) (\|?+)                                             # 12 13: a link with more in it
| \](\]?+)                                                                  # 14: the end of a link
| \{{(\|)                                                                    # 15: a table
| __([^\W\d_]++)__                                                          # 16: a switch
| \{{(?<=-\{{)()                                                              # 17: language variants
| \}}-()                                                                     # 18: their end
"""
_WHOLE_LINK = 3
_NAME = re.compile(r"\s*+([^{}\[\]|<>\n]*+)(\|?+)")
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]{0,20})\b[^<>]*+>")
_NOWIKI = re.compile("</?nowiki>", re.IGNORECASE)
_VARIANT = re.compile(r"\{([^{}\[\]<>\n]*+)\}-")
_SWITCHES = frozenset(("NOTOC", "TOC", "FORCETOC", "NOEDITSECTION", "NOGALLERY", "NOINDEX", "HIDDENCAT", "DISAMBIG"))
_BLOCK_NAMES = """
blockquote caption center dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p poem table tbody td th tr ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_INLINE_NAMES = """
abbr b bdi bdo big br cite code data del dfn em font i ins kbd languages mark noinclude onlyinclude q rb rp rt rtc
ruby s samp section small span strike strong sub sup time translate tt tvar u var wbr
"""
_INLINE = frozenset(_INLINE_NAMES.split())
_TAGS = _BLOCKS | _INLINE | frozenset(RAW.split("|"))


@lru_cache(maxsize=512)
def _patterns(trail: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(_MARKUP.format(trail=trail), re.VERBOSE), re.compile(f"[{trail}]*+")


class WikitextReader:
    """One page being read; `read` it once and take what is `written`."""

    def __init__(self, source: str, site: Site) -> None:
        self.written = Written()
        self._source = f"\n{source}"  # every line begins with a line break
        self._site = site
        self._regions = Regions(self._source)
        self._token, self._trail = _patterns(site.trail)
        self._stack: list[Link | Template | None] = []  # None is a link to outside, whose text is plain
        self._templates = 0  # in the stack
        self._variants = 0  # open
        self._headed = False
        self._line_end = self._apostrophe = -1  # see `_quotes`

    def read(self) -> None:
        """Read the page."""
        source, search = self._source, self._token.search
        write, titles = self.written.pieces.append, self.written.titles
        seen, find = self._site.seen, self._site.target
        handlers = (
            self._quotes, self._tag, self._heading, self._list, self._template, self._end_template, self._bar,
            self._outside, self._link, self._link, self._end_link, self._table, self._switch, self._variant,
            self._end_variant,
        )  # fmt: skip
        position = 0
        while match := search(source, position):
            start, end = match.span()
            write(source[position:start])
            kind = match.lastindex or 0
            if kind != _WHOLE_LINK:
                position = handlers[kind - 4](match)
                continue
            target, label, trail = match.group(1, 2, 3)
            title = seen[target] if target in seen else find(target)
            if title is None:
                position = end - len(trail)
                continue
            position = end
            if label is None:
                label = markup.shown(target)
            elif not label:
                label = markup.pipe_trick(target)
            elif "''" in label:
                label = markup.without_quotes(label)
            if title:
                write(f"{OPEN}{label}{trail}{CLOSE}")
                titles.append(title)
            else:
                write(label + trail)
        write(source[position:])

    # Each of these takes a match, writes its text, and returns where to continue.

    def _quotes(self, match: re.Match[str]) -> int:
        start, end = match.span()
        count = end - start
        if count == 3 and start >= self._line_end:  # look at the line once, however many quotes are in it
            begin = self._source.rfind("\n", 0, start) + 1
            self._line_end = self._line_end_after(start)
            found = markup.literal_apostrophe(self._source[begin : self._line_end])
            self._apostrophe = begin + found if found >= 0 else -1
        if count > 2:
            self.written.pieces.append(markup.literal(count, start == self._apostrophe))
        return end

    def _tag(self, match: re.Match[str]) -> int:
        start, write = match.start(), self.written.pieces.append
        name, inside, end = self._regions.raw(start)
        if name:
            if end > inside and name in ("nowiki", "pre"):
                content = self._source[inside : self._source.rfind("<", inside, end)]
                write(_NOWIKI.sub("", content) if name == "pre" else content)
            return end if end >= 0 else inside
        tag = _TAG.match(self._source, start)
        name = tag[1].lower() if tag else ""
        if tag is None or name not in _TAGS:
            write("<")
            return start + 1
        if name in _BLOCKS:
            write("\n")
        elif name == "br":
            write(" ")
        if name == "table" and self._source[start + 1] != "/":
            end = self._regions.end(HTML_TABLES, start + len("<table"))
            return end if end >= 0 else tag.end()
        return tag.end()

    def _heading(self, match: re.Match[str]) -> int:
        line = match[6].rstrip()
        if not line.endswith("=") and "<!--" in line:
            line = line[: line.index("<!--")]
        write = self.written.pieces.append
        if len(line) < 3 or not line.rstrip().endswith("="):
            write("\n")
            return match.start() + 1
        self._stack.clear()  # nothing crosses a heading
        self._templates = self._variants = 0
        write("\n" if self._headed else HEADING)
        self._headed = True
        return match.start() + 1 + len(line)

    def _list(self, match: re.Match[str]) -> int:
        self.written.pieces.append("\n")
        return match.end()

    def _template(self, match: re.Match[str]) -> int:
        start, end = match.span()
        braces = end - start
        if braces == 3:
            self._open(Keep(), braces)
            return end
        name = _NAME.match(self._source, end)
        assert name is not None
        word, colon, _ = name[1].partition(":")
        text = find_template(word + colon)
        if text is None or isinstance(text, str):
            self.written.pieces.append(text or "")
            end = self._regions.end(BRACES, end, braces)
            return end if end >= 0 else name.end(2)
        frame = self._open(text, braces)
        if not colon:
            return name.start(2)
        frame.begin(self.written)  # as in {{formatnum:1234}}
        return name.start(1) + len(word) + 1

    def _open(self, text: Keep | Make, braces: int) -> Template:
        frame = Template(self.written.mark(), text, braces)
        self._stack.append(frame)
        self._templates += 1
        return frame

    def _end_template(self, match: re.Match[str]) -> int:
        start, end = match.span()
        while end - start >= 2 and self._templates:
            frame = self._stack.pop()  # a link in the template that is not closed there is not closed at all
            if isinstance(frame, Template):
                self._templates -= 1
                frame.close(self.written)
                start += frame.braces
        return end

    def _bar(self, match: re.Match[str]) -> int:
        frame = self._stack[-1] if self._stack else None
        if isinstance(frame, Template):
            frame.end(self.written)
            frame.begin(self.written)
        elif isinstance(frame, Link) and frame.title is None:
            frame.title = self._read_target(frame)
            self.written.cut(frame.mark)
        elif not self._stack and self._source[match.start() - 1] == "\n":
            return self._line_end_after(match.end())  # a row of a table that nothing opened
        else:
            self.written.pieces.append("|")
        return match.end()

    def _outside(self, match: re.Match[str]) -> int:
        self._stack.append(None)
        return match.end()

    def _link(self, match: re.Match[str]) -> int:
        title = self._site.target(match[12])
        if title is None:
            end = self._regions.end(BRACKETS, match.start() + 2)
            return end if end >= 0 else match.end()
        if match[13]:
            self._stack.append(Link(self.written.mark(), title))
            return match.end()
        if self._source[match.end() : match.end() + 1] in ("{", "<"):
            self._stack.append(Link(self.written.mark(), None))
        return match.start() + 2

    def _end_link(self, match: re.Match[str]) -> int:
        end = match.end()
        frame = self._stack[-1] if self._stack else None
        if self._stack and frame is None:
            self._stack.pop()
            return match.start() + 1
        if not match[14]:
            self.written.pieces.append("]")
        elif isinstance(frame, Link):
            self._stack.pop()
            title = self._read_target(frame) if frame.title is None else frame.title
            if title and len(self.written.titles) == frame.mark[1]:
                trail = self._trail.match(self._source, end)
                assert trail is not None
                self.written.anchor(frame.mark, title, trail[0])
                return trail.end()
        return end

    def _read_target(self, frame: Link) -> str:
        """Return the title of a link whose target had to be read."""
        text = self.written.since(frame.mark)
        return (self._site.target(text) if text else None) or ""

    def _table(self, match: re.Match[str]) -> int:
        self.written.pieces.append("\n")
        end = self._regions.end(TABLES, match.end())
        return end if end >= 0 else self._line_end_after(match.end())

    def _switch(self, match: re.Match[str]) -> int:
        if match[16] != match[16].upper() and match[16].upper() not in _SWITCHES:
            self.written.pieces.append(match[0])
        return match.end()

    def _variant(self, match: re.Match[str]) -> int:
        pieces = self.written.pieces
        pieces[-1] = pieces[-1].removesuffix("-")
        whole = _VARIANT.match(self._source, match.start())
        if whole:
            pieces.append(markup.variant(whole[1]))
            return whole.end()
        self._variants += 1
        return match.end()

    def _end_variant(self, match: re.Match[str]) -> int:
        if self._variants:
            self._variants -= 1
        else:
            self.written.pieces.append(match[0])
        return match.end()

    def _line_end_after(self, position: int) -> int:
        end = self._source.find("\n", position)
        return end if end >= 0 else len(self._source)
