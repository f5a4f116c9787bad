"""Texts to try, for the page and for those who look at the schema."""

EXAMPLES = [
    {
        "text": "The native language of [[Jean Marais]] is [MASK].",
        "note": "A French actor whose name BERT does not know.",
    },
    {"text": "[[Daniel Ceccaldi]] was born in [MASK].", "note": "An Italian-sounding name: BERT guesses by the name."},
]
