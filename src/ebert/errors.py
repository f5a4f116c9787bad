"""Errors in the input: the command line turns them into a message and exit code 2."""


class EbertError(ValueError):
    """Bad input. The message says what was wrong, where, and what to do."""


class UnknownNameError(EbertError, KeyError):
    """A title or word that the store has no vector for."""

    def __str__(self) -> str:
        # KeyError would print the repr of its argument
        return str(self.args[0])
