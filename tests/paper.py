"""Figures of the paper that several tests check against."""

# Native languages of French-speaking actors according to plain BERT: the first column of the paper's first table.
NATIVE_LANGUAGES = {
    "Jean Marais": "French",
    "Daniel Ceccaldi": "Italian",
    "Orane Demazis": "Albanian",
    "Sylvia Lopez": "Spanish",
    "Annick Alane": "English",
}
