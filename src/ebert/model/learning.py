"""Learn W through the frozen encoder, so that it predicts masked words better from the entities in a passage.

Least squares (Section 3.1 of the paper) fits W on words and assumes that entities follow. Here W is changed by gradient
steps on passages with entities: some of their words are masked, the entities stand in them as in the modes of Section
3.2, and the loss is that of the masked words. The encoder stays unchanged; only W, the intercept and the length are
learned. Held-out passages, of other pages, say when to stop and which state is kept.
"""

import copy
import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from ebert._io import files, staging
from ebert._io.progress import Watch, unwatched
from ebert._runs import Journal, alone_in, refuse_other, saying_where
from ebert.errors import EbertError
from ebert.model.alignment import Alignment, Correction
from ebert.model.encoder import Encoder, fast_bf16, only
from ebert.model.injection import Injector
from ebert.model.masking import Batch, MaskablePassage, Masker
from ebert.model.options import MODES, AlignmentOptions, LearningOptions, LearningReport, Mode, feeds_entities
from ebert.model.passages import KnownPassage, Passages
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

FED: tuple[Mode, ...] = tuple(mode for mode in MODES if feeds_entities(mode))
RUN, CHECKPOINT, JOURNAL = "learning.json", "checkpoint.pt", "losses.jsonl"
FORMAT = 1
WINDOW = 2048  # passages that are cut into wordpieces together
MOST_HELD_OUT = 0.2  # of all passages
SAMPLE = 4096  # passages whose entities tell how long vectors are
CLIP = 1.0  # the longest gradient
WARMUP = 30  # steps in which the rate rises
FINAL = 0.05  # of the rate is left at the end
BETAS = (0.9, 0.98)
DAMPING = 0.125  # of the hidden layer: Adam's steps are equally large for all numbers, and so many of them add up


class LearnedMap(nn.Module):
    """W, the intercept and the length, starting from least squares, and optionally a hidden layer."""

    def __init__(self, alignment: Alignment, vectors: Tensor, hidden: int = 0) -> None:
        super().__init__()
        if alignment.weight is None:
            raise EbertError("the method 'none' has no W to learn; choose another --method")
        weight = torch.from_numpy(alignment.weight).T  # (source, target)
        bias = torch.zeros(alignment.target) if alignment.bias is None else torch.from_numpy(alignment.bias)
        usual = float((vectors @ weight + bias).norm(dim=1).mean())
        length = alignment.options.length or usual
        # Only the direction of W v + b counts. Scaled to its length, one learning rate suits every store.
        self.weight = nn.Parameter(weight * (length / usual))
        self.bias = nn.Parameter(bias * (length / usual))
        self.log_length = nn.Parameter(torch.tensor(math.log(length)))
        self.hidden = hidden
        if hidden:  # adds nothing at first
            self.inner = nn.Parameter(torch.randn(alignment.source, hidden) / vectors.norm(dim=1).mean())
            self.constant = nn.Parameter(torch.zeros(hidden))
            self.outer = nn.Parameter(torch.zeros(hidden, alignment.target))

    def forward(self, vectors: Tensor) -> Tensor:
        """Project vectors, shape (n, source), into the encoder's space, shape (n, target)."""
        projected = vectors @ self.weight + self.bias
        if self.hidden:
            projected = projected + DAMPING * F.relu(vectors @ self.inner + self.constant) @ self.outer
        return F.normalize(projected, dim=1) * self.log_length.exp()

    def alignment(self, before: Alignment, report: LearningReport) -> Alignment:
        """Return what was learned."""
        weight, bias = (one.detach().float().cpu() for one in (self.weight.T, self.bias))
        options: AlignmentOptions = replace(
            before.options, intercept=True, length=float(self.log_length.detach().exp())
        )
        correction = None
        if self.hidden:
            layer = (self.inner.T, self.constant, DAMPING * self.outer.T)
            correction = Correction(*(one.detach().float().cpu().contiguous().numpy() for one in layer))
        return replace(
            before, options=options, learned=report, weight=weight.contiguous().numpy(), bias=bias.numpy(),
            correction=correction,
        )  # fmt: skip


def learn(
    encoder: Encoder,
    vectors: Vectors,
    alignment: Alignment,
    passages: Passages,
    options: LearningOptions,
    *,
    folder: Path,
    say: Callable[[str], None] = lambda _: None,
    watch: Watch = unwatched,
) -> Alignment:
    """Return an alignment that was learned from passages, starting with one that least squares found.

    Checkpoints go into `folder`, from which the same call continues; it is removed at the end.
    """
    learning = Learning(encoder, vectors, alignment, passages, options, say, watch)
    with saying_where(folder), alone_in(folder, marker=RUN) as known:
        if known:
            refuse_other(
                folder, files.read_json(folder / RUN, "an unfinished alignment")["run"], learning.identity(),
                what="an unfinished alignment", overwrite=False,
            )  # fmt: skip
        else:
            files.write_json(folder / RUN, {"format": FORMAT, "run": learning.identity()})
        learned = learning.run(folder)
    staging.discard(folder)
    return learned


@dataclass
class _State:
    """The state of the learning: everything in a checkpoint."""

    step: int = 0
    seconds: float = 0.0
    best: float = math.inf
    best_step: int = 0
    worse: int = 0  # evaluations since the best one
    best_map: dict[str, Tensor] = field(default_factory=dict)


class Learning:
    """An alignment that is being learned."""

    def __init__(
        self, encoder: Encoder, vectors: Vectors, alignment: Alignment, passages: Passages, options: LearningOptions,
        say: Callable[[str], None], watch: Watch,
    ) -> None:  # fmt: skip
        self._encoder, self._vectors, self._before, self._options = encoder, vectors, alignment, options
        self._passages, self._say, self._watch = passages, say, watch
        self._injector = Injector(encoder, vectors, alignment)
        self._bf16 = options.precision == "bf16" or (options.precision == "auto" and fast_bf16(encoder.device))

    def identity(self) -> dict[str, Any]:
        """Return everything that the result depends on."""
        assert self._before.weight is not None
        return {
            "encoder": self._encoder.fingerprint, "vectors": self._vectors.fingerprint,
            "start": hashlib.sha256(self._before.weight.tobytes()).hexdigest(),
            "passages": self._passages.identity(), "options": asdict(self._options), "bf16": self._bf16,
        }  # fmt: skip

    def run(self, folder: Path) -> Alignment:
        """Learn until there is no more gain or the budget is used up."""
        train, held = self._choose()
        self._masker = Masker(self._injector, self._vectors, self._options)
        rng = random.Random(self._options.seed)  # noqa: S311
        some = [entity for one in rng.sample(train, min(len(train), SAMPLE)) for entity in one.found.values()]
        sample = torch.from_numpy(self._vectors.take(some)).float()
        torch.manual_seed(self._options.seed)
        self._map = LearnedMap(self._before, sample, self._options.hidden).to(self._encoder.device)
        self._module = frozen(self._encoder, bf16=self._bf16)
        optimiser = torch.optim.Adam(self._map.parameters(), lr=self._options.rate, betas=BETAS)
        state = self._resume(folder, optimiser)
        samples = self._held_out(held)
        before = {how: self._evaluate(samples, how) for how in ("none", "start")}
        for how, words in (("none", "no entities"), ("start", "least squares")):
            self._say(f"held-out loss with {words}: {_shown(before[how])}")
        self._train(folder, state, optimiser, train, samples)
        if state.best_map:
            self._map.load_state_dict(state.best_map)
        after = self._evaluate(samples, "map")
        report = LearningReport(
            steps=state.step, best_step=state.best_step, seconds=round(state.seconds, 1),
            passages=len(train), held_out=len(held), left_out=len(self._passages.leave_out),
            without=before["none"], least_squares=before["start"], learned=after,
            options=asdict(self._options), precision="bf16" if self._bf16 else "fp32",
        )  # fmt: skip
        return self._map.alignment(self._before, report)

    # Data

    def _choose(self) -> tuple[list[KnownPassage], list[KnownPassage]]:
        """Draw passages, and hold out those of some pages."""
        options = self._options
        with self._watch("read passages", total=self._passages.path.stat().st_size, unit="B") as advance:
            drawn = self._passages.choose(
                self._vectors, options.passages + options.held_passages, options.seed, advance
            )
        share = min(MOST_HELD_OUT, options.held_passages / max(1, len(drawn)))
        held = [one for one in drawn if _in_lot(one, share)]
        train = [one for one in drawn if not _in_lot(one, share)]
        if not held or not train:
            raise EbertError(
                f"{self._passages.path} has {len(drawn):,} passages whose entities have a vector, which are too few "
                "for training and evaluation"
            )
        self._say(f"{len(train):,} passages to learn from, {len(held):,} held out")
        return train, held

    def _held_out(self, held: Sequence[KnownPassage]) -> dict[Mode, list[Batch]]:
        """Return batches of the held-out passages in each mode, always with the same masks."""
        rng = random.Random(0)  # noqa: S311
        samples = {mode: self._masker.samples(held, mode) for mode in FED}
        if not all(samples.values()):
            raise EbertError(
                f"none of the {len(held):,} held-out passages of {self._passages.path} has a word to mask and at most "
                f"{self._options.longest} wordpieces (--longest); learning needs longer or other texts"
            )
        return {
            mode: [self._masker.mask(batch, rng) for batch in self._masker.group(own)] for mode, own in samples.items()
        }

    def _batches(self, train: Sequence[KnownPassage], skip: int) -> Iterator[Batch]:
        """Yield batches without end, starting at a step: the same ones whether or not a run was interrupted."""
        number = epoch = 0
        while True:
            order = list(train)
            random.Random(f"{self._options.seed}/{epoch}").shuffle(order)  # noqa: S311
            for start in range(0, len(order), WINDOW):
                window = order[start : start + WINDOW]
                rng = random.Random(f"{self._options.seed}/{epoch}/{start}")  # noqa: S311
                batches: list[list[MaskablePassage]] = []
                for turn, mode in enumerate(FED):  # a passage has another mode in every epoch
                    own = window[(epoch + turn) % len(FED) :: len(FED)]
                    batches += self._masker.group(self._masker.samples(own, mode))
                rng.shuffle(batches)
                for batch in batches:
                    masked = self._masker.mask(batch, rng)
                    if number >= skip:
                        yield masked
                    number += 1
            epoch += 1
            if not number:
                raise EbertError(f"{self._passages.path} has no passage with a word that can be masked")

    # Computing

    def _losses(self, batch: Batch, how: str) -> Tensor:
        """Return the loss of every masked word of a batch; `how` says which vectors the entities have."""

        def project(entities: Sequence[Entity]) -> Tensor:
            vectors = torch.from_numpy(self._vectors.take(entities)).float().to(self._encoder.device)
            return self._map(vectors) if how == "map" else vectors.new_zeros(len(vectors), self._before.target)

        return masked_losses(self._module, self._injector, batch, None if how == "start" else project)

    @torch.no_grad()
    def _evaluate(self, held: dict[Mode, list[Batch]], how: str) -> dict[str, float]:
        """Return the mean loss of the held-out masked words in each mode."""
        found: dict[str, float] = {}
        for mode, batches in held.items():
            losses = torch.cat([self._losses(batch, how) for batch in batches])
            found[mode] = round(float(losses.mean()), 5)
        return found

    def _train(
        self, folder: Path, state: _State, optimiser: torch.optim.Optimizer, train: Sequence[KnownPassage],
        held: dict[Mode, list[Batch]],
    ) -> None:  # fmt: skip
        options = self._options
        began = time.monotonic() - state.seconds
        budget = (options.minutes or math.inf) * 60
        batches = self._batches(train, state.step)
        with Journal(folder / JOURNAL) as journal, self._watch("learn", total=options.steps, unit="steps") as advance:
            list(journal.read())
            advance(state.step)
            ended = state.worse > options.patience
            while state.step < options.steps and not ended:
                done = max(state.step / options.steps, state.seconds / budget)
                rate = options.rate * min(1.0, (state.step + 1) / WARMUP) * (FINAL + (1 - FINAL) * max(0.0, 1 - done))
                for group in optimiser.param_groups:
                    group["lr"] = rate
                loss = self._losses(next(batches), "map").mean()
                optimiser.zero_grad()
                torch.autograd.backward(loss)
                nn.utils.clip_grad_norm_(self._map.parameters(), CLIP)
                optimiser.step()
                state.step += 1
                state.seconds = time.monotonic() - began
                advance(1)
                ended = state.seconds >= budget or state.step == options.steps
                if state.step % options.evaluate == 0 or ended:
                    losses = self._evaluate(held, "map")
                    self._keep(state, losses)
                    journal.add({"step": state.step, "seconds": round(state.seconds), "held out": losses})
                    self._say(f"step {state.step:,}, {state.seconds / 60:.0f} min: held-out loss {_shown(losses)}")
                    ended = ended or state.worse > options.patience
                    self._save(folder, state, optimiser)

    def _keep(self, state: _State, losses: dict[str, float]) -> None:
        """Note whether this is the best state so far."""
        mean = sum(losses.values()) / len(losses)
        state.worse += 1
        if mean < state.best:
            state.best, state.best_step, state.worse = mean, state.step, 0
            state.best_map = {name: value.detach().clone() for name, value in self._map.state_dict().items()}

    # Checkpoints

    def _save(self, folder: Path, state: _State, optimiser: torch.optim.Optimizer) -> None:
        from safetensors.torch import save

        tensors = {f"map.{name}": value for name, value in self._map.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in state.best_map.items()}
        for number, moments in optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": value for name, value in moments.items()}
        facts = {key: value for key, value in vars(state).items() if key != "best_map"}
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        with files.replacing(folder / CHECKPOINT) as file:
            file.write(save(whole, metadata={"state": json.dumps(facts)}))

    def _resume(self, folder: Path, optimiser: torch.optim.Optimizer) -> _State:
        """Return the state of the checkpoint in a folder, which goes into the map and the optimiser; or a new one."""
        from safetensors import SafetensorError, safe_open

        path = folder / CHECKPOINT
        if not path.exists():
            return _State()
        try:
            with safe_open(str(path), framework="pt") as file:
                facts = json.loads(file.metadata()["state"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            state = _State(**facts, best_map=_part(tensors, "best."))
            self._map.load_state_dict(_part(tensors, "map."))
            moments: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _part(tensors, "adam.").items():
                number, _, kind = name.partition(".")
                moments.setdefault(int(number), {})[kind] = tensor
            optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise EbertError(f"{path} is damaged ({error}); remove {folder} to begin again") from None
        self._say(f"going on at step {state.step:,}")
        return state


def frozen(encoder: Encoder, *, bf16: bool) -> PreTrainedModel:
    """Return a copy of an encoder without gradients, in the precision that is computed in."""
    module = copy.deepcopy(encoder.module)
    module.train(mode=False).requires_grad_(requires_grad=False)
    if bf16:
        nn.Module.to(module, torch.bfloat16)
    return module


def masked_losses(
    module: PreTrainedModel, injector: Injector, batch: Batch, project: Callable[[Sequence[Entity]], Tensor] | None
) -> Tensor:
    """Return the loss of every masked word of a batch.

    `project` returns the encoder's input for entities; by default the injector's alignment makes it.
    """
    mask = injector.sequencer.mask
    rows, labels, masked = [], [], []
    for row, (sample, places) in enumerate(batch):
        ids = list(sample.pieces.ids)
        for place in places:
            rows.append((row, place))
            labels.append(ids[place])
            ids[place] = mask
        masked.append(replace(sample.pieces, ids=ids))
    inputs = injector.tensors(masked)
    embeds = inputs["inputs_embeds"]  # (batch, pieces, width)
    if project is not None:
        entities = [(row, place, p.found[m]) for row, p in enumerate(masked) for place, m in p.entities.items()]
        at = tuple(torch.tensor([one[axis] for one in entities], device=embeds.device) for axis in (0, 1))
        embeds = embeds.index_put(at, project([entity for _, _, entity in entities]).to(embeds))
    inputs["inputs_embeds"] = embeds.to(next(module.parameters()).dtype)
    chosen = torch.tensor(rows, device=embeds.device).T
    with only(module.base_model, (chosen[0], chosen[1])):
        logits = module(**inputs).logits[0].float()  # (masked, vocabulary)
    return F.cross_entropy(logits, torch.tensor(labels, device=embeds.device), reduction="none")


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _in_lot(one: KnownPassage, share: float) -> bool:
    """Return whether a passage is in this share of all passages; all passages of a page are, or none."""
    page = one.page or one.passage.text
    return int.from_bytes(hashlib.sha256(page.encode()).digest()[:4]) < share * 2**32


def _shown(losses: dict[str, float]) -> str:
    return ", ".join(f"{mode} {loss:.3f}" for mode, loss in losses.items())
