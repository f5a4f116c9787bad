"""Filling masks through `EBert`, beside a bare transformers forward over the same padded tokens, and the pipeline.

    python benchmarks/fill.py [--questions N] [--rounds N] [--bert NAME]

The bare forward gets the same batches that `EBert` makes, as wordpieces, and its logits are not used. Rounds alternate
between the contestants, and the fastest round of each counts.
"""

import argparse
import itertools
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from ebert import EBert, Passage, Vectors
from ebert.model.alignment import Alignment
from ebert.model.batching import budget_on, plan
from ebert.model.encoder import Encoder
from ebert.model.options import MODES, AlignmentOptions, Mode

NAMES = [
    "Jean Marais", "Daniel Ceccaldi", "Orane Demazis", "Sylvia Lopez", "Annick Alane", "Marie Curie", "Ada Lovelace",
    "Niels Bohr", "Clara Schumann", "Karen Blixen", "Fridtjof Nansen", "Hypatia of Alexandria", "Srinivasa Ramanujan",
]  # fmt: skip
TEMPLATES = [
    "The native language of [[{}]] is [MASK] .",
    "[[{}]] was born in [MASK] .",
    "[[{}]] used to communicate in [MASK] .",
    "[[{}]] is a [MASK] by profession .",
    "It is not widely known , but for the better part of a long working life [[{}]] used to live in [MASK] .",
    "[[{}]] works in the field of [MASK] and was , as far as we know , never employed by any university in the land .",
]


def questions(count: int) -> list[Passage]:
    """Make questions of several lengths."""
    pairs = itertools.cycle(itertools.product(TEMPLATES, NAMES))
    return [Passage.parse(template.format(name)) for template, name in itertools.islice(pairs, count)]


def fill(model: EBert, passages: list[Passage], mode: Mode) -> None:
    """Fill everything."""
    for _ in model.fill(passages, mode=mode):
        pass


def bare(encoder: Encoder, model: EBert, passages: list[Passage], mode: Mode) -> Callable[[], None]:
    """Prepare the batches that `EBert` would run, and give a function that runs nothing but the encoder on them."""
    sequences = model._injector.sequences(passages, mode)
    batches = []
    for group in plan([len(pieces) for pieces in sequences], budget_on("cpu")):
        mask = model._injector.tensors([sequences[index] for index in group])["attention_mask"]
        batches.append({"input_ids": torch.randint(1000, 20000, mask.shape), "attention_mask": mask})

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                encoder.module(**batch)

    return run


def race(contestants: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Time all contestants in turn, several times; return the fastest time of each."""
    best = dict.fromkeys(contestants, float("inf"))
    for number in range(rounds + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            if number:  # the first round warms up
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bert", default="bert-base-cased")
    options = parser.parse_args()
    from transformers import pipeline

    encoder = Encoder.load(options.bert)
    vectors = np.random.default_rng(0).normal(size=(len(NAMES), encoder.width)) * 0.05
    store = Vectors.from_arrays(entities=NAMES, entity_vectors=vectors)
    unaligned = Alignment.fit(store, {}, np.zeros((1, encoder.width)), AlignmentOptions(method="none"))
    model = EBert(encoder, store, unaligned)
    passages = questions(options.questions)
    texts = [passage.text for passage in passages]
    make: Any = pipeline  # its types know no tokenizer but by name
    pipe = make("fill-mask", model=encoder.module, tokenizer=encoder.tokenizer, device="cpu")

    contestants: dict[str, Callable[[], None]] = {}
    for mode in MODES:
        contestants[f"ebert {mode}"] = partial(fill, model, passages, mode)
        contestants[f"bare forward {mode}"] = bare(encoder, model, passages, mode)
    contestants["pipeline"] = lambda: pipe(texts) and None
    contestants["pipeline, batches of 32"] = lambda: pipe(texts, batch_size=32) and None
    best = race(contestants, options.rounds)

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"{options.questions} questions, {options.bert}, {cores} cores, {platform.machine()}, torch {torch.__version__}"
    )
    for name, seconds in best.items():
        print(f"  {name:<26} {seconds:7.2f} s  {options.questions / seconds:7.1f} questions/s")
    for mode in MODES:
        print(f"ratio fill {mode} to bare forward: {best[f'bare forward {mode}'] / best[f'ebert {mode}']:.2f}")
    print(f"ratio fill to pipeline: {best['pipeline'] / best['ebert bert']:.2f}")
    print(f"ratio fill to batched pipeline: {best['pipeline, batches of 32'] / best['ebert bert']:.2f}")


if __name__ == "__main__":
    main()
