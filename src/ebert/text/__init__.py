"""Text that names entities: mentions, passages and the ``[[Title|surface]]`` markup."""
