"""The relation between two entities in a sentence (Section 4.2 of the paper)."""
