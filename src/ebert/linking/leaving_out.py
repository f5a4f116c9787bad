"""Which articles must not count: those that test data consists of, or that a list of titles names."""

from collections.abc import Callable, Iterable
from pathlib import Path

from ebert.errors import EbertError
from ebert.linking.readers import read, recognise
from ebert.linking.readers.reading import contents


def titles_of(sources: Iterable[str | Path], say: Callable[[str], object]) -> list[str]:
    """Give the titles of the articles that files of test data hold, or lists of titles.

    A file that names no article is an error: whoever gives it would take for left out what is not.
    """
    found: list[str] = []
    for source in map(Path, sources):
        text = contents(source)
        try:
            recognise(text, source.name)
        except EbertError:
            if text.lstrip().startswith("{"):
                raise
            found += _listed(text, source)
        else:
            found += _titles(source, say)
    return found


def _listed(text: str, source: Path) -> list[str]:
    titles = [line.strip() for line in text.split("\n") if line.strip()]
    if not titles:
        raise EbertError(f"{source} has no titles, so nothing would be left out; write one title a line into it")
    return titles


def _titles(source: Path, say: Callable[[str], object]) -> list[str]:
    reading = read(source)
    titles = [document.title for document in reading.documents if document.title]
    count = len(reading.documents)
    if not titles:
        raise EbertError(
            f"{source} does not say which articles it is made of: none of its {count:,} documents has a title "
            f"(read as layout {reading.layout!r}), so nothing would be left out. Give a file with one title a line "
            "instead; if its documents are no articles of Wikipedia, nothing need be left out"
        )
    if len(titles) < count:
        say(f"{source}: {count - len(titles):,} of {count:,} documents have no title, and are not left out")
    return titles
