"""Candidate sources: the spans of a text that may name an entity, and the entities that each may mean."""
