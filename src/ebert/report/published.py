"""The published figures of the paper's LAMA tables, and which of them belongs beside a column of ours."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath
from typing import Any

from ebert.report.document import data_file
from ebert.report.runs import Column

SIZES = {"bert-base-cased": "base", "bert-large-cased": "large"}
MODES = {"bert": "BERT", "concat": "E-BERT-concat", "replace": "E-BERT-replace"}
# Our names for the paper's models, in the order of its tables.
MODELS = {
    "BERT-base": "BERT base",
    "E-BERT-replace-base": "E-BERT replace base",
    "E-BERT-concat-base": "E-BERT concat base",
    "ERNIE": "ERNIE",
    "KnowBert": "KnowBert",
    "BERT-large": "BERT large",
    "E-BERT-replace-large": "E-BERT replace large",
    "E-BERT-concat-large": "E-BERT concat large",
    "K-Adapter": "K-Adapter",
}
GOOGLE_RE = ("date_of_birth", "place_of_birth", "place_of_death")


@cache
def figures() -> dict[str, Any]:
    """Read the published figures."""
    value: dict[str, Any] = json.loads(data_file("published.json"))
    return value


def covers(relations: Sequence[str]) -> bool:
    """Return whether these are all the relations of the paper, so that its means may stand beside theirs."""
    return set(figures()["relations"]) <= set(relations)


def means(name: str, relations: Sequence[str]) -> dict[str, float]:
    """Return the published mean Hits@1 by model, after a filter, over all or only some relations."""
    if covers(relations):
        value: dict[str, float] = figures()["mean hits@1"]["all questions"].get(name, {})
        return value
    by_filter = [figures()["relations"][key] for key in relations if key in figures()["relations"]]
    known = [found[name]["hits@1"] for found in by_filter if name in found]
    models = known[0] if known else {}
    return {model: round(sum(scores[model] for scores in known) / len(known), 4) for model in models}


def counterpart(column: Column) -> str | None:
    """Name the published model that a column repeats, if there is one."""
    size = SIZES.get(PurePath(column.run.encoder).name)
    if not column.run.is_lama or size is None or column.mode not in MODES:
        return None
    return f"{MODES[column.mode]}-{size}"


def mean(column: Column, name: str) -> float | None:
    """Return the published mean Hits@1 of a column's counterpart after a filter, over the relations of the run."""
    model = counterpart(column)
    return means(name, column.run.outcomes.relations).get(model) if model else None


def relation(model: str | None, key: str, name: str) -> float | None:
    """Return the published Hits@1 of a model on a relation after a filter."""
    found = figures()["relations"].get(key, {}).get(name)
    return None if found is None or model is None else found["hits@1"].get(model)


def questions(key: str, name: str) -> int | None:
    """Return how many questions of a relation remained in the paper after a filter."""
    found = figures()["relations"].get(key, {}).get(name)
    return None if found is None else int(found["questions"])


def change(column: Column, key: str) -> float | None:
    """Return the published change in Hits@1 on a relation against plain BERT of the same size."""
    ours, plain = (relation(counterpart(one), key, "all") for one in (column, Column(column.run, "bert")))
    return None if ours is None or plain is None else round(ours - plain, 4)


def label(key: str, *, is_lama: bool) -> str:
    """Name a relation for people: 'P103 native language'."""
    if not is_lama:
        return key
    name = figures()["labels"].get(key)
    return f"{key} {name}" if name else f"Google-RE {key.replace('_', ' ')}" if key in GOOGLE_RE else key
