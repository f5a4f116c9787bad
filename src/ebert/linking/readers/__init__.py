"""Readers of entity-linking data, one file a family of layouts, and of plain texts to link."""
