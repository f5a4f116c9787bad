"""Pushing a model to a hub and loading it from there: a server on this machine that answers like it."""

import os
import subprocess
import sys

import pytest
from hub_server import hub

from ebert import EBert, Vectors

NAME = "someone/small-ebert"
QUESTION = "The native language of [[Jean Marais]] is [MASK] ."


@pytest.fixture
def run(tmp_path):
    """Runs Python in a process that knows only the given hub."""

    def run(server, code):
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        environment |= {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_none",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_a_pushed_model_brings_its_store_and_answers_elsewhere(tiny, tmp_path, run):
    model = EBert.fit(tiny.folder("bert"), Vectors.open(tiny.vectors.path))
    model.save_pretrained(tmp_path / "model")
    expected = model.fill(QUESTION, mode="replace").best
    (tmp_path / "remote").mkdir()
    with hub(NAME, tmp_path / "remote") as server:
        run(
            server,
            f"from ebert import EBert; EBert.from_pretrained({str(tmp_path / 'model')!r}).push_to_hub({NAME!r})",
        )
        there = {path.relative_to(tmp_path / "remote").as_posix() for path in (tmp_path / "remote").rglob("*.*")}
        assert {"ebert.json", "alignment.safetensors", "README.md", "vectors/store.json"} <= there
        assert "library_name: ebert" in (tmp_path / "remote" / "README.md").read_text()
        answer = run(
            server,
            "from ebert import EBert\n"
            f"model = EBert.from_pretrained({NAME!r})\n"
            "assert 'hf' in model.vectors.path.parts\n"
            f"print(model.fill({QUESTION!r}, mode='replace').best)",
        )
    assert answer == expected
