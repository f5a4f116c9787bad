"""Fine-tuning a classifier with the Trainer of transformers: resume, logging, mixed precision and several GPUs are its.

What is added: batches of like length in an order that depends on seed and epoch only, the dev set's macro F1 after
every epoch, and the classifier of the best epoch on disk at any time.
"""

import math
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import EvalPrediction, TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from ebert.errors import EbertError
from ebert.progress import progress
from ebert.relations.classifier import RelationClassifier
from ebert.relations.inputs import Prepared, padding
from ebert.relations.options import TrainingOptions
from ebert.relations.sampler import FixedSampler, LengthSampler
from ebert.relations.scores import confusion, scores

STATE = "trainer_state.json"  # what the Trainer writes last into a checkpoint
LOG_STEPS = 25

Say = Callable[[str], None]


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
    arguments = _arguments(options, checkpoints, steps=math.ceil(len(train) / options.batch), device=device)
    lengths = [[len(train[index]) for index in batch] for batch in sampler.batches(0)]
    unsorted = np.array_split(np.array([len(one) for one in train]), math.ceil(len(train) / options.batch))
    say(
        f"padding is {padding(lengths):.1%} of the tokens, with samples of like length in a batch "
        f"(in the order of the file it would be {padding([part.tolist() for part in unsorted]):.1%})"
    )
    keeper = _Keeper(classifier, sampler, best, say)
    order = sorted(range(len(dev)), key=lambda index: (len(dev[index]), index))
    trainer = _Trainer(
        model=classifier.module,
        args=arguments,
        train_dataset=sets[0],
        eval_dataset=sets[1],
        data_collator=classifier.inputs,
        compute_metrics=_metrics(len(number)),
        callbacks=[keeper],
    )
    trainer.train_sampler, trainer.eval_sampler = sampler, FixedSampler(order)
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    with keeper:
        trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    return {"epochs": keeper.curve(trainer.state), "padding": padding(lengths)}


def last_checkpoint(folder: Path) -> str | None:
    """Give the newest complete checkpoint, and remove what a kill left half written."""
    complete: list[tuple[int, Path]] = []
    for path in folder.glob("checkpoint-*"):
        try:
            state = TrainerState.load_from_json(str(path / STATE))
        except (OSError, ValueError, TypeError):
            shutil.rmtree(path, ignore_errors=True)
        else:
            complete.append((state.global_step, path))
    return str(max(complete)[1]) if complete else None


class _Trainer(transformers.Trainer):
    """The Trainer, with our order of the samples."""

    train_sampler: LengthSampler
    eval_sampler: FixedSampler

    def _get_train_sampler(self, *_: Any, **__: Any) -> LengthSampler:
        return self.train_sampler

    def _get_eval_sampler(self, *_: Any, **__: Any) -> FixedSampler:
        return self.eval_sampler


class _Keeper(TrainerCallback):
    """Sets the epoch of the sampler, keeps the best classifier and reports."""

    def __init__(self, classifier: RelationClassifier, sampler: LengthSampler, best: Path, say: Say) -> None:
        self._classifier, self._sampler, self._best, self._say = classifier, sampler, best, say
        self._stack = ExitStack()
        self._start = time.monotonic()

    def __enter__(self) -> "_Keeper":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        """Say where it begins."""
        self._epochs = int(args.num_train_epochs)
        if state.global_step:
            self._say(f"going on after step {state.global_step:,} of {state.max_steps:,}")
        left = state.max_steps - state.global_step
        self._advance = self._stack.enter_context(progress("training", total=left, unit="steps"))

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:  # noqa: ARG002
        """Choose the order of the epoch; one that is gone on with in its middle has its own order too."""
        self._sampler.epoch = state.global_step // (state.max_steps // self._epochs)

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Show progress."""
        self._advance(1)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, *_: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Keep the classifier if no epoch before was as good."""
        curve = self.curve(state)
        f1 = kwargs["metrics"]["eval_f1"]
        better = all(f1 > epoch["dev"]["f1"] for epoch in curve[:-1])
        if better and state.is_world_process_zero:
            self._classifier.save_pretrained(self._best)
        self._say(
            f"epoch {curve[-1]['epoch']} of {self._epochs}: loss {curve[-1]['loss']:.3f}, dev F1 "
            f"{f1:.2f}{' (the best so far)' if better else ''}, {time.monotonic() - self._start:,.0f} s"
        )

    def curve(self, state: TrainerState) -> list[dict[str, Any]]:
        """Give, for each epoch, the mean loss in it and the scores on the dev set after it."""
        epochs: list[dict[str, Any]] = []
        losses: list[float] = []
        for entry in state.log_history:
            if "loss" in entry:
                losses.append(entry["loss"])
            if "eval_f1" in entry:
                names = ("precision", "recall", "f1")
                epochs.append(
                    {
                        "epoch": len(epochs) + 1,
                        "loss": float(np.mean(losses)) if losses else math.nan,
                        "dev loss": entry["eval_loss"],
                        "dev": {name: entry[f"eval_{name}"] for name in names},
                    }
                )
                losses = []
        return epochs


def _metrics(relations: int) -> Callable[[EvalPrediction], dict[str, float]]:
    def compute(prediction: EvalPrediction) -> dict[str, float]:
        given = np.asarray(prediction.predictions).argmax(axis=-1)
        return scores(confusion(np.asarray(prediction.label_ids), given, relations)).macro()

    return compute


def _arguments(options: TrainingOptions, folder: Path, *, steps: int, device: str | None) -> TrainingArguments:
    """Say to the Trainer what we mean. After the last step of an epoch it evaluates, and only then saves."""
    # So that every checkpoint has all losses before it, and every epoch its own.
    log = math.gcd(options.checkpoint_steps, LOG_STEPS, steps)

    def make(batch: int) -> TrainingArguments:
        return TrainingArguments(
            output_dir=str(folder),
            num_train_epochs=options.epochs,
            per_device_train_batch_size=batch,
            per_device_eval_batch_size=batch,
            learning_rate=options.learning_rate,
            weight_decay=options.weight_decay,
            lr_scheduler_type="linear",
            warmup_steps=math.ceil(options.warmup * steps * options.epochs),
            optim="adamw_torch_fused",
            seed=options.seed,
            eval_strategy="steps",
            eval_steps=steps,
            save_strategy="steps",
            save_steps=options.checkpoint_steps,
            save_total_limit=1,
            logging_strategy="steps",
            logging_steps=log,
            bf16=options.precision == "bf16",
            fp16=options.precision == "fp16",
            remove_unused_columns=False,
            label_names=["labels"],
            report_to=[],
            disable_tqdm=True,
            use_cpu=device == "cpu",
            dataloader_pin_memory=device != "cpu" and torch.cuda.is_available(),
        )

    arguments = make(options.batch)
    devices = max(1, arguments.n_gpu) * arguments.world_size
    if devices == 1:
        return arguments
    if options.batch % devices:
        raise EbertError(f"a batch of {options.batch} cannot be shared by {devices} devices evenly")
    return make(options.batch // devices)
