"""Attacks and accidents: foreign folders, kills, races, bombs, hostile requests.

A test here that can be tried many times takes the fixture `attack`:

    for number in attack("kill add-many", short=5, long=200):
        ...
        attack.check(kept == expected, f"try {number}: {expected - kept} of the additions are lost")

`make test` runs the short version. `make faults` runs the long one (EBERT_FAULTS=long) and writes what came of it to
results/faults.md. EBERT_FAULTS_MOST limits its tries, which the table shows.
"""

import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

LONG = os.environ.get("EBERT_FAULTS") == "long"
MOST = int(os.environ.get("EBERT_FAULTS_MOST", "1000000"))  # tries of an attack in the long version
ROOT = Path(__file__).parents[2]
ROWS: dict[str, list[dict[str, Any]]] = {}  # by test


@dataclass
class Tried:
    """One kind of attack: how often it was tried, and what went wrong."""

    name: str
    tries: int = 0
    survived: int = 0
    wrong: list[str] = field(default_factory=list)


class Attack:
    """Counts the tries of a test's attacks."""

    def __init__(self) -> None:
        self.rows: list[Tried] = []

    def __call__(self, name: str, *, short: int, long: int) -> Iterator[int]:
        """Count through the tries of an attack."""
        row = Tried(name)
        self.rows.append(row)
        for number in range(min(long, MOST) if LONG else short):
            row.tries += 1
            before = len(row.wrong)
            yield number
            row.survived += len(row.wrong) == before

    def check(self, good: bool, what: str) -> None:
        """Note what is lost or wrong after the try that is under way. The test goes on, and fails in the end."""
        if not good:
            self.rows[-1].wrong.append(what)


@pytest.fixture
def attack(request) -> Iterator[Attack]:
    """Counts tries and what was lost in them."""
    counted = Attack()
    yield counted
    request.node.user_properties.append(("attacks", [asdict(row) for row in counted.rows]))
    wrong = [f"{row.name}: {what}" for row in counted.rows for what in row.wrong]
    assert not wrong, "\n".join(wrong[:20])


def pytest_runtest_logreport(report) -> None:
    """Write the table of the long version, as far as it has come. xdist brings the reports of all processes here."""
    found = dict(report.user_properties).get("attacks")
    if not LONG or report.when != "teardown" or not found or "PYTEST_XDIST_WORKER" in os.environ:
        return
    ROWS[report.nodeid] = found
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    rows = [row for test in sorted(ROWS) for row in ROWS[test]]
    lines = [
        "# Attacks and accidents",
        "",
        f"`make faults` at commit {commit.strip()}, on {platform.machine()} with {os.cpu_count()} cores, "
        f"Python {platform.python_version()}.",
        "",
        "| attack | tries | survived | lost or wrong |",
        "|---|---:|---:|---:|",
        *(f"| {row['name']} | {row['tries']:,} | {row['survived']:,} | {len(row['wrong']):,} |" for row in rows),
    ]
    (ROOT / "results" / "faults.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
