"""How to ask: modes, filters, and the rest."""

from dataclasses import dataclass
from typing import Literal, get_args

from ebert.errors import EbertError
from ebert.model.modes import Mode, check

Filter = Literal["all", "string-match", "uhn"]
FILTERS: tuple[Filter, ...] = get_args(Filter)


@dataclass(frozen=True)
class ProbeOptions:
    """How to ask."""

    modes: tuple[Mode, ...] = ("bert",)
    filters: tuple[Filter, ...] = ("all", "string-match")
    limit: int | None = None
    """Questions of each relation, for a quick look."""
    oracle: bool = False
    """Take LAMA's Wikidata ids for subjects, where the store knows them."""
    precision: str = "float32"
    budget: int | None = None
    """Tokens in a batch; the default suits the device."""

    def __post_init__(self) -> None:
        for mode in self.modes:
            check(mode)
        for name in self.filters:
            if name not in FILTERS:
                raise EbertError(f"unknown filter {name!r}; choose from {', '.join(FILTERS)}")
        if not self.modes or not self.filters:
            raise EbertError("at least one mode and one filter are needed")
        if self.limit is not None and self.limit < 1:
            raise EbertError(f"the limit is {self.limit}; at least one question must be asked")
