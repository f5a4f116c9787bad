"""Probing: what a masked language model knows, and what it guesses from a name (Section 4)."""
