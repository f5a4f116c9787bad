"""The check that recomputes the metrics: `metrics.json` must be what the predictions say."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ebert.errors import EbertError
from ebert.probing.metrics import DECIMALS, score
from ebert.report.runs import Run

# Sums may come out a little differently on another machine, which can move the last decimal by one.
SLACK = 1.5 * 10**-DECIMALS
SHOWN = 20  # differences in a message


def recompute(run: Run) -> tuple[dict[str, Any], list[str]]:
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


def verified(run: Run) -> dict[str, Any]:
    """Compute the scores of a run and complain if its files say something else."""
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
    """Say where what is written differs from what the predictions give."""
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


def _counts(run: Run) -> Iterator[str]:
    """Compare the counts of `run.json`, which are final once a run is complete."""
    if not run.complete:
        return
    for name, found in (("questions", len(run.ids)), ("covered", int(run.outcomes.covered.sum()))):
        if run.info.get(name) != found:
            yield f"{name}: run.json has {run.info.get(name)!r}, the predictions give {found}"
