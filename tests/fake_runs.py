"""Run folders as `ebert probe` makes them, with ranks by lot: BERT knows some things, and more with vectors."""

import json
import lzma
import random
from pathlib import Path

from ebert.probing.filters import FILTERS
from ebert.probing.metrics import metrics

# By relation: how often plain BERT is right, how often a vector helps, the share of substring answers.
LAMA = {
    "P17": (0.3, 0.6, 0.04), "P19": (0.2, 0.2, 0.01), "P27": (0.02, 0.1, 0.02), "P36": (0.6, 0.1, 0.25),
    "P101": (0.1, 0.4, 0.02), "P103": (0.7, 0.7, 0.0), "P138": (0.6, 0.0, 0.75), "P176": (0.85, 0.0, 0.81),
    "P264": (0.1, 0.3, 0.0), "P1412": (0.6, 0.4, 0.0), "place_of_birth": (0.15, 0.1, 0.0),
}  # fmt: skip
PERSONS = {"P19", "P27", "P103", "P1412", "place_of_birth"}
PEOPLE = ("Jean Marais", "Daniel Ceccaldi", "Orane Demazis", "Sylvia Lopez", "Annick Alane")
MODES = ("bert", "concat", "replace")
WORDS = ("French", "Italian", "Paris", "Rome", "Fiat", "Sony", "Asia", "Spanish", "Berlin", "jazz")


def make_run(
    folder,
    *,
    size=40,
    relations=LAMA,
    modes=MODES,
    filters=FILTERS,
    seed=0,
    benchmark="lama",
    encoder="bert-base-cased",
    limit=None,
    complete=True,
    questions=True,
    names=True,
    compressed=False,
    skill=1.0,
    covered=0.6,
    counts=True,
    **info,
):
    """Write a run; `skill` scales what vectors add. The same size gives the same questions, whatever the seed."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    fixed, chance = random.Random(1), random.Random(seed)
    rows, texts, parts = [], [], []
    for relation, (plain, gain, substring) in relations.items():
        for number in range(size):
            one = f"{relation}/{number:05d}"
            answer = fixed.choice(WORDS)
            subject = PEOPLE[number] if relation == "P103" and number < len(PEOPLE) else f"Subject {number}"
            known = fixed.random() < covered
            easy = fixed.random() < substring and "string-match" in filters
            seen = int(10 ** fixed.uniform(0, 4.5)) if known and counts else None
            ranks = [fixed.choice([None, None, 1, 2, 3]) for _ in subject.split()]
            given_away = relation in PERSONS and "uhn" in filters and any(ranks) and not easy
            answers = {}
            for mode in modes:
                right = 0.95 if easy else plain
                if mode != "bert" and known:
                    right = right * (0.3 if easy and mode == "replace" else 1) + gain * skill
                rank = 1 if chance.random() < right else int(1 + 10 ** chance.uniform(0, 3.5))
                if not known and "bert" in answers:
                    answers[mode] = answers["bert"]
                    continue
                top = [answer, *chance.sample([word for word in WORDS if word != answer], 4)]
                top = top if rank == 1 else top[1:]
                answers[mode] = {
                    "rank": rank,
                    "probability": round(0.6 / rank, 6),
                    "top": [[word, round(0.6 / place, 4)] for place, word in enumerate(top, 1)],
                }
            dropped = "string-match" if easy else "name" if given_away else None
            rows.append({
                "id": one, "relation": relation, "covered": known, "count": seen, "dropped": dropped, "modes": answers,
            })  # fmt: skip
            texts.append({
                "id": one, "relation": relation, "text": f"About {subject} one says [MASK] .", "subject": subject,
                "answers": [answer], "entity": subject if known else None,
            })  # fmt: skip
            if relation in PERSONS and not easy:
                parts.append({"id": one, "parts": ranks, "dropped": given_away})
    write_lines(folder / "predictions.jsonl", rows, compressed=compressed)
    if questions:
        write_lines(folder / "questions.jsonl", texts)
    if names and "uhn" in filters:
        write_lines(folder / "names.jsonl", parts)
    about = {
        "kind": "probe", "format": 1, "ebert": "0.1.0", "complete": complete,
        "command": f"ebert probe {benchmark} data --out {folder.name}", "benchmark": benchmark,
        "encoder": {"name": encoder, "fingerprint": "ab"},
        "model": {
            "name": "enwiki-ebert", "alignment": {},
            "vectors": {"path": "somewhere/enwiki-vectors", "fingerprint": "cd", "entities": 1000, "dimension": 300},
        },
        "modes": list(modes), "filters": list(filters), "relations": None, "limit": limit, "precision": "float32",
        "oracle": False, "data": {}, "candidates": 20970, "questions": len(rows),
        "covered": sum(row["covered"] for row in rows), "covered_by": {"title": 5, "redirect": 0},
        "not asked": {}, "seconds": 1234.5, "machine": "a machine", **info,
    }  # fmt: skip
    write_json(folder / "run.json", about)
    scores = {"modes": metrics(rows, modes, filters)}
    if complete:
        write_json(folder / "metrics.json", scores if limit is None else {"limit": limit, **scores})
    return folder


def write_lines(path, rows, *, compressed=False):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if compressed:
        path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))
