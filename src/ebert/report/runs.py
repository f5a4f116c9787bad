"""Reading run folders of `ebert probe`: what was run, what happened to every question, what the questions were.

The big file, `predictions.jsonl`, is read as a stream: its ranks stay in memory as columns, its answers do not. To get
the answers of some questions, it is read again (`ProbeRun.answers`).
"""

import lzma
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import compressed, files
from ebert._io.records import parse_object
from ebert.errors import EbertError
from ebert.probing.filters import FILTERS
from ebert.probing.metrics import DECIMALS, Outcomes, score

A_RUN = "a run of 'ebert probe'"
NOT_COVERED, NO_COUNT = -1, -2  # in place of how often an entity was linked
# Sums may differ a little on another machine, which can change the last decimal by one.
SLACK = 1.5 * 10**-DECIMALS
SHOWN = 20  # differences in a message


@dataclass(frozen=True, eq=False)  # two runs are the same if they are one: arrays have no single answer
class ProbeRun:
    """A probing run: `run.json` and the columns of its predictions."""

    folder: Path
    name: str  # distinct among the runs of a report
    info: Mapping[str, Any]
    encoder: str
    modes: tuple[str, ...]
    filters: tuple[str, ...]  # the mildest first
    is_lama: bool  # so that published figures may stand beside it
    complete: bool
    ids: tuple[str, ...]
    outcomes: Outcomes
    count: NDArray[np.int64]  # (questions,) how often the entity was linked, or NOT_COVERED, or NO_COUNT
    notes: tuple[str, ...]  # what a reader of the report should know about the reading

    @property
    def warning(self) -> str:
        """Why this run is not an ordinary result, in a few words; empty if it is one."""
        limit, oracle = self.info.get("limit"), self.info.get("oracle")
        facts = {"incomplete": not self.complete, f"limit {limit}": limit is not None, "oracle": oracle}
        return ", ".join(words for words, is_so in facts.items() if is_so)

    @property
    def label(self) -> str:
        """The name, marked if the run needs a warning: every table and plot uses it."""
        return f"{self.name} ({self.warning})" if self.warning else self.name

    def has(self, name: str) -> bool:
        """Return whether the run has a file, perhaps compressed."""
        return _find(self.folder, name) is not None

    def answers(self, wanted: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """Read the whole predictions of some questions, by id: only their lines are parsed."""
        lines = {number for number, one in enumerate(self.ids, 1) if one in wanted}
        return {row["id"]: row for row in _rows(self.folder, "predictions.jsonl", only=lines)}

    def questions(self) -> dict[str, Mapping[str, Any]]:
        """Read the questions, by id; empty if the run came without them."""
        return {row["id"]: row for row in _rows(self.folder, "questions.jsonl", "subject", "text", "answers")}

    def names(self) -> dict[str, Mapping[str, Any]]:
        """Read what the person-name filter found, by question; empty if the run came without it."""
        return {row["id"]: row for row in _rows(self.folder, "names.jsonl", "parts", "dropped")}


@dataclass(frozen=True)
class Column:
    """One mode of one run: a column or row of most tables, a colour in the plots."""

    run: ProbeRun
    mode: str

    @property
    def label(self) -> str:
        """How tables and plots call it."""
        return f"{self.run.label} · {self.mode}"


def read_runs(folders: Sequence[Path]) -> list[ProbeRun]:
    """Read run folders and give them distinct names."""
    if not folders:
        raise EbertError("there is no run to report; give a folder made by 'ebert probe'")
    return [read_run(folder, name) for folder, name in zip(folders, distinct_names(folders), strict=True)]


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Name folders by the shortest path ends that tell them apart. Raise `EbertError` if a folder is there twice.

    >>> distinct_names([Path("/a/lama"), Path("/b/lama"), Path("/b/other")])
    ['a/lama', 'b/lama', 'other']
    """
    names = []
    places = [folder.resolve().parts for folder in folders]
    for folder, parts in zip(folders, places, strict=True):
        if places.count(parts) > 1:
            raise EbertError(f"{folder} is given twice; give every run once")
        length = 1
        while sum(other[-length:] == parts[-length:] for other in places) > 1:
            length += 1
        names.append("/".join(parts[-length:]))
    return names


def read_run(folder: Path, name: str | None = None) -> ProbeRun:
    """Read one run folder."""
    if not folder.is_dir():
        raise EbertError(f"there is no run at {folder}")
    info = files.read_json(folder / "run.json", A_RUN)
    _check_info(folder, info)
    ids: list[str] = []
    count: list[int] = []
    notes: list[str] = []

    def rows() -> Iterator[Mapping[str, Any]]:
        for row in _rows(folder, "predictions.jsonl", notes=None if info["complete"] else notes):
            ids.append(row["id"])
            seen = row.get("count")
            count.append(NOT_COVERED if not row.get("covered") else NO_COUNT if seen is None else int(seen))
            yield row

    try:
        outcomes = Outcomes.read(rows(), info["modes"])
    except EbertError as error:
        raise EbertError(f"{folder}: {error}") from None
    if not ids:
        raise EbertError(f"{folder} has no question yet; continue it with 'ebert probe'")
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise EbertError(f"{folder}: the question {twice} is in predictions.jsonl twice; probe again")
    return ProbeRun(
        folder, name or folder.resolve().name, info, str(info["encoder"]["name"]), tuple(info["modes"]),
        tuple(one for one in FILTERS if one in info["filters"]), info["benchmark"] == "lama", info["complete"],
        tuple(ids), outcomes, np.array(count), tuple(notes),
    )  # fmt: skip


def _check_info(folder: Path, info: Mapping[str, Any]) -> None:
    """Raise `EbertError` if a folder is of another kind or lacks what a report needs."""
    if info.get("kind") != "probe":
        raise EbertError(f"{folder} is not {A_RUN}: its run.json is of kind {info.get('kind')!r}")
    if info.get("format") != 1:
        raise EbertError(f"{folder} has format {info.get('format')!r}, this ebert reads format 1; update ebert")
    if _find(folder, "predictions.jsonl") is None:
        if not info.get("complete"):
            raise EbertError(f"{folder} is not finished and has nothing to report yet; run its command again")
        raise EbertError(f"{folder} is not {A_RUN}: it has no predictions.jsonl")
    for name, kind in (("modes", list), ("filters", list), ("encoder", dict), ("complete", bool), ("benchmark", str)):
        if not isinstance(info.get(name), kind):
            raise EbertError(f"{folder / 'run.json'} is damaged: {name!r} is {info.get(name)!r}; probe again")
    if not info["modes"] or not all(isinstance(mode, str) for mode in info["modes"]) or "name" not in info["encoder"]:
        raise EbertError(f"{folder / 'run.json'} is damaged: it names no mode or no encoder; probe again")


def _find(folder: Path, name: str) -> Path | None:
    """Return the path of a file, which may be compressed."""
    return next((path for path in (folder / name, folder / f"{name}.xz") if path.is_file()), None)


def _rows(
    folder: Path, name: str, *needed: str, only: Collection[int] | None = None, notes: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, each with an id and what else is `needed`; all, or those of `only` some lines.

    With `notes`, the last line may be cut off, as after a kill. Then it is left out, and the notes say so.
    """
    path = _find(folder, name)
    if path is None:
        return
    try:
        with compressed.bounded(path) as file:
            for number, line in enumerate(compressed.lines(file, path), 1):
                if only is not None and number not in only:
                    continue
                try:
                    row = parse_object(line)
                except EbertError as error:
                    if notes is None or line.endswith(b"\n"):
                        raise EbertError(f"{path}:{number} is damaged ({error}); probe again") from None
                    notes.append(f"line {number} of {path.name} was cut off and is left out")
                    return
                for key in ("id", *needed):
                    if key not in row or not isinstance(row["id"], str):
                        raise EbertError(f"{path}:{number} is damaged (no {key!r}); probe again")
                yield row
    except (lzma.LZMAError, EOFError) as error:
        raise EbertError(f"{path} is damaged ({error}); restore the file") from None


def recompute(run: ProbeRun) -> tuple[dict[str, Any], list[str]]:
    """Compute the scores of a run from its predictions; also say where `metrics.json` and `run.json` differ."""
    scores, said = score(run.outcomes, run.filters), []
    if run.complete:  # counts are final then
        for name, found in (("questions", len(run.ids)), ("covered", int(run.outcomes.covered.sum()))):
            if run.info.get(name) != found:
                said.append(f"{name}: run.json has {run.info.get(name)!r}, the predictions give {found}")
    path = _find(run.folder, "metrics.json")
    if path is None and not run.complete:
        return scores, said  # a run writes its metrics when it is through
    written = files.read_json(path or run.folder / "metrics.json", A_RUN)
    said += differences(written.get("modes"), scores)
    if written.get("limit") != run.info.get("limit"):
        said.append(f"limit: metrics.json has {written.get('limit')}, run.json {run.info.get('limit')}")
    return scores, said


def verified(run: ProbeRun) -> dict[str, Any]:
    """Compute the scores of a run; raise `EbertError` if its files say something else."""
    scores, said = recompute(run)
    if said:
        raise EbertError(complaint(run.folder, said))
    return scores


def complaint(folder: Path, said: list[str]) -> str:
    """Put differences into a message."""
    more = [f"and {len(said) - SHOWN:,} more"] if len(said) > SHOWN else []
    return "\n  ".join([
        f"{folder / 'metrics.json'} does not agree with the predictions beside it; probe again or restore the files:",
        *said[:SHOWN], *more,
    ])  # fmt: skip


def differences(written: Any, computed: Any, where: str = "") -> Iterator[str]:
    """Yield where the written scores differ from those of the predictions."""
    if isinstance(written, Mapping) and isinstance(computed, Mapping):
        for key in dict.fromkeys([*computed, *written]):
            place = f"{where}, {key}" if where else str(key)
            if key not in written:
                yield f"{place}: missing in metrics.json"
            elif key not in computed:
                yield f"{place}: in metrics.json, but the predictions give no such score"
            else:
                yield from differences(written[key], computed[key], place)
        return
    slack = SLACK if isinstance(computed, float) else 0
    if type(written) not in (int, float) or isinstance(computed, Mapping) or not abs(written - computed) <= slack:
        yield f"{where or 'modes'}: metrics.json has {written!r}, the predictions give {computed!r}"
