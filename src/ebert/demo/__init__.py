"""``ebert demo``: the real BERT answers questions with and without the entity vectors that come with ebert."""
