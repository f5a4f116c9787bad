"""Dumps for tests: a few pages, written as MediaWiki, bzip2, pbzip2, Wikipedia's multistream and gzip write them."""

import bz2
import gzip
import random
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr


class Page(NamedTuple):
    title: str
    text: str | None
    ns: int = 0
    redirect: str | None = None
    model: str = "wikitext"


SITEINFO = """  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>enwiki</dbname>
    <base>https://en.wikipedia.org/wiki/Main_Page</base>
    <case>first-letter</case>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Talk</namespace>
      <namespace key="14" case="first-letter">Category</namespace>
    </namespaces>
  </siteinfo>
"""


def minor(version: str) -> int:
    return int(version.partition(".")[2])


def page_xml(page: Page, version="0.11") -> str:
    """One page, as the export schema of that version has it."""
    modern = minor(version) >= 6
    ns = f"    <ns>{page.ns}</ns>\n" if modern else ""
    redirect = f"    <redirect title={quoteattr(page.redirect)} />\n" if modern and page.redirect else ""
    model = f"      <model>{page.model}</model>\n      <format>text/x-wiki</format>\n" if modern else ""
    size = f' bytes="{len(page.text or "")}" sha1="x"' if minor(version) >= 11 else ""
    text = (
        f'      <text{size} xml:space="preserve">{escape(page.text, {chr(34): "&quot;"})}</text>\n'
        if page.text
        else ("" if page.text is None else f"      <text{size} />\n")
    )
    return (
        f"  <page>\n    <title>{escape(page.title)}</title>\n{ns}    <id>7</id>\n{redirect}"
        "    <revision>\n      <id>8</id>\n      <timestamp>2020-01-01T00:00:00Z</timestamp>\n"
        "      <contributor>\n        <username>A &amp; B</username>\n      </contributor>\n"
        f"{model}{text}    </revision>\n  </page>\n"
    )


def head(version="0.11", language="en", siteinfo=SITEINFO) -> str:
    space = f"http://www.mediawiki.org/xml/export-{version}/"
    return f'<mediawiki xmlns="{space}" version="{version}" xml:lang="{language}">\n{siteinfo}'


def xml(pages, version="0.11", language="en", siteinfo=SITEINFO) -> bytes:
    """A whole dump."""
    body = "".join(page_xml(page, version) for page in pages)
    return f"{head(version, language, siteinfo)}{body}</mediawiki>\n".encode()


def streams(whole: bytes, size: int) -> bytes:
    """Cut anywhere and pack every stretch as a stream, as pbzip2 does."""
    return b"".join(bz2.compress(whole[start : start + size]) for start in range(0, len(whole), size))


def multistream(pages, many: int, version="0.11") -> bytes:
    """Pack the head, some pages at a time, and the end as streams, as Wikipedia does."""
    groups = [pages[start : start + many] for start in range(0, len(pages), many)]
    texts = [head(version), *("".join(page_xml(page, version) for page in group) for group in groups), "</mediawiki>\n"]
    return b"".join(bz2.compress(text.encode()) for text in texts)


def write_as(kind: str, folder: Path, pages) -> Path:
    """Write a dump as one of KINDS."""
    whole = xml(pages)
    data = {
        "xml": lambda: whole,
        "bz2": lambda: bz2.compress(whole),
        "gz": lambda: gzip.compress(whole),
        "multistream": lambda: multistream(pages, 10),
        "pbzip2": lambda: streams(whole, 700),
        "joined gz": lambda: gzip.compress(whole[:5000]) + gzip.compress(whole[5000:]),
        "padded bz2": lambda: bz2.compress(whole) + bytes(1000),
    }[kind]()
    path = folder / f"{kind.replace(' ', '-')}.xml{'' if kind == 'xml' else '.gz' if 'gz' in kind else '.bz2'}"
    path.write_bytes(data)
    return path


KINDS = ("xml", "bz2", "gz", "multistream", "pbzip2", "joined gz", "padded bz2")


def many_pages(count: int, seed=0) -> list[Page]:
    """Pages of random words that link to one another."""
    rng = random.Random(seed)
    titles = [f"Title {number}" for number in range(count)]
    words = [f"word{number}" for number in range(count)]
    pages = []
    for title in titles:
        parts = rng.choices(words, k=rng.randint(5, 60))
        parts += [f"[[{target}|{rng.choice(words)} & <b>é</b>]]" for target in rng.choices(titles, k=5)]
        rng.shuffle(parts)
        pages.append(
            Page(title, f"'''{title}''' is {' '.join(parts)}.\n\n== More ==\nNext paragraph {rng.choice(words)}.")
        )
    return pages
