"""For one's own fine-tuning: passages in, a batch of `inputs_embeds`, mask and positions out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ebert.errors import EbertError
from ebert.model.injection import Injector
from ebert.model.sequence import Mode, check
from ebert.text import Passage

Example = str | Passage | Mapping[str, Any]


class EntityCollator:
    """Turns passages into the inputs of any transformers model of the same encoder.

    Wordpiece and entity vectors are fixed, as in the paper; everything else can be trained. An example is a passage, a
    string with markup, or a mapping with a ``passage`` and anything else (a ``label``, say), which becomes a tensor of
    the batch under the same name (``labels`` for ``label``, as transformers expects it).

    `missing` counts the titles without a vector that it has met; workers of a data loader count for themselves.

    Give it to a `torch.utils.data.DataLoader` or a `transformers.Trainer` (with ``remove_unused_columns=False``).
    """

    def __init__(self, injector: Injector, mode: Mode) -> None:
        check(mode)
        # Data loaders work on the CPU, often in processes of their own: the model's device stays out of it.
        self._injector = injector.on_cpu()
        self.mode: Mode = mode
        self.missing: Counter[str] = Counter()

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """Collate a batch."""
        rows = [example if isinstance(example, Mapping) else {"passage": example} for example in examples]
        if not rows:
            raise EbertError("a batch without examples cannot be collated")
        for row in rows:
            if "passage" not in row or row.keys() != rows[0].keys():
                raise EbertError(
                    f"every example needs a 'passage' and what the others have: {', '.join(map(repr, row))}"
                )
        passages = [Passage.of(row["passage"]) for row in rows]
        if self.mode != "bert":
            self.missing.update(self._injector.missing(passages))
        batch = self._injector.tensors(self._injector.sequences(passages, self.mode))
        for name in rows[0]:
            if name != "passage":
                batch["labels" if name == "label" else name] = _stack([row[name] for row in rows])
        return batch


def _stack(values: list[Any]) -> Tensor:
    return torch.stack(values) if isinstance(values[0], Tensor) else torch.tensor(values)
