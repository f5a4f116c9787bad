"""Fine-tuning a linker with the Trainer of transformers: resume, logging, mixed precision and devices are its.

What is added: steps of many spans that are computed a few at a time, an order that depends on seed and epoch only, the
dev set's strong-match micro F1 after every epoch, and the best linker on disk at any time.
"""

import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import Sampler
from transformers import TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from ebert.linking.document import Document
from ebert.linking.examples import Item, TrainingSet
from ebert.linking.linker import Linker
from ebert.linking.options import TrainingOptions
from ebert.model.batching import budget_on, plan
from ebert.progress import progress

STATE = "trainer_state.json"  # what the Trainer writes last into a checkpoint
LOG_STEPS = 25
TOKENS = {"cpu": 2048}  # computed at a time, activations and all
MORE_TOKENS = 16384

Say = Callable[[str], None]
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
    say(
        f"{train.spans:,} spans an epoch in {steps:,} steps of {batch} {'chunks' if batch < options.batch else 'spans'}"
    )
    sampler = EpochSampler(len(train), seed=options.seed)
    keeper = _Keeper(linker, train, sampler, best, say)
    trainer = _Trainer(
        model=linker.module,
        args=_arguments(options, checkpoints, batch=batch, steps=steps, device=device),
        train_dataset=train,
        eval_dataset=list(dev),  # what is done with it is ours
        data_collator=_Collator(linker, options.tokens),
        callbacks=[keeper],
    )
    trainer.sampler, trainer.score, trainer.linker = sampler, score, linker
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    with keeper:
        trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    return keeper.curve(trainer.state)


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


class EpochSampler(Sampler[int]):
    """Gives all indices in an order that depends on the seed and the epoch only."""

    def __init__(self, size: int, *, seed: int) -> None:
        """Set `epoch` before going through an epoch."""
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


class _Keeper(TrainerCallback):
    """Sets the epoch of the data, keeps the best linker and reports."""

    def __init__(self, linker: Linker, train: TrainingSet, sampler: EpochSampler, best: Path, say: Say) -> None:
        self._linker, self._train, self._sampler, self._best, self._say = linker, train, sampler, best, say
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
        """Choose the order and the over-generated spans of the epoch, also when it is gone on with in its middle."""
        self._train.epoch = self._sampler.epoch = state.global_step // (state.max_steps // self._epochs)

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Show progress."""
        self._advance(1)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, *_: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Keep the linker if none before was as good."""
        curve = self.curve(state)
        f1 = curve[-1]["dev"]["f1"]
        better = all(f1 > before["dev"]["f1"] for before in curve[:-1])
        if better and state.is_world_process_zero:
            self._linker.save_pretrained(self._best)
        self._say(
            f"epoch {curve[-1]['epoch']:g} of {self._epochs}: loss {curve[-1]['loss']:.3f}, dev F1 "
            f"{f1:.2f}{' (the best so far)' if better else ''}, {time.monotonic() - self._start:,.0f} s"
        )

    def curve(self, state: TrainerState) -> list[dict[str, Any]]:
        """Give, for each evaluation, the mean loss before it and the scores on the dev set."""
        points: list[dict[str, Any]] = []
        losses: list[float] = []
        for entry in state.log_history:
            if "loss" in entry:
                losses.append(entry["loss"])
            if "eval_f1" in entry:
                names = ("precision", "recall", "f1", "shift")
                points.append(
                    {
                        "epoch": round(self._epochs * entry["step"] / state.max_steps, 4),
                        "step": entry["step"],
                        "loss": float(np.mean(losses)) if losses else math.nan,
                        "dev": {name: entry[f"eval_{name}"] for name in names},
                    }
                )
                losses = []
        return points


def _arguments(
    options: TrainingOptions, folder: Path, *, batch: int, steps: int, device: str | None
) -> TrainingArguments:
    """Say to the Trainer what we mean. When it does both, it evaluates first and saves then."""
    log = math.gcd(options.checkpoint_steps, LOG_STEPS)  # so that every checkpoint has all losses before it
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=options.epochs,
        per_device_train_batch_size=batch,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        lr_scheduler_type="linear",
        warmup_steps=math.ceil(options.warmup * steps * options.epochs),
        optim="adamw_torch_fused",
        seed=options.seed,
        eval_strategy="steps",
        eval_steps=math.ceil(steps / options.evaluations),
        save_strategy="steps",
        save_steps=options.checkpoint_steps,
        save_total_limit=1,
        logging_strategy="steps",
        logging_steps=min(log, math.ceil(steps / options.evaluations)),
        bf16=options.precision == "bf16",
        fp16=options.precision == "fp16",
        remove_unused_columns=False,
        label_names=["labels"],
        report_to=[],
        disable_tqdm=True,
        use_cpu=device == "cpu",
        dataloader_pin_memory=False,
    )
