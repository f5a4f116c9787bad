"""The demo: questions to the real BERT, with and without entities, an entity that nobody knows yet, and links."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ebert.linking.evaluate import Counts, score
from ebert.linking.linker import Linker
from ebert.linking.readers.layouts import read
from ebert.linking.resolve import TitleResolver
from ebert.model.ebert import EBert
from ebert.text.passage import Mention, Passage
from ebert.vectors.copies import copy_on_write

QUESTIONS = Path(__file__).parent / "questions.tsv"
NEWS = (Path(__file__).parent / "news.jsonl", Path(__file__).parents[3] / "examples" / "linking" / "news.jsonl")
"""The news set where ebert is installed, and in a clone."""
SENTENCES = ("sport-1", "science-1")  # texts of it whose first sentences are shown
NEW = "Quorl Bantrix"
DESCRIPTION = (
    "Quorl Bantrix is a German composer and pianist from Berlin. He studied music at the conservatory of Leipzig and "
    "wrote operas, symphonies and songs to German poems."
)
ASKED = (f"The native language of [[{NEW}]] is [MASK] .", f"[[{NEW}]] is a German [MASK] .")


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """A question and two answers: without entities and with, or before an entity was added and after."""

    question: str
    before: str
    after: str
    fact: str = ""


@dataclass(frozen=True, slots=True)
class DemoLinks:
    """Two sentences with the links in them, as markup, and how good the links of the whole news set are."""

    sentences: tuple[str, ...]
    documents: int
    gold: int
    f1: float  # micro, in percent


def ask(model: EBert) -> Iterator[DemoAnswer]:
    """Yield what plain BERT and E-BERT-concat answer to the questions that come with ebert."""
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        rows = [(Passage.parse(row["question"]), row["answer"]) for row in csv.DictReader(file, delimiter="\t")]
    filled = model.fill_modes([passage for passage, _ in rows], ["bert", "concat"], top=1)
    for (passage, fact), row in zip(rows, filled, strict=True):
        yield DemoAnswer(passage.text, row["bert"].best, row["concat"].best, fact)


def teach(model: EBert) -> Iterator[DemoAnswer]:
    """Yield answers about an entity that nobody has heard of, before and after it is added to a copy of the store."""
    assert model.vectors is not None  # the starter has them
    taught = model.with_vectors(copy_on_write(model.vectors))
    before = [filled.best for filled in taught.fill(ASKED, mode="concat", top=1)]
    assert taught.vectors is not None
    taught.vectors.add(NEW, description=DESCRIPTION)
    after = [filled.best for filled in taught.fill(ASKED, mode="concat", top=1)]
    for question, *answers in zip(ASKED, before, after, strict=True):
        yield DemoAnswer(Passage.parse(question).text, *answers)


def link(model: EBert) -> DemoLinks:
    """Link the news set with the starter's linker, and compare the links with the labels."""
    linker = Linker.from_pretrained("starter", model=model)
    resolver = TitleResolver(linker.vectors)
    documents = resolver.documents(read(next(path for path in NEWS if path.is_file())).documents).documents
    counts, sentences = Counts(), []
    for one in linker.stream(documents):
        links = [Mention(mention.start, mention.end, mention.entity) for mention in one.mentions]
        counts += score(one.document, links, same=resolver.same).counts
        if one.document.id in SENTENCES:
            end = one.document.text.index(". ") + 1
            inside = tuple(link for link in links if link.end <= end)
            sentences.append(Passage(one.document.text[:end], inside).markup())
    return DemoLinks(tuple(sentences), len(documents), counts.gold, 100 * counts.f1)
