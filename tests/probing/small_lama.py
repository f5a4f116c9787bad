"""A small LAMA, written for these tests, and the words of the encoder that is asked."""

import json
from pathlib import Path

WORDS = [
    "The", "capital", "of", "is", "in", "was", "born", "Paris", "Rome", "France", "Italy", "Peru", "Lima", "Jean",
    "Marais", "Anna", "Rossi", "a", "member", "speaks", "native", "language", "French", "Italian",
]  # fmt: skip
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, ".", "/", "(", ")", "##s", "##ian", "Peru", "##v"]
PIECES = list(dict.fromkeys(PIECES))

RELATIONS = [
    {"relation": "P36", "template": "The capital of [X] is [Y] ."},
    {"relation": "P103", "template": "The native language of [X] is [Y] ."},
    {"relation": "P1376", "template": "[Y] is in [X] ."},
]
ROWS = {
    "TREx/P36.jsonl": [
        ("a1", "France", "Paris", "Q142"),
        ("a2", "Italy", "Rome", "Q38"),
        ("a3", "Peru", "Lima", "Q419"),
    ],
    "TREx/P103.jsonl": [("b1", "Jean Marais", "French", "Q168359"), ("b2", "Anna Rossi", "Italian", None)],
    "TREx/P1376.jsonl": [("c1", "Paris France", "France", None)],
    "Google_RE/place_of_birth_test.jsonl": [("d1", "Anna Rossi", "Rome", None), ("d2", "Jean Marais", "Paris", None)],
}


def line(uuid: str, subject: str, answer: str, oracle: str | None, name: str) -> str:
    """A row as LAMA writes it."""
    key = "sub_uri" if name.startswith("TREx") else "sub_w"
    return json.dumps({"uuid": uuid, "sub_label": subject, "obj_label": answer, key: oracle, "evidences": [{"x": 1}]})


def write_lama(folder: Path) -> Path:
    """Write the small LAMA."""
    for name, rows in ROWS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(line(*row, name) + "\n" for row in rows), encoding="utf-8")
    (folder / "relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RELATIONS), encoding="utf-8")
    words = [
        "Paris",
        "Rome",
        "Lima",
        "France",
        "Italy",
        "French",
        "Italian",
        "Peru",
        "Quito",
    ]  # the last is no wordpiece
    (folder / "common_vocab_cased.txt").write_text("\n".join(words), encoding="utf-8")
    return folder


def rows(path: Path) -> list[dict]:
    """Read JSON lines."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
