"""Measure how good vectors from descriptions are: hide trained entities, add them back from their pages' openings.

    python experiments/adding.py STORE CORPUS [--entities 300] [--align paper] [--data ../shared/data/lama.tar.xz]
        [--out results/adding.json]

The script takes a fixed pseudo-random choice of the subjects of LAMA's questions that have a vector in STORE and a page
in CORPUS. Each gets a new vector by `vectors.add(title, description=...)` with the words of its page's opening, in a
separate overlay: STORE is not changed. The new vectors are compared with the trained ones (cosine, and rank of the
entity's trained vector among all), and all questions about these subjects are asked with the trained vectors, with the
new vectors and without any. The output vectors of the words were trained with these entities among 10^5 others.
"""

import argparse
import hashlib
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lama import Examiner, parse_alignment
from questions import DATA, choose, load
from scores import gain_error, score

from ebert import EbertError, Vectors
from ebert._io import files
from ebert.probing.filters import string_match
from ebert.probing.questions import Question
from ebert.vectors.copies import copy_on_write
from ebert.vectors.entity import Entity
from ebert.wikipedia.corpus import Corpus

BINS = ((0, 0), (1, 4), (5, 49), (50, 10**9))  # links to an entity
BLOCK = 65536


@dataclass(frozen=True)
class Hidden:
    """An entity that is added back."""

    entity: Entity
    opening: str
    subjects: tuple[str, ...]  # LAMA's names of it


def openings(corpus: Corpus, titles: set[str], words: int) -> dict[str, str]:
    """Return the first words of the pages with these titles, if there are such pages."""
    numbers = {number: title for number, title in enumerate(corpus.entities) if title in titles}
    starts = np.asarray(corpus.paragraphs)[np.asarray(corpus.page_paragraphs)]  # (pages + 1,) tokens
    names, found = corpus.words, {}
    for page in np.flatnonzero(np.isin(corpus.page_entity, list(numbers))):
        count = min(words, int(corpus.page_opening[page]))
        tokens = corpus.tokens[starts[page] : starts[page] + count]
        found[numbers[int(corpus.page_entity[page])]] = " ".join(names[token] for token in tokens)
    return found


def choose_hidden(
    store: Vectors, corpus: Corpus, questions: Sequence[Question], count: int, least: int
) -> list[Hidden]:
    """Choose entities that are asked about and have a page that opens with at least so many words."""
    subjects: dict[str, list[str]] = {}
    entities: dict[str, Entity] = {}
    for name in sorted({question.subject for question in questions}):
        found = store.find(name)
        if found and not found.added:
            entities[found.title] = found
            subjects.setdefault(found.title, []).append(name)
    words = int(store.info.made.get("options", {}).get("opening_words", 200))
    texts = openings(corpus, set(entities), words)
    usable = [title for title, text in texts.items() if len(text.split()) >= least]
    usable.sort(key=lambda title: hashlib.sha256(f"hide/{title}".encode()).hexdigest())
    return [Hidden(entities[title], texts[title], tuple(subjects[title])) for title in usable[:count]]


def compare(store: Vectors, hidden: Sequence[Hidden], again: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Compare new vectors with trained ones."""
    trained = store.take([one.entity for one in hidden])
    lengths, lengths_again = np.linalg.norm(trained, axis=1), np.linalg.norm(again, axis=1)
    unit = again / np.maximum(lengths_again, 1e-30)[:, None]
    own = np.einsum("ed,ed->e", unit, trained) / np.maximum(lengths, 1e-30)
    nearer = np.zeros(len(hidden), np.int64)
    for start in range(0, len(store.entity_matrix), BLOCK):
        block = np.array(store.entity_matrix[start : start + BLOCK], np.float32)
        block /= np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-30)
        nearer += (unit @ block.T > own[:, None] + 1e-6).sum(axis=1)
    counts = np.array([one.entity.count or 0 for one in hidden])
    by_links = {}
    for low, high in BINS:
        chosen = (counts >= low) & (counts <= high)
        if chosen.any():
            by_links[f"{low}+" if high >= 10**9 else f"{low}-{high}"] = {
                "entities": int(chosen.sum()), "cosine": float(own[chosen].mean()),
                "nearest of all": float((nearer[chosen] == 0).mean()),
            }  # fmt: skip
    return {
        "cosine": float(own.mean()),
        "nearest of all": float((nearer == 0).mean()),
        "among the ten nearest": float((nearer < 10).mean()),
        "median rank": float(np.median(nearer) + 1),
        "length": float(lengths_again.mean()),
        "length trained": float(lengths.mean()),
        "by links": by_links,
    }


def hits(questions: Sequence[Question], answers: Sequence[str], base: Sequence[str]) -> dict[str, float]:
    """Count right answers, over questions (most relations have few here) and as the mean over relations."""
    clean = [index for index, question in enumerate(questions) if not string_match(question)]
    right = [100.0 * (answer == question.answers[0]) for question, answer in zip(questions, answers, strict=True)]
    macro = score(questions, answers)
    return {
        "all": statistics.fmean(right),
        "filtered": statistics.fmean(right[index] for index in clean),
        "macro all": macro.all,
        "macro filtered": macro.filtered,
        "error of the macro gain over none": gain_error(questions, answers, base),
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything and print the progress; return all figures."""
    store, corpus, lama = Vectors.open(options.store), Corpus.open(options.corpus), load(options.data)
    examiner = Examiner(options.bert, lama.vocabulary or [], cache=options.cache)
    asked = choose(lama.questions, examiner.candidates, [store.__contains__], None).questions
    hidden = choose_hidden(store, corpus, asked, options.entities, options.words)
    if not hidden:
        raise EbertError("no subject of LAMA's has both a vector in the store and a page in the corpus")
    names = {name for one in hidden for name in one.subjects}
    questions = [question for question in asked if question.subject in names]
    print(f"{len(hidden)} entities hidden, {len(questions)} questions about them")
    alignment = parse_alignment(options.align)
    base = examiner.plain(questions)
    trained = examiner.ask(examiner.fit(store, alignment), questions, "concat", "trained")
    with copy_on_write(store) as copy:
        copy.add(hidden[0].entity.title, description=hidden[0].opening, replace=True)  # what is prepared once
        began = time.perf_counter()
        for one in hidden:
            copy.add(one.entity.title, description=one.opening, replace=True)
        seconds = (time.perf_counter() - began) / len(hidden)
        found = [entity for one in hidden if (entity := copy.find(one.entity.title))]
        compared = compare(store, hidden, copy.take(found))
        added = examiner.ask(examiner.fit(copy, alignment), questions, "concat", "added")
    figures = {
        "none": hits(questions, base, base),
        "trained": hits(questions, trained, base),
        "added": hits(questions, added, base),
    }
    print(f"one addition takes {1000 * seconds:.1f} ms")
    print(f"cosine with the trained vector {compared['cosine']:.3f}, length {compared['length']:.2f} "
          f"(trained {compared['length trained']:.2f})")  # fmt: skip
    print(f"of all {store.info.entities:,} the trained one is the nearest for {compared['nearest of all']:.1%}, "
          f"among the ten nearest for {compared['among the ten nearest']:.1%}")  # fmt: skip
    print(f"\n{'Hits@1':<10} {'all':>6} {'filtered':>9} {'macro all':>10} {'macro filtered':>15}")
    for name, row in figures.items():
        print(f"{name:<10} {row['all']:>6.2f} {row['filtered']:>9.2f} {row['macro all']:>10.2f} "
              f"{row['macro filtered']:>15.2f}")  # fmt: skip
    return {
        "command": " ".join(sys.argv), "store": str(options.store), "made": store.info.made, "bert": options.bert,
        "align": options.align, "entities": len(hidden), "questions": len(questions), "seconds an entity": seconds,
        "vectors": compared, "hits@1": figures,
    }  # fmt: skip


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--entities", type=int, default=300)
    parser.add_argument("--words", type=int, default=15, help="of an opening at least")
    parser.add_argument("--align", default="paper", help="'paper' or options of the alignment, as in lama.py")
    parser.add_argument("--data", type=Path, default=DATA, help="LAMA: archive or folder")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--cache", type=Path, help="folder for plain BERT's answers")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    try:
        result = run(options)
        if options.out:
            files.write_json(options.out, result)
    except EbertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
