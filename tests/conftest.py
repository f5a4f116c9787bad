"""What tests share: the real BERT, loaded once, a small corpus, and a way to run commands as the shell does."""

import io
import json
import os
import signal
import sys
from typing import Any, NamedTuple

import corpora
import pytest

from ebert import EBert, cli
from ebert.model.encoder import Encoder
from ebert.wikipedia.corpus import Corpus

# Whoever runs the tests in the background has SIGINT ignored, which children inherit: here Ctrl-C counts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What takes longest is begun first, so that in the end no core waits for it; and of Ray there is one at a time.
LONG = ("test_ray_cluster.py", "test_kills.py", "page", "faults", "ray")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests; those of a file stay together, in their order."""
    items.sort(key=lambda item: min((LONG.index(part) for part in item.path.parts if part in LONG), default=len(LONG)))


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    """Let the processes of tests read what is compiled but write nothing of the kind: some have no room for files."""
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The real bert-base-cased (`make test` fetches it)."""
    return Encoder.load("bert-base-cased")


@pytest.fixture(scope="session")
def bert(encoder) -> EBert:
    """The real BERT without entity vectors."""
    return EBert(encoder)


@pytest.fixture
def world(tmp_path) -> Corpus:
    """A small corpus about five countries."""
    return corpora.world(tmp_path / "corpus")


class Done(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def ebert(monkeypatch, capsys):
    """Runs a command in this process, through the same door as the shell."""

    def run(*arguments: object, stdin: str | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["ebert", *map(str, arguments)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return Done(stop.value.code or 0, captured.out, captured.err)

    return run
