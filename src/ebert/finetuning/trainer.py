"""The Trainer of transformers, so that resume, logging, mixed precision and devices are its.

What is added: an order that depends on seed and epoch only, the best model on disk at any time, a learning curve.
"""

import math
import shutil
import signal
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from safetensors import SafetensorError, safe_open
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from ebert._io.progress import progress
from ebert.errors import EbertError
from ebert.finetuning.options import FinetuningOptions, Say

STATE = "trainer_state.json"  # what the Trainer writes last into a checkpoint
LOG_STEPS = 25


def arguments(
    options: FinetuningOptions, folder: Path, *, batch: int, steps: int, evaluate: int, device: str | None, **more: Any
) -> TrainingArguments:
    """Return the Trainer's arguments: AdamW, a linear schedule of `steps` an epoch, an evaluation every so many steps.

    When the Trainer both evaluates and saves after a step, it evaluates first.
    """
    # So that every checkpoint has all losses before it, and every evaluation its own.
    log = math.gcd(options.checkpoint_steps, LOG_STEPS, evaluate)
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
        eval_steps=evaluate,
        save_strategy="steps",
        save_steps=options.checkpoint_steps,
        save_total_limit=1,
        logging_strategy="steps",
        logging_steps=log,
        logging_nan_inf_filter=False,  # a loss that is no number is an error, not left out
        bf16=options.precision == "bf16",
        fp16=options.precision == "fp16",
        remove_unused_columns=False,
        label_names=["labels"],
        report_to=[],
        disable_tqdm=True,
        use_cpu=device == "cpu",
        **more,
    )


def run(trainer: transformers.Trainer, keeper: "Keeper", checkpoints: Path) -> list[dict[str, Any]]:
    """Train from the last checkpoint if there is one, and return the learning curve."""
    for talkative in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(talkative)
    with keeper, keeper.saving_when_stopped(alone=trainer.args.world_size == 1):
        trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    if keeper.stopping:
        raise KeyboardInterrupt
    return keeper.curve(trainer.state)


def last_checkpoint(folder: Path) -> str | None:
    """Return the newest complete checkpoint, and remove what a kill left half written."""
    complete: list[tuple[int, Path]] = []
    for path in folder.glob("checkpoint-*"):
        try:
            state = TrainerState.load_from_json(str(path / STATE))
        except (OSError, ValueError, TypeError):
            shutil.rmtree(path, ignore_errors=True)
        else:
            complete.append((state.global_step, path))
    if not complete:
        return None
    newest = max(complete)[1]
    for file in newest.iterdir():
        _check_whole(file)
    return str(newest)


def _check_whole(file: Path) -> None:
    """Raise an error if a file of a checkpoint has been cut, by a power failure or a full disk, say."""
    try:
        if file.suffix == ".safetensors":
            with safe_open(file, framework="np"):
                return
        if file.suffix in (".pt", ".pth", ".bin") and not zipfile.is_zipfile(file):
            raise OSError("its end is missing")
    except (OSError, SafetensorError) as error:
        raise EbertError(
            f"{file} is damaged ({error}), and the training cannot continue from there; remove {file.parent} to "
            "continue from an earlier checkpoint if there is one, or else to start again"
        ) from None


@dataclass
class Keeper(TrainerCallback):
    """A callback that sets the epoch of the data, keeps the best model and reports.

    The Trainer's own best model is a checkpoint, loaded at the end; ours is on disk at any time, as users load it.
    """

    begin_epoch: Callable[[int], None]  # chooses the order of an epoch, also of one that is continued in its middle
    save: Callable[[], None]  # writes the model to where the best one is kept
    say: Say
    scores: tuple[str, ...] = ("precision", "recall", "f1")  # of the dev set; f1 says which is best
    stopping: bool = False  # whether somebody has pressed Ctrl-C

    def __enter__(self) -> "Keeper":
        self._stack = ExitStack()
        self._start = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        """Report where it begins."""
        self._epochs = int(args.num_train_epochs)
        if state.global_step:
            self.say(f"continuing after step {state.global_step:,} of {state.max_steps:,}")
        left = state.max_steps - state.global_step
        self._advance = self._stack.enter_context(progress("training", total=left, unit="steps"))

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:  # noqa: ARG002
        """Choose what the epoch sees."""
        self.begin_epoch(state.global_step // (state.max_steps // self._epochs))

    @contextmanager
    def saving_when_stopped(self, *, alone: bool) -> Iterator[None]:
        """Let the first Ctrl-C end the step and write a checkpoint; the second stops at once.

        Of several processes none knows at which step the others are, so that these stop as ever.
        """
        if not alone or threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(*_: object) -> None:
            signal.signal(signal.SIGINT, before)
            self.stopping = True
            self.say("stopping after this step, when its state is saved; press Ctrl-C again to stop at once")

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002
        state: TrainerState,  # noqa: ARG002
        control: TrainerControl,
        **__: Any,
    ) -> None:
        """Show progress; stop where the training can be continued."""
        self._advance(1)
        if self.stopping:
            control.should_save = control.should_training_stop = True

    def on_log(
        self, args: TrainingArguments, state: TrainerState, *_: Any, logs: Mapping[str, Any] | None = None, **__: Any
    ) -> None:
        """Stop as soon as the training has come apart: no later step can mend it."""
        if logs and not math.isfinite(logs.get("loss", 0.0)):
            raise EbertError(
                f"the loss is no longer a number at step {state.global_step:,}; remove the folder and train again "
                f"with a lower learning rate than {args.learning_rate:g}"
            )

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:  # noqa: ARG002
        """Keep the model if none before was as good."""
        curve = self.curve(state)
        f1 = curve[-1]["dev"]["f1"]
        better = all(f1 > before["dev"]["f1"] for before in curve[:-1])
        if better and state.is_world_process_zero:
            self.save()
        self.say(
            f"epoch {curve[-1]['epoch']:g} of {self._epochs}: loss {curve[-1]['loss']:.3f}, dev F1 "
            f"{f1:.2f}{' (the best so far)' if better else ''}, {time.monotonic() - self._start:,.0f} s"
        )

    def curve(self, state: TrainerState) -> list[dict[str, Any]]:
        """Return, for each evaluation, the mean loss since the one before and the scores on the dev set."""
        points: list[dict[str, Any]] = []
        losses: list[float] = []
        for entry in state.log_history:
            if "loss" in entry:
                losses.append(entry["loss"])
            if "eval_f1" not in entry:
                continue
            point = {
                "epoch": _plain(round(self._epochs * entry["step"] / state.max_steps, 4)),
                "step": entry["step"],
                "loss": float(np.mean(losses)) if losses else math.nan,
                "dev": {name: entry[f"eval_{name}"] for name in self.scores},
            }
            points.append(point | ({"dev loss": entry["eval_loss"]} if "eval_loss" in entry else {}))
            losses = []
        return points


def best_of(curve: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the point of a learning curve whose model was kept: the first of the best."""
    return max(curve, key=lambda point: (point["dev"]["f1"], -point["step"]))


def _plain(number: float) -> int | float:
    return int(number) if number.is_integer() else number
