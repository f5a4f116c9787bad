"""The weights of the evidence, fitted before an adapter is trained, while its updates of the encoder are still zero.

This is a logistic regression on the evidence and on the answers of the untrained encoder. The Trainer would need
hundreds of steps to fit these few weights as well. So a linker begins with the knowledge of the prior, and the steps
are spent on the encoder.
"""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from ebert.linking.adapter import EvidenceWeights
from ebert.linking.scorer import LinkingModel

ENOUGH = 6000  # spans
ITERATIONS = 200
SHRINKAGE = 1e-4  # of weights towards their first values, so that evidence that never occurs keeps its weight
FACTS = ("log_priors", "evidence", "likeness", "traits", "labels", "weights")


def fit_evidence(model: LinkingModel, parts: Iterable[dict[str, Tensor]]) -> float:
    """Fit the weights on enough labelled spans, and return the remaining mean loss."""
    weights = cast("EvidenceWeights", model.weights)
    null, candidates, log_priors, evidence, likeness, traits, labels, counts = _answers(model, parts)
    fitted = [*weights.parameters(), model.null_bias]
    began = [one.detach().clone() for one in fitted]
    optimizer = torch.optim.LBFGS(fitted, max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        nothing, something = weights(null, candidates, evidence, [log_priors, likeness, *traits.unbind(-1)])
        scores = torch.cat([(nothing + model.null_bias)[:, None], something], dim=1)  # (spans, 1 + choices)
        return (F.cross_entropy(scores, labels, reduction="none") * counts).sum() / counts.sum()

    def closure() -> Tensor:
        optimizer.zero_grad()
        moved = sum(((one - start) ** 2).sum() for one, start in zip(fitted, began, strict=True))
        value = loss() + SHRINKAGE * moved
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    optimizer.zero_grad()
    with torch.no_grad():
        return float(loss())


@torch.no_grad()
def _answers(model: LinkingModel, parts: Iterable[dict[str, Tensor]]) -> list[Tensor]:
    """Return the encoder's answers about the spans of some batches, and the evidence about them."""
    found: list[list[Tensor]] = []
    training, spans = model.training, 0
    model.eval()
    for part in parts:
        facts = [part[name] for name in FACTS]
        found.append([*model.answered(**{name: one for name, one in part.items() if name not in FACTS}), *facts])
        spans += len(part["labels"])
        if spans >= ENOUGH:
            break
    model.train(training)
    most = max(candidates.shape[1] for _, candidates, *_ in found)
    columns = []
    for name, column in zip(("null", "candidates", *FACTS), zip(*found, strict=True), strict=True):
        wide = list(column)
        if name in ("candidates", "log_priors", "likeness", "traits"):  # (spans, choices), or (spans, choices, TRAITS)
            fill = -torch.inf if name == "log_priors" else 0.0
            wide = [F.pad(one, (0,) * 2 * (one.ndim - 2) + (0, most - one.shape[1]), value=fill) for one in column]
        columns.append(torch.cat(wide))
    return columns
