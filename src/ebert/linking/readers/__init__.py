"""Readers of entity-linking data, one file for each family of layouts, and of plain texts to link."""
