"""The candidate generator: words a second and memory, and that its time is linear in the text.

    python benchmarks/candidates.py [--vectors STORE] [--data FILE] [--entities N] [--words N] [--lines N]

Without a store, it makes one with N entities and as many surfaces. Without data (any layout that ebert link reads), it
makes a text of names and filler. Then it takes all text as one document, and a quarter of it: `ratio linear` is the
time per letter of the whole text divided by the time per letter of the quarter. If the time is linear in the text, this
is 1.00, or less if names are repeated, because look-ups are cached; quadratic time would give 4.

Then it imports N lines of names: as a dictionary, as a table in KnowBert's format, and in the way in which ebert 0.1
read that format, with a query to the store for each line. `ratio import` is the time per line of the last way, divided
by that of the dictionary. Counting how often names occur in a corpus is not part of this: it takes as long without a
dictionary.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ebert.linking.candidates import knowbert
from ebert.linking.candidates.dictionary import DictionaryReport
from ebert.linking.candidates.dictionary import read as read_dictionary
from ebert.linking.candidates.table import MentionTable
from ebert.linking.candidates.words import known_words
from ebert.linking.document import Document
from ebert.linking.readers.layouts import read
from ebert.vectors.store import Vectors
from ebert.vectors.writer import writing
from ebert.wikipedia.names import NameList

PARTS = 4


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors")
    parser.add_argument("--data")
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--lines", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Vectors.open(options.vectors) if options.vectors else made(Path(folder) / "store", options.entities)
        if options.data:
            texts = [document.text for document in read(options.data).documents]
        else:
            texts = [filled(store, options.words)]
        measure(store, texts)
        measure_import(store, Path(folder), options.lines)
        store.close()


def measure(store: Vectors, texts: list[str]) -> None:
    """Find spans in the texts, then in a quarter of them and in all of them as one long text each, without caches."""
    words = sum(len(text.split()) for text in texts)
    generator = MentionTable(store)
    start = time.process_time()
    found = sum(len(generator(Document("1", text))) for text in texts)
    spent = time.process_time() - start
    whole = "\n".join(texts)
    rates = [_seconds_a_letter(store, text) for text in (whole[: len(whole) // PARTS], whole)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(store):,} entities, {len(texts):,} texts, {words:,} words, {found:,} spans")
    print(f"  {words / spent:,.0f} words a second, {spent / len(texts) * 1000:.2f} ms a text, peak {peak:,.0f} MB")
    print(f"ratio linear: {rates[1] / rates[0]:.2f}")


def measure_import(store: Vectors, folder: Path, lines: int) -> None:
    """Read the same names in two layouts and three ways; half of the titles are in the store."""
    names = [title for titles, _ in store.chunks("entities") for title in titles]
    random = np.random.default_rng(2)
    chosen = random.integers(0, len(names), lines).tolist()
    titles = [names[number] if number % 2 else f"Nobody {number}" for number in chosen]
    written = [title.replace(" ", "_") for title in titles]
    table, dictionary = folder / "table.txt", folder / "dictionary.tsv"
    table.write_text("".join(f"Name {n}\t9\t{n},0.9,{title}\n" for n, title in enumerate(written)), encoding="utf-8")
    dictionary.write_text("".join(f"Name {n}\t{title}\t0.9\n" for n, title in enumerate(written)), encoding="utf-8")
    few = folder / "few.tsv"
    few.write_text(dictionary.read_text(encoding="utf-8")[:9999].rpartition("\n")[0], encoding="utf-8")
    none = NameList.of(b"Name\n")
    read_dictionary(few, store, none, DictionaryReport())  # compiles what is compiled

    def before() -> None:
        for title, number in zip(written, range(lines), strict=True):
            surface = " ".join(known_words(f"Name {number}", store.words_of))
            if store.find(title) is not None:
                knowbert.whole({number: 8.1}, store.occurrences(surface))

    ways: dict[str, Callable[[], object]] = {
        "line by line": before,
        "KnowBert's table": lambda: sum(1 for _ in knowbert.surfaces(table, store, knowbert.TableReport())),
        "dictionary": lambda: read_dictionary(dictionary, store, none, DictionaryReport()),
    }
    spent: dict[str, float] = {}
    for name, work in ways.items():
        start = time.process_time()
        work()
        spent[name] = time.process_time() - start
        print(f"  {name}: {lines / spent[name]:,.0f} lines a second")
    print(f"ratio import: {spent['line by line'] / spent['dictionary']:.2f}")


def _seconds_a_letter(store: Vectors, text: str) -> float:
    generator = MentionTable(store)
    start = time.process_time()
    generator(Document("1", text))
    return (time.process_time() - start) / len(text)


def made(path: Path, entities: int) -> Vectors:
    """Make a store of entities with names of one to three words."""
    random = np.random.default_rng(0)
    parts = random.integers(0, entities // 10 + 1, (entities, 3))
    sizes = random.integers(1, 4, entities)
    names = [
        " ".join(f"N{part}" for part in row[:size]) for row, size in zip(parts.tolist(), sizes.tolist(), strict=True)
    ]
    with writing(path, dimension=2) as writer:
        writer.add("words", ["of"], np.ones((1, 2), np.float32), counts=[100])
        titles = [f"{name} ({number})" for number, name in enumerate(names)]
        writer.add("entities", titles, np.ones((entities, 2), np.float32), counts=[1] * entities)
        meant: dict[str, list[tuple[int, int]]] = {}
        for row, name in enumerate(names):
            meant.setdefault(name, []).append((row, 1))
        writer.surfaces((name, 2 * len(rows), rows) for name, rows in meant.items())
        writer.finish(licence="none", made={})
    return Vectors.open(path)


def filled(store: Vectors, words: int) -> str:
    """Make a text in which every fifth word begins a name."""
    random = np.random.default_rng(1)
    names = [name.partition(" (")[0] for name, _ in zip(*next(iter(store.chunks("entities"))), strict=True)]
    chosen = random.integers(0, len(names), words // 5).tolist()
    return " ".join(f"{names[number]} filler{number % 97} and more here" for number in chosen)


if __name__ == "__main__":
    main()
