"""Refine the vector of an entity through the encoder: BERT should predict the words of its description from it.

`ebert.vectors.from_description` makes a vector that predicts the words of a description by the output vectors of the
store. Here a few gradient steps follow on that vector alone, with W and the encoder frozen, and with the same loss that
W is learned with (`ebert.model.learning`): masked words of the description's sentences, in which the vector stands.
"""

import random
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ebert.model.alignment import Alignment
from ebert.model.encoder import Encoder, fast_bf16
from ebert.model.injection import Injector
from ebert.model.learning import FED, frozen, masked_losses
from ebert.model.masking import MaskablePassage, Masker
from ebert.model.options import LearningOptions
from ebert.model.passages import KnownPassage
from ebert.text.passage import Mention, Passage
from ebert.vectors.entity import Entity
from ebert.vectors.lookup import plain_name
from ebert.vectors.store import Vectors
from ebert.wikipedia.passages import find_subject, sentences

STEPS = 30
RATE = 0.1  # of Adam, for a vector whose numbers are 1 in the mean
PULL = 1.0  # what the distance from the first vector costs, in units of its length
MOST = 8  # sentences of a description that are looked at
MASKING = LearningOptions(longest=128, mask=0.3)


class Refiner:
    """Refines the vectors of entities, for one model."""

    def __init__(
        self, encoder: Encoder, vectors: Vectors, alignment: Alignment, *,
        steps: int = STEPS, rate: float = RATE, pull: float = PULL,
    ) -> None:  # fmt: skip
        self._vectors, self._alignment, self._device = vectors, alignment, encoder.device
        self._steps, self._rate, self._pull = steps, rate, pull
        self._injector = Injector(encoder, vectors, alignment)
        self._masker = Masker(self._injector, vectors, MASKING)
        self._module = frozen(encoder, bf16=fast_bf16(encoder.device))

    def __call__(self, title: str, description: str, start: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Return the vector of an entity with this description, as `Vectors.add` takes it.

        It starts from the vector that `Vectors.imagine` makes from the description, unless another vector is given.
        """
        first = self._vectors.imagine(description) if start is None else start
        origin = torch.from_numpy(np.array(first, np.float32))
        samples = self._samples(title, description)
        size = float(origin.norm()) / len(origin) ** 0.5
        if not samples or not size:
            return origin.numpy()
        vector = origin.clone().requires_grad_()
        optimiser = torch.optim.Adam([vector], lr=self._rate * size)
        rng = random.Random(title)  # noqa: S311 - which words are masked is no secret

        def project(entities: Sequence[Entity]) -> Tensor:
            projected = differentiable(self._alignment, vector)
            return projected.expand(len(entities), -1).to(self._device)

        for _ in range(self._steps):
            losses = [
                masked_losses(self._module, self._injector, self._masker.mask(batch, rng), project)
                for batch in self._masker.group(samples)
            ]
            distance = (vector - origin).square().sum() / origin.square().sum()
            optimiser.zero_grad()
            torch.autograd.backward(torch.cat(losses).mean() + self._pull * distance)
            optimiser.step()
        return np.asarray(vector.detach().numpy(), np.float32)

    def _samples(self, title: str, description: str) -> list[MaskablePassage]:
        """Return the sentences of a description in each mode; the name stands before those that do not have it."""
        name = plain_name(title)
        known = []
        for number, (start, end) in enumerate(sentences(description, 0, len(description))):
            text = description[start:end]
            span = find_subject(text, name, first=number == 0)
            if span is None:
                text, span = f"{name}: {text}", (0, len(name))
            mention = Mention(*span, title)
            # Any entity does as the one that stands there: what it is projected to is not used.
            known.append(KnownPassage(title, Passage(text, (mention,)), {mention: Entity(title, 0)}))
        return [sample for mode in FED for sample in self._masker.samples(known[:MOST], mode)]


def differentiable(alignment: Alignment, vectors: Tensor) -> Tensor:
    """Return what `Alignment.project` returns, so that gradients flow back to the vectors."""
    tensors = {name: torch.from_numpy(array) for name, array in alignment.arrays().items()}
    projected = vectors @ tensors["weight"].T if "weight" in tensors else vectors
    if "bias" in tensors:
        projected = projected + tensors["bias"]
    if alignment.correction is not None:
        inner, constant, outer = (tensors[f"correction.{name}"] for name in ("inner", "constant", "outer"))
        projected = projected + F.relu(vectors @ inner.T + constant) @ outer.T
    if alignment.options.length is not None:
        projected = F.normalize(projected, dim=-1) * alignment.options.length
    return projected
