"""Fine-tuning a classifier: batches of like length, the dev set's macro F1 after every epoch, the best epoch kept."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import EvalPrediction, TrainingArguments

from ebert.errors import EbertError
from ebert.finetuning.trainer import Keeper, Say, arguments, run
from ebert.relations.classifier import RelationClassifier
from ebert.relations.inputs import Prepared, padding
from ebert.relations.options import TrainingOptions
from ebert.relations.sampler import FixedSampler, LengthSampler
from ebert.relations.scores import confusion, scores


def fine_tune(
    classifier: RelationClassifier,
    train: Sequence[Prepared],
    dev: Sequence[Prepared],
    options: TrainingOptions,
    *,
    checkpoints: Path,
    best: Path,
    say: Say,
    device: str | None = None,
) -> dict[str, Any]:
    """Train, going on from the last checkpoint if there is one, and give the learning curve.

    The classifier of the best epoch is in the folder `best` afterwards.
    """
    number = {label: index for index, label in enumerate(classifier.labels)}
    sets = [[{"pieces": one.pieces, "label": number[str(one.sample.label)]} for one in part] for part in (train, dev)]
    sampler = LengthSampler([len(one) for one in train], batch=options.batch, seed=options.seed)

    def begin(epoch: int) -> None:
        sampler.epoch = epoch

    lengths = [[len(train[index]) for index in batch] for batch in sampler.batches(0)]
    unsorted = np.array_split(np.array([len(one) for one in train]), math.ceil(len(train) / options.batch))
    say(
        f"padding is {padding(lengths):.1%} of the tokens, with samples of like length in a batch "
        f"(in the order of the file it would be {padding([part.tolist() for part in unsorted]):.1%})"
    )
    keeper = Keeper(begin, lambda: classifier.save_pretrained(best), say)
    order = sorted(range(len(dev)), key=lambda index: (len(dev[index]), index))
    trainer = _Trainer(
        model=classifier.module,
        args=_arguments(options, checkpoints, steps=math.ceil(len(train) / options.batch), device=device),
        train_dataset=sets[0],
        eval_dataset=sets[1],
        data_collator=classifier.inputs,
        compute_metrics=_metrics(len(number)),
        callbacks=[keeper],
    )
    trainer.train_sampler, trainer.eval_sampler = sampler, FixedSampler(order)
    return {"epochs": run(trainer, keeper, checkpoints), "padding": padding(lengths)}


class _Trainer(transformers.Trainer):
    """The Trainer, with our order of the samples."""

    train_sampler: LengthSampler
    eval_sampler: FixedSampler

    def _get_train_sampler(self, *_: Any, **__: Any) -> LengthSampler:
        return self.train_sampler

    def _get_eval_sampler(self, *_: Any, **__: Any) -> FixedSampler:
        return self.eval_sampler


def _metrics(relations: int) -> Callable[[EvalPrediction], dict[str, float]]:
    def compute(prediction: EvalPrediction) -> dict[str, float]:
        given = np.asarray(prediction.predictions).argmax(axis=-1)
        return scores(confusion(np.asarray(prediction.label_ids), given, relations)).macro()

    return compute


def _arguments(options: TrainingOptions, folder: Path, *, steps: int, device: str | None) -> TrainingArguments:
    """Share the batch among the devices, and evaluate after every epoch."""

    def make(batch: int) -> TrainingArguments:
        return arguments(
            options, folder, batch=batch, steps=steps, evaluate=steps, device=device,
            per_device_eval_batch_size=batch, dataloader_pin_memory=device != "cpu" and torch.cuda.is_available(),
            ddp_find_unused_parameters=False,
        )  # fmt: skip

    whole = make(options.batch)
    devices = max(1, whole.n_gpu) * whole.world_size
    if devices == 1:
        return whole
    if options.batch % devices:
        raise EbertError(f"a batch of {options.batch} cannot be shared by {devices} devices evenly")
    return make(options.batch // devices)
