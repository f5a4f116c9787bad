"""A figure with the 95 % interval of a bootstrap; numpy is imported when one is computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED = 20  # of the draws, the same everywhere: a report made again says the same
INSIDE = (2.5, 97.5)  # the percentiles of a 95 % interval


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure in percent, or a difference in points, with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether zero is outside the interval, so that the sign of the difference is clear."""
        return self.low > 0 or self.high < 0


def bounds(drawn: "Sequence[float] | NDArray[np.float64]") -> tuple[float, float]:
    """Return the two values between which 95 % of the resamples are."""
    import numpy as np

    low, high = np.percentile(np.asarray(drawn), INSIDE)
    return float(low), float(high)
