"""Probing: questions per second of `ebert`, of the transformers fill-mask pipeline and of lm-pub-quiz, side by side.

    python benchmarks/probe.py [--questions 500] [--rounds 2] [--bert NAME] [--data LAMA]

All get the same questions and choose among the same candidates: LAMA's, if LAMA is available, or made-up ones. Rounds
alternate, and the fastest round of each counts; lm-pub-quiz, which takes minutes, has one round. The bare forward gets
the same batches that `ebert` makes, as wordpieces, and its logits are not used. It runs once as it is, and once with
the MLM head only on the masks, which is how `ebert` runs it. lm-pub-quiz runs its TyQEvaluator, because its default
scores a sentence for every candidate. `ebert` also runs with 8-bit integers, and its Hits@1 is printed.
"""

import argparse
import itertools
import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ebert import EBert
from ebert.model.batching import budget_on
from ebert.model.encoder import Encoder
from ebert.model.int8 import quantize
from ebert.probing.ask import Asker, Candidates, ProbePlan, choose, make_plan, tokenize
from ebert.probing.lama import read_lama
from ebert.probing.questions import Question, from_template, shuffled

DATA = Path(__file__).parents[2] / "shared" / "data" / "lama.tar.xz"
TEMPLATES = ["The native language of [X] is [Y] .", "[X] was born in [Y] .", "[X] is a [Y] by profession ."]
FIRST = ["Jean", "Ada", "Niels", "Clara", "Karen", "Fridtjof", "Anna", "Marie", "Orane", "Sylvia", "Daniel", "Annick"]
LAST = ["Marais", "Lovelace", "Bohr", "Schumann", "Blixen", "Nansen", "Rossi", "Curie", "Demazis", "Lopez", "Alane"]


def load(data: Path, count: int, model: EBert) -> tuple[list[Question], list[str]]:
    """Return questions of LAMA, spread over its relations, or made-up ones; and the words to choose from."""
    if data.exists():
        lama = read_lama(data)
        assert lama.vocabulary is not None
        return shuffled(lama.questions)[:count], lama.vocabulary
    names = itertools.cycle(itertools.product(TEMPLATES, FIRST, LAST))
    questions = []
    for number, (template, first, last) in enumerate(itertools.islice(names, count)):
        text, start = from_template(template, f"{first} {last}")
        questions.append(Question(str(number), template, text, ("French",), f"{first} {last}", start))
    return questions, list(model.vocabulary.words)


class Ours:
    """Asks with `ebert`: plan, batches, ranks."""

    def __init__(self, model: EBert, questions: Sequence[Question], candidates: Candidates) -> None:
        self.model, self.candidates = model, candidates
        self.asked = [(q, [place]) for q in questions if (place := candidates.find(q.answers[0])) is not None]
        self.hits = 0

    def plan(self) -> ProbePlan:
        """Plan the batches."""
        return make_plan(tokenize(self.model, self.asked, ["bert"], [1]), ["bert"], budget=budget_on("cpu"))

    def __call__(self) -> None:
        """Ask everything."""
        plan, asker = self.plan(), Asker(self.model, self.candidates)
        found = {unit: ranking for batch in asker.run(plan) for unit, ranking in batch.items()}
        ranks = [plan.result(found, number, "bert", self.candidates.words).rank for number in range(len(self.asked))]
        self.hits = sum(rank == 1 for rank in ranks)


def bare(ours: Ours, encoder: Encoder, *, masks_only: bool) -> Callable[[], None]:
    """Prepare the batches that `ebert` runs, and give a function that runs nothing but the encoder on them."""
    plan, model = ours.plan(), ours.model
    batches = []
    for batch in plan.batches:
        texts = [plan.units[n].sequences[0].passage.text for n in batch]
        inputs = model.tokenizer(texts, padding=True, return_tensors="pt")
        rows, columns = (inputs["input_ids"] == model.tokenizer.mask_token_id).nonzero(as_tuple=True)
        batches.append((inputs, (rows, columns)))

    def run() -> None:
        with torch.inference_mode():
            for inputs, places in batches:
                if masks_only:
                    encoder.logits(dict(inputs), places)
                else:
                    encoder.module(**inputs)

    return run


def pipeline(model: EBert, questions: Sequence[Question], words: Sequence[str], batch: int) -> Callable[[], None]:
    """Return a function that asks transformers' pipeline."""
    from transformers import pipeline as make

    build: Any = make  # its types know no tokenizer but by name
    pipe = build("fill-mask", model=model.encoder, tokenizer=model.tokenizer, device="cpu")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    texts = [question.text for question in questions]
    return lambda: pipe(texts, targets=list(words), top_k=10, batch_size=batch) and None


def lm_pub_quiz(model: EBert, questions: Sequence[Question], words: Sequence[str]) -> Callable[[], None] | None:
    """Return a function that asks lm-pub-quiz, if it is installed."""
    try:
        from lm_pub_quiz.evaluators.tyq_evaluator import TyQEvaluator
    except ImportError:
        return None
    peer: Any = TyQEvaluator.from_model(model.encoder, tokenizer=model.tokenizer, model_type="MLM", device="cpu")

    def run() -> None:
        for question in questions:
            peer.evaluate_instance(template=question.text.replace("[MASK]", "[Y]"), answers=words, subject=None)

    return run


def race(contestants: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Time all contestants in turn, several times; return the fastest time of each."""
    fastest = dict.fromkeys(contestants, float("inf"))
    for number in range(rounds):
        for name, run in contestants.items():
            if number and name == "lm-pub-quiz":
                continue
            start = time.perf_counter()
            run()
            fastest[name] = min(fastest[name], time.perf_counter() - start)
    return fastest


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()

    encoder = Encoder.load(options.bert)
    model = EBert(encoder)
    questions, words = load(options.data, options.questions, model)
    candidates, _ = choose(model.tokenizer, words)
    questions = [question for question in questions if candidates.find(question.answers[0]) is not None]
    ours, small = (Ours(one, questions, candidates) for one in (model, quantize(EBert.plain(options.bert))))
    contestants: dict[str, Callable[[], None]] = {
        "ebert": ours,
        "ebert, 8 bits": small,
        "bare forward": bare(ours, encoder, masks_only=False),
        "bare forward, head on masks": bare(ours, encoder, masks_only=True),
        "pipeline": pipeline(model, questions, candidates.words, 1),
        "pipeline, batches of 32": pipeline(model, questions, candidates.words, 32),
    }
    if (peer := lm_pub_quiz(model, questions, candidates.words)) is None:
        print("lm-pub-quiz is not installed and left out (make setup EXTRAS=dev,bench)")
    else:
        contestants["lm-pub-quiz"] = peer
    seconds = race(contestants, options.rounds)

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = "LAMA's" if options.data.exists() else "made-up"
    print(
        f"{len(questions)} {kind} questions, {len(candidates.words):,} candidates, {options.bert}, {cores} cores, "
        f"{platform.machine()}, torch {torch.__version__}"
    )
    for name, time_taken in seconds.items():
        print(f"  {name:<28} {time_taken:7.2f} s  {len(questions) / time_taken:7.1f} questions/s")
    asked = len(ours.asked)
    print(
        f"Hits@1: {100 * ours.hits / asked:.2f}, with 8 bits {100 * small.hits / asked:.2f} ({asked} questions, micro)"
    )
    for name in contestants:
        if name != "ebert":
            print(f"ratio to {name}: {seconds[name] / seconds['ebert']:.2f}")


if __name__ == "__main__":
    main()
