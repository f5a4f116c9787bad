"""Options of building a corpus."""

from dataclasses import dataclass
from typing import Any

from ebert._options import Options, option
from ebert.errors import EbertError
from ebert.wikipedia import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusOptions(Options):
    """How dumps are read. All but `threads` and `keep_going` decide what the corpus holds."""

    threads: int | None = option(None, "Worker processes.  [default: one for each core]", low=1)
    lowercase: bool = option(False, "Convert to lower case and remove accents, as uncased models do.")
    namespaces: str = option(
        "0", "Numbers of the namespaces to read, separated by commas; articles are in 0.", metavar="TEXT"
    )
    tokeniser: str = option(tokens.DEFAULT, f"How text is split into words: {', '.join(tokens.TOKENISERS)}.")
    passages: bool = option(True, "Keep sentences about each page: 'ebert align --learn' needs them.")
    keep_going: bool = option(False, "Read as much as possible of a damaged dump.")

    def check(self) -> None:
        """Raise `EbertError` if a value cannot be used."""
        super(CorpusOptions, self).check()
        tokens.tokeniser(self.tokeniser)
        _ = self.numbers

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the namespaces to read."""
        try:
            return frozenset(int(number) for number in self.namespaces.split(","))
        except ValueError:
            raise EbertError(f"namespaces {self.namespaces!r} must be numbers separated by commas") from None

    def identity(self) -> dict[str, Any]:
        """Return everything that the corpus depends on."""
        return {
            "lowercase": self.lowercase,
            "namespaces": sorted(self.numbers),
            "tokeniser": self.tokeniser,
            "passages": self.passages,
        }
