"""When two fillings of masks count as the same: sums of float32 depend on where in memory the numbers are."""

from ebert.model.fill import Answer, Filled


def same(given: Filled, wanted: Filled, *, within: float = 1e-4) -> bool:
    """Whether answers are the same up to a difference of probabilities; near ties may come in another order."""
    told = [(one.passage, one.mode, one.missing) for one in (given, wanted)]
    return told[0] == told[1] and same_masks(given, wanted, within=within)


def same_masks(given: Filled, wanted: Filled, *, within: float = 1e-4) -> bool:
    """Whether answers are the same, whatever was asked."""
    return all(_near(*pair, within) for pair in zip(given.masks, wanted.masks, strict=True))


def _near(given: tuple[Answer, ...], wanted: tuple[Answer, ...], within: float) -> bool:
    differences = [abs(a.probability - b.probability) for a, b in zip(given, wanted, strict=True)]
    shared = {answer.token for answer in given} & {answer.token for answer in wanted}
    return max(differences) <= within and len(shared) >= len(given) - 1
