"""From a corpus to a folder of documents to train a linker on (`ebert link wikipedia`)."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ebert import __version__
from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.articles import from_corpus, from_dumps, training_pages
from ebert.linking.document import Document
from ebert.linking.generator import TableGenerator
from ebert.linking.recounting import choose_pages
from ebert.linking.resolve import Resolver
from ebert.linking.wikipedia import WikipediaOptions, documents
from ebert.vectors import Vectors
from ebert.wikipedia.corpus import Corpus

INFO, TRAIN, HELD_OUT = "documents.json", "train.jsonl", "held-out.jsonl"
SPARE = 2.0  # pages looked at for a document: not all have enough prose with links


@dataclass(frozen=True, slots=True)
class Amounts:
    """How many documents to make."""

    documents: int = 2000
    held_out: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if self.documents < 1 or self.held_out < 0:
            raise EbertError("at least 1 document is needed, and not fewer than 0 held-out ones")


def prepare(
    corpus: Corpus,
    vectors: Vectors,
    out: str | Path,
    *,
    options: WikipediaOptions | None = None,
    amounts: Amounts | None = None,
    dumps: Sequence[str | Path] = (),
    leave_out: Collection[str] = (),
    overwrite: bool = False,
    advance: Advance = silent,
) -> dict[str, Any]:
    """Write the folder; give what is in it. Articles named in `leave_out` are not used."""
    options, amounts = options or WikipediaOptions(), amounts or Amounts()
    files.refuse_existing(Path(out), overwrite=overwrite, marker=INFO)
    choice = choose_pages(corpus, leave_out)
    pages = np.random.default_rng(amounts.seed).permutation(training_pages(corpus, choice))
    held, rest = pages[: int(SPARE * amounts.held_out)], pages[int(SPARE * amounts.held_out) :]
    wanted = rest[: int(SPARE * amounts.documents)]
    titles = corpus.entities
    names = [[titles[corpus.page_entity[page]] for page in group] for group in (held, wanted)]
    generator, resolver = TableGenerator(vectors), Resolver(vectors)
    if dumps:
        found = {a.title: a for a in from_dumps(dumps, {*names[0], *names[1]}, advance=advance)}
        articles = [[found[name] for name in group if name in found] for group in names]
    else:
        articles = [from_corpus(corpus, group.tolist()) for group in (held, wanted)]  # type: ignore[misc]
    groups = {
        HELD_OUT: _some(documents(articles[0], generator, resolver, options, as_linked=True), amounts.held_out),
        TRAIN: _some(documents(articles[1], generator, resolver, options), amounts.documents),
    }
    with files.replacing_folder(Path(out), overwrite=overwrite, marker=INFO) as folder:
        counts = {name: write_documents(folder / name, group) for name, group in groups.items()}
        if not counts[TRAIN]["documents"]:
            raise EbertError(
                f"none of the {len(wanted):,} articles that were looked at has enough linked prose to train on"
                + (f"; are {', '.join(Path(path).name for path in dumps)} the dumps of the corpus?" if dumps else "")
            )
        info = {
            "ebert": __version__, "options": asdict(options), "amounts": asdict(amounts),
            "dumps": [Path(path).name for path in dumps], "corpus": corpus.info.dumps, "licence": corpus.info.licence,
            "left_out": sorted(choice.left_out), "files": counts,
        }  # fmt: skip
        files.write_json(folder / INFO, info)
    return {"out": str(out), **info}


def write_documents(path: Path, documents: Iterable[Document]) -> dict[str, int]:
    """Write documents that are articles in our own layout, one a line; give how many, and what is in them."""
    counts = {"documents": 0, "words": 0, "gold": 0, "left out": 0}
    with files.replacing(path, "w") as file:
        for document in documents:
            row = {**row_of(document), "title": document.id}  # so that its article can be left out of a table, say
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            counts["documents"] += 1
            counts["words"] += len(document.text.split())
            counts["gold"] += len(document.gold)
            counts["left out"] += len(document.ignore)
    return counts


def row_of(document: Document) -> dict[str, Any]:
    """Give a document in our own layout."""
    row: dict[str, Any] = {"id": document.id, "text": document.text}
    row["mentions"] = [{"start": m.start, "end": m.end, "entity": m.entity} for m in document.gold]
    if document.ignore:
        row["ignore"] = [list(span) for span in document.ignore]
    if document.sentences:
        row["sentences"] = list(document.sentences)
    return row


def _some(found: Iterator[Document], number: int) -> Iterator[Document]:
    for count, document in enumerate(found):
        if count == number:
            return
        yield document
