"""Reading run folders of `ebert probe`: what was run, what happened to every question, what the questions were.

The big file, `predictions.jsonl`, is read as a stream: its ranks stay in memory as columns, its answers do not. Whoever
wants the answers of some questions reads it again (`Run.answers`).
"""

import json
import lzma
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io import compressed, files
from ebert.errors import EbertError
from ebert.probing.filters import FILTERS
from ebert.probing.metrics import DECIMALS, Outcomes, score

A_RUN = "a run of 'ebert probe'"
NOT_COVERED, NO_COUNT = -1, -2  # in place of how often an entity was linked
# Sums may come out a little differently on another machine, which can move the last decimal by one.
SLACK = 1.5 * 10**-DECIMALS
SHOWN = 20  # differences in a message


@dataclass(frozen=True, eq=False)  # two runs are the same if they are one: arrays have no single answer
class ProbeRun:
    """A probing run: `run.json` and the columns of its predictions."""

    folder: Path
    name: str  # distinct among the runs of a report
    info: Mapping[str, Any]
    ids: tuple[str, ...]
    outcomes: Outcomes
    count: NDArray[np.int64]  # (questions,) how often the entity was linked, or NOT_COVERED, or NO_COUNT
    notes: tuple[str, ...]  # what a reader of the report should know about the reading

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that were run."""
        return tuple(self.info["modes"])

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters that were asked for, the mildest first."""
        return tuple(name for name in FILTERS if name in self.info["filters"])

    @property
    def is_lama(self) -> bool:
        """Whether these are LAMA's questions, so that published figures may stand beside them."""
        return bool(self.info["benchmark"] == "lama")

    @property
    def complete(self) -> bool:
        """Whether the run came to its end."""
        return bool(self.info["complete"])

    @property
    def warning(self) -> str | None:
        """What keeps this run from being a result like others, in a few words."""
        said = []
        if not self.complete:
            said.append("incomplete")
        if self.info.get("limit") is not None:
            said.append(f"limit {self.info['limit']}")
        if self.info.get("oracle"):
            said.append("oracle")
        return ", ".join(said) or None

    @property
    def label(self) -> str:
        """The name, marked if the run needs a warning: every table and plot uses it."""
        return f"{self.name} ({self.warning})" if self.warning else self.name

    @property
    def encoder(self) -> str:
        """The name of the encoder."""
        return str(self.info["encoder"]["name"])

    def has(self, name: str) -> bool:
        """Return whether the run has a file, perhaps compressed."""
        return _find(self.folder, name) is not None

    def answers(self, wanted: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """Read the whole predictions of some questions, by id: only their lines are parsed."""
        lines = {number for number, one in enumerate(self.ids, 1) if one in wanted}
        return {row["id"]: row for row in _rows(self.folder, "predictions.jsonl", only=lines)}

    def questions(self) -> dict[str, Mapping[str, Any]]:
        """Read the questions, by id; empty if the run came without them."""
        return {row["id"]: row for row in _checked(self.folder, "questions.jsonl", ("subject", "text", "answers"))}

    def metrics(self) -> Mapping[str, Any]:
        """Read the scores as they were written."""
        path = _find(self.folder, "metrics.json") or self.folder / "metrics.json"
        return files.read_json(path, A_RUN)

    def names(self) -> list[Mapping[str, Any]]:
        """Read what the person-name filter found; empty if the run came without it."""
        return list(_checked(self.folder, "names.jsonl", ("parts", "dropped")))


@dataclass(frozen=True)
class Column:
    """One mode of one run: a column or row of most tables, a colour in the plots."""

    run: ProbeRun
    mode: str

    @property
    def label(self) -> str:
        """How tables and plots call it."""
        return f"{self.run.label} · {self.mode}"


def columns(runs: Sequence[ProbeRun]) -> list[Column]:
    """Return all modes of all runs."""
    return [Column(run, mode) for run in runs for mode in run.modes]


def read_runs(folders: Sequence[Path]) -> list[ProbeRun]:
    """Read run folders and give them distinct names."""
    if not folders:
        raise EbertError("there is no run to report; give a folder made by 'ebert probe'")
    found = [folder.resolve() for folder in folders]
    for number, folder in enumerate(found):
        if folder in found[:number]:
            raise EbertError(f"{folders[number]} is given twice")
    return [read_run(path, name) for path, name in zip(folders, distinct_names(found), strict=True)]


def read_run(folder: Path, name: str | None = None) -> ProbeRun:
    """Read one run folder."""
    if not folder.is_dir():
        raise EbertError(f"there is no run at {folder}")
    info = files.read_json(folder / "run.json", A_RUN)
    _check_info(folder, info)
    if _find(folder, "predictions.jsonl") is None:
        raise EbertError(f"{folder} is not {A_RUN}: it has no predictions.jsonl")
    ids: list[str] = []
    count: list[int] = []
    notes: list[str] = []

    def rows() -> Iterator[Mapping[str, Any]]:
        for row in _rows(folder, "predictions.jsonl", cut_short=not info["complete"], notes=notes):
            ids.append(row["id"])
            seen = row.get("count")
            count.append(NOT_COVERED if not row.get("covered") else NO_COUNT if seen is None else int(seen))
            yield row

    try:
        outcomes = Outcomes.read(rows(), info["modes"])
    except EbertError as error:
        raise EbertError(f"{folder}: {error}") from None
    if not ids:
        raise EbertError(f"{folder} holds no question yet; let 'ebert probe' go on with it")
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise EbertError(f"{folder}: the question {twice} is in predictions.jsonl twice; probe again")
    return ProbeRun(folder, name or folder.resolve().name, info, tuple(ids), outcomes, np.array(count), tuple(notes))


def _check_info(folder: Path, info: Mapping[str, Any]) -> None:
    """Raise `EbertError` if a run.json is of another kind or lacks what a report needs."""
    if info.get("kind") != "probe":
        raise EbertError(f"{folder} is not {A_RUN}: its run.json is of kind {info.get('kind')!r}")
    if info.get("format") != 1:
        raise EbertError(f"{folder} has format {info.get('format')!r}, this ebert reads format 1; update ebert")
    if not info.get("complete") and _find(folder, "predictions.jsonl") is None:
        raise EbertError(f"{folder} is not finished and has nothing to report yet; give the same command to go on")
    for name, kind in (("modes", list), ("filters", list), ("encoder", dict), ("complete", bool), ("benchmark", str)):
        if not isinstance(info.get(name), kind):
            raise EbertError(f"{folder / 'run.json'} is damaged: {name!r} is {info.get(name)!r}; probe again")
    if not info["modes"] or not all(isinstance(mode, str) for mode in info["modes"]) or "name" not in info["encoder"]:
        raise EbertError(f"{folder / 'run.json'} is damaged: it names no mode or no encoder; probe again")


def _find(folder: Path, name: str) -> Path | None:
    """Return the path of a file, which may be compressed."""
    return next((path for path in (folder / name, folder / f"{name}.xz") if path.is_file()), None)


def _checked(folder: Path, name: str, needed: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    for number, row in enumerate(_rows(folder, name), 1):
        for key in needed:
            if key not in row:
                raise EbertError(f"{folder / name}:{number} is damaged (no {key!r}); probe again")
        yield row


def _rows(
    folder: Path,
    name: str,
    *,
    only: Collection[int] | None = None,
    cut_short: bool = False,
    notes: list[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Read a file of JSON objects with an id each, one a line; all of them, or only some lines.

    The last line of a run that was killed may be `cut_short`; then it is left out, and the notes say so.
    """
    path = _find(folder, name)
    if path is None:
        return
    try:
        with compressed.bounded(path) as file:
            for number, line in enumerate(compressed.lines(file, path), 1):
                if only is not None and number not in only:
                    continue
                row = _parse(line)
                if row is None and cut_short and not line.endswith(b"\n"):
                    if notes is not None:
                        notes.append(f"line {number} of {path.name} was cut off and is left out")
                    return
                if row is None:
                    raise EbertError(f"{path}:{number} is damaged (not a JSON object with an id); probe again")
                yield row
    except (lzma.LZMAError, EOFError) as error:
        raise EbertError(f"{path} is damaged ({error}); restore the file") from None


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:  # not JSON, or not UTF-8
        return None
    return row if isinstance(row, dict) and isinstance(row.get("id"), str) else None


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Name folders by as much of the end of their paths as tells them apart."""
    names = []
    for folder in folders:
        length = 1
        same = [other for other in folders if other.name == folder.name]
        while sum(other.parts[-length:] == folder.parts[-length:] for other in same) > 1:
            length += 1
        names.append("/".join(folder.parts[-length:]))
    return names


def recompute(run: ProbeRun) -> tuple[dict[str, Any], list[str]]:
    """Compute the scores of a run from its predictions; also say where `metrics.json` and `run.json` differ."""
    scores = score(run.outcomes, run.filters)
    said = list(_counts(run))
    if not run.has("metrics.json") and not run.complete:
        return scores, said  # a run writes its metrics when it is through
    written = run.metrics()
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
    more = f"\n  and {len(said) - SHOWN:,} more" if len(said) > SHOWN else ""
    lines = "".join(f"\n  {line}" for line in said[:SHOWN])
    return (
        f"{folder / 'metrics.json'} does not agree with the predictions beside it; "
        f"probe again or restore the files:{lines}{more}"
    )


def differences(written: Any, computed: Any, where: str = "") -> Iterator[str]:
    """Yield where what is written differs from what the predictions give."""
    if isinstance(written, Mapping) and isinstance(computed, Mapping):
        for key in dict.fromkeys([*computed, *written]):
            place = f"{where}, {key}" if where else str(key)
            if key not in written:
                yield f"{place}: missing in metrics.json"
            elif key not in computed:
                yield f"{place}: in metrics.json, but the predictions give no such score"
            else:
                yield from differences(written[key], computed[key], place)
    elif not _same(written, computed):
        yield f"{where or 'modes'}: metrics.json has {written!r}, the predictions give {computed!r}"


def _same(written: Any, computed: Any) -> bool:
    if isinstance(written, bool) or not isinstance(written, int | float) or not isinstance(computed, int | float):
        return False
    if isinstance(computed, int):
        return written == computed
    return abs(written - computed) <= SLACK


def _counts(run: ProbeRun) -> Iterator[str]:
    """Compare the counts of `run.json`, which are final once a run is complete."""
    if not run.complete:
        return
    for name, found in (("questions", len(run.ids)), ("covered", int(run.outcomes.covered.sum()))):
        if run.info.get(name) != found:
            yield f"{name}: run.json has {run.info.get(name)!r}, the predictions give {found}"
