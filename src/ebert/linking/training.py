"""Fine-tuning a linker: steps of many spans that are computed a few at a time, and the dev set's strong-match F1."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import Sampler

from ebert.finetuning.trainer import Keeper, Say, arguments, run
from ebert.linking.document import Document
from ebert.linking.examples import Item, TrainingSet
from ebert.linking.linker import Linker
from ebert.linking.options import TrainingOptions
from ebert.model.batching import budget_on, plan

TOKENS = {"cpu": 2048}  # computed at a time, activations and all
MORE_TOKENS = 16384

Score = Callable[[Linker], dict[str, float]]  # of the dev set, in percent, and the shift they were reached with


def fine_tune(
    linker: Linker,
    train: TrainingSet,
    dev: Sequence[Document],
    options: TrainingOptions,
    *,
    score: Score,
    checkpoints: Path,
    best: Path,
    say: Say,
    device: str | None = None,
) -> list[dict[str, Any]]:
    """Train, going on from the last checkpoint if there is one, and give the learning curve.

    The best linker by `score` is in the folder `best` afterwards.
    """
    batch = options.batch
    if linker.options.strategy == "packed":  # as many chunks as have about that many spans
        batch = max(1, round(options.batch * len(train) / train.spans))
    steps = math.ceil(len(train) / batch)
    unit = "chunks" if linker.options.strategy == "packed" else "spans"
    say(f"{train.spans:,} spans an epoch in {steps:,} steps of {batch:,} {unit}")
    sampler = EpochSampler(len(train), seed=options.seed)

    def begin(epoch: int) -> None:
        train.epoch = sampler.epoch = epoch

    keeper = Keeper(begin, lambda: linker.save_pretrained(best), say, scores=("precision", "recall", "f1", "shift"))
    evaluate = math.ceil(steps / options.evaluations)
    trainer = _Trainer(
        model=linker.module,
        args=arguments(
            options,
            checkpoints,
            batch=batch,
            steps=steps,
            evaluate=evaluate,
            device=device,
            dataloader_pin_memory=False,
        ),
        train_dataset=train,
        eval_dataset=list(dev),  # what is done with it is ours
        data_collator=_Collator(linker, options.tokens),
        callbacks=[keeper],
    )
    trainer.sampler, trainer.score, trainer.linker = sampler, score, linker
    return run(trainer, keeper, checkpoints)


class EpochSampler(Sampler[int]):
    """Gives all indices in an order that depends on the seed and the epoch only."""

    def __init__(self, size: int, *, seed: int) -> None:
        self._size, self._seed, self.epoch = size, seed, 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return iter(np.random.default_rng([self._seed, self.epoch, 1]).permutation(self._size).tolist())


class _Collator:
    """Makes one step: parts that are computed one after the other, and the weight of all their spans."""

    def __init__(self, linker: Linker, tokens: int | None) -> None:
        self._linker, self._tokens = linker, tokens

    def __call__(self, chosen: Sequence[list[Item]]) -> dict[str, Any]:
        items = [item for one in chosen for item in one]
        kind = self._linker.module.device.type
        budget = self._tokens or max(TOKENS.get(kind, MORE_TOKENS), budget_on(kind))
        parts: list[dict[str, Tensor]] = []
        for group in plan([len(laid) for laid, _, _ in items], budget):
            part = [items[index] for index in group]
            labels = [label for _, own, _ in part for label in own]
            weights = [weight for _, _, own in part for weight in own]
            parts.append(self._linker.batcher([laid for laid, _, _ in part], labels, weights))
        return {"parts": parts, "total": sum(part["weights"].sum() for part in parts)}


class _Trainer(transformers.Trainer):
    """The Trainer, with our order of the spans, our steps and our evaluation."""

    sampler: EpochSampler
    score: Score
    linker: Linker

    def _get_train_sampler(self, *_: Any, **__: Any) -> EpochSampler:
        return self.sampler

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        """Compute the mean loss of a step, part by part."""
        model.train()
        inputs = self._prepare_inputs(inputs)
        losses = []
        for part in inputs["parts"]:
            with self.compute_loss_context_manager():
                loss = model(**part)["loss"] / inputs["total"]
            self.accelerator.backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Link the dev set."""
        metrics = {f"eval_{name}": value for name, value in self.score(self.linker).items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics
