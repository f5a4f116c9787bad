"""How to ask: the options of a probe. Neither torch nor numpy is imported."""

from dataclasses import dataclass
from typing import Literal

from ebert._options import Options, option
from ebert.errors import EbertError
from ebert.model.options import Mode, check_mode
from ebert.probing.filters import check_filters


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions(Options):
    """How to ask."""

    modes: tuple[Mode, ...] = option(("bert",), "Which sequences to ask with.", cli=False)
    filters: tuple[str, ...] = option(("all", "string-match"), "Which questions count.", cli=False)
    limit: int | None = option(None, "Maximum number of questions for each relation, for a quick look.", low=1)
    oracle: bool = option(False, "Find subjects by LAMA's Wikidata ids, if the store has them.")
    precision: Literal["float32", "float16", "bfloat16", "int8"] = option("float32", "The encoder's number type.")
    budget: int | None = option(None, "Maximum tokens in a batch.  [default: suits the device]", low=1)

    def check(self) -> None:
        """Raise `EbertError` if a value is not of its type or out of bounds, or if a mode or a filter is unknown."""
        Options.check(self)
        for mode in self.modes:
            check_mode(mode)
        check_filters(self.filters)
        if not self.modes or not self.filters:
            raise EbertError("at least one mode and one filter are needed")
