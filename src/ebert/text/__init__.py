"""Text that names entities: mentions, passages and the ``[[Title|surface]]`` markup."""

from ebert.text.passage import Mention, Passage

__all__ = ["Mention", "Passage"]
