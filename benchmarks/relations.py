"""Training throughput of relation classification beside a bare transformers loop on the same batches.

    python benchmarks/relations.py [--bert NAME] [--model FOLDER] [--mode MODE] [--steps N] [--rounds N] [--data FILE]

The bare loop is what you would write by hand: AutoModelForSequenceClassification, input ids that are cut and padded
beforehand, fused AdamW, a linear schedule, clipping, and fixed wordpiece vectors as in ours. Ours is the whole path:
the Trainer, entities from the store, our batches. Both take turns, and the figures are medians over the steps of all
rounds, in wall time and in CPU time (which other work on the machine affects less). Without --data it makes up
sentences with the lengths of FewRel's.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import torch
import transformers

from ebert import EBert, get_bert, get_starter
from ebert.bert.load import quiet
from ebert.finetuning.trainer import Keeper
from ebert.relations import train
from ebert.relations.classifier import RelationClassifier
from ebert.relations.data import Sample, fixed_subset, labels_of, read
from ebert.relations.data import SampleSpan as Span
from ebert.relations.options import RelationTrainingOptions
from ebert.relations.train import LengthSampler

WORDS = ("the", "of", "in", "and", "was", "a", "city", "film", "born", "series", "river", "by", "with", "at", "near")
NAMES = ("Paris", "Berlin", "Spain", "Mozart", "London", "Jean Marais", "Danube", "Picasso", "Rome", "Oslo")
Times = list[tuple[float, float]]  # wall, CPU


def made_up(count: int) -> list[Sample]:
    """Return sentences of 12 to 45 words with two names in them."""
    draw = random.Random(0)
    samples = []
    for number in range(count):
        words = [draw.choice(WORDS) for _ in range(draw.randint(12, 45))]
        one, other = draw.sample(range(len(words)), 2)
        words[one], words[other] = draw.sample(NAMES, 2)
        starts = [len(" ".join(words[:place])) + bool(place) for place in (one, other)]
        spans = [Span(start, start + len(words[place])) for start, place in zip(starts, (one, other), strict=True)]
        samples.append(Sample(" ".join(words), spans[0], spans[1], f"R{number % 80}"))
    return samples


class Watch(Keeper):
    """Notes the time of every step."""

    times: ClassVar[Times] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.times.append((time.perf_counter(), time.process_time()))


def steps(times: Times) -> Times:
    """Return the differences; the first step, which is also the warm-up, has none."""
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(times)]


def ours(
    model: EBert, samples: list[Sample], mode: str, options: RelationTrainingOptions
) -> tuple[Times, list[list[int]]]:
    """Train one epoch with the Trainer; also return the lengths in its batches."""
    classifier = RelationClassifier.fresh(model, mode=mode, labels=labels_of(samples, "the benchmark"))
    prepared = classifier.inputs.prepare(samples)
    sampler = LengthSampler([len(one) for one in prepared], batch=options.batch, seed=options.seed)
    batches = [[len(prepared[index]) for index in batch] for batch in sampler.batches(0)]
    Watch.times = []
    train.Keeper = Watch  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder, quiet():
        classifier.save_pretrained = lambda _: None  # type: ignore[method-assign,assignment]
        train.fine_tune(
            classifier, prepared, prepared[: options.batch], options,
            checkpoints=Path(folder), best=Path(folder) / "best", say=lambda _: None,
        )  # fmt: skip
    return steps(Watch.times), batches


def bare(name: str, batches: list[list[int]], options: RelationTrainingOptions) -> Times:
    """Train on random input ids of the given lengths."""
    torch.manual_seed(0)
    with quiet():
        module = transformers.AutoModelForSequenceClassification.from_pretrained(get_bert(name), num_labels=80).train()
    module.get_input_embeddings().requires_grad_(False)
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.learning_rate, fused=True)
    schedule: Any = transformers.get_scheduler("linear", optimizer, 1, len(batches))
    times: Times = []
    for lengths in batches:
        ids = torch.randint(1000, 20000, (len(lengths), max(lengths)))
        mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        module(input_ids=ids, attention_mask=mask, labels=torch.arange(len(lengths)) % 80).loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        times.append((time.perf_counter(), time.process_time()))
    return steps(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--model", type=Path, help="a model folder (default: the starter)")
    parser.add_argument("--mode", default="concat")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", type=Path, help="samples, instead of made-up ones")
    parser.add_argument("--threads", type=int, help="of torch (with 1, CPU time is exact beside other work)")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    options = RelationTrainingOptions(epochs=1, checkpoint_steps=10**6)
    count = given.steps * options.batch
    samples = fixed_subset(read(given.data), count) if given.data else made_up(count)
    taken: dict[str, Times] = {"ebert relations": [], "bare loop": []}
    for _ in range(given.rounds):
        model = EBert.from_pretrained(given.model or get_starter())
        times, batches = ours(model, samples, given.mode, options)
        taken["ebert relations"] += times
        taken["bare loop"] += bare(given.bert, batches, options)
        print(".", end="", file=sys.stderr, flush=True)
    tokens = sum(map(sum, batches)) / len(batches)
    print(
        f"\n{len(taken['bare loop'])} steps of 32 samples, {tokens:,.0f} tokens each, {torch.get_num_threads()} threads"
    )
    middle = {name: [statistics.median(column) for column in zip(*times, strict=True)] for name, times in taken.items()}
    for name, (wall, cpu) in middle.items():
        print(f"{name:<16} {wall:6.2f} s wall, {cpu:6.2f} s CPU a step; {32 / wall:5.1f} samples a second")
    ratio = [ours_ / bare_ for ours_, bare_ in zip(middle["ebert relations"], middle["bare loop"], strict=True)]
    print(f"ours / bare: {ratio[0]:.3f} in wall time, {ratio[1]:.3f} in CPU time")


if __name__ == "__main__":
    main()
