"""How much faster the packed strategy links than the paper's, with the same weights and the same documents.

    python benchmarks/link.py [--spans N] [--words N] [--documents N] [--rounds N] [--bert NAME]

A document has `--words` words and `--spans` potential spans; weights are those of BERT and entity vectors are random,
which makes no difference to the time. Both strategies score every span once (one round of refinement); the paper's way
takes a pass of the encoder for each span. Prints the seconds per document and, in the last line, the ratio.
"""

import argparse
import os
import time

import numpy as np
import torch

from ebert import EBert, Vectors
from ebert.linking.document import Choice, Document, Span
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions
from ebert.linking.refine import ChunkState
from ebert.model.alignment import Alignment
from ebert.model.encoder import Encoder
from ebert.model.options import AlignmentOptions

TEXT = (
    "the report said on Monday that officials in London and Berlin had agreed to meet again before the end of the year "
    "while players from Spain and Italy were training for the final in Paris where rain is expected "
)
CANDIDATES = 8
TITLES = [f"Entity {number}" for number in range(1000)]


class Everywhere:
    """Finds a given number of spans of one to three words, spread over the text."""

    def __init__(self, spans: int) -> None:
        self._spans = spans

    def __call__(self, document: Document) -> list[Span]:
        random = np.random.default_rng(int(document.id))
        starts = [0] + [place + 1 for place, letter in enumerate(document.text) if letter == " "]
        ends = [start - 1 for start in starts[1:]] + [len(document.text)]
        chosen: set[tuple[int, int]] = set()
        while len(chosen) < self._spans:
            first = int(random.integers(len(starts)))
            chosen.add((starts[first], ends[min(first + int(random.integers(3)), len(starts) - 1)]))
        return [Span(start, end, _choices(random)) for start, end in sorted(chosen)]


def _choices(random: np.random.Generator) -> tuple[Choice, ...]:
    numbers = random.choice(len(TITLES), CANDIDATES, replace=False)
    return tuple(Choice(TITLES[number], 1 / CANDIDATES) for number in numbers)


def random_model(bert: str) -> EBert:
    """Return BERT with random entity vectors."""
    encoder = Encoder.load(bert)
    vectors = np.random.default_rng(0).normal(size=(len(TITLES), encoder.width)) * 0.05
    store = Vectors.from_arrays(entities=TITLES, entity_vectors=vectors)
    unaligned = Alignment.fit(store, {}, np.zeros((1, encoder.width)), AlignmentOptions(method="none"))
    return EBert(encoder, store, unaligned)


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=100)
    parser.add_argument("--words", type=int, default=230)
    parser.add_argument("--documents", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="how often everything is timed; the fastest counts")
    parser.add_argument("--bert", default="bert-base-cased")
    options = parser.parse_args()
    model = random_model(options.bert)
    text = " ".join((TEXT * (1 + options.words // TEXT.count(" "))).split()[: options.words])
    documents = [Document(str(number), text) for number in range(options.documents)]
    generator = Everywhere(options.spans)
    rows = {
        "paper": LinkerOptions(strategy="paper", rounds=1),
        "packed": LinkerOptions(strategy="packed", rounds=1),
        "packed, copies": LinkerOptions(strategy="packed", block="copy", rounds=1),
    }
    linkers = {name: Linker.fresh(model, options=chosen, generator=generator) for name, chosen in rows.items()}
    best = dict.fromkeys(linkers, float("inf"))
    warm = Document("0", documents[0].text[:200])
    for linker in linkers.values():
        linker.judge(_states(linker, warm, 2))
    for _ in range(options.rounds):
        for name, linker in linkers.items():
            start = time.perf_counter()
            for _linked in linker.link(documents):
                pass
            best[name] = min(best[name], (time.perf_counter() - start) / len(documents))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"{options.documents} documents of {options.words} words and {options.spans} spans, {options.bert}, "
        f"{cores} cores, {torch.get_num_threads()} threads, torch {torch.__version__}"
    )
    for name, seconds in best.items():
        print(f"  {name:<16} {seconds:8.2f} s a document  {options.words / seconds:8.0f} words/s")
    print(f"ratio packed with copies: {best['paper'] / best['packed, copies']:.1f}")
    print(f"ratio packed: {best['paper'] / best['packed']:.1f}")


def _states(linker: Linker, document: Document, spans: int) -> list[ChunkState]:
    return [ChunkState(chunk) for chunk in linker.chunks([document], [Everywhere(spans)(document)])]


if __name__ == "__main__":
    main()
