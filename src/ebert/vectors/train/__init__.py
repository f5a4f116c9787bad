"""Training vectors of words and entities from a corpus."""
