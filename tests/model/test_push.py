"""Pushing a model to a hub and loading it from there: a server on this machine that answers like it."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from architectures import ARCHITECTURES
from hub_server import hub

from ebert import AlignmentOptions, EBert, Vectors

NAME = "someone/small-ebert"
QUESTION = "The native language of [[Jean Marais]] is [MASK] ."


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs Python in a process that knows only the given hub, and has a cache that is as empty as ours."""
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))

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
            server, f"from ebert import EBert; EBert.from_pretrained({str(tmp_path / 'model')!r}).push_to_hub({NAME!r})"
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


# Pushes a model in each way, and prints whether there were vectors and an encoder on this disk and on the hub.
PUSHES = """
import itertools, shutil
from pathlib import Path
from ebert import EBert

model, copy, remote = EBert.from_pretrained({model!r}), Path({copy!r}), Path({remote!r})

def there(folder):
    found = (folder / "vectors" / "store.json").exists(), (folder / "encoder" / "config.json").exists()
    shutil.rmtree(folder, ignore_errors=True)
    return found

for vectors, encoder in itertools.product([False, True], repeat=2):
    asked = dict(include_vectors=vectors, include_encoder=encoder)
    model.save_pretrained(copy, push_to_hub=True, repo_id={name!r}, **asked)
    print("save", (vectors, encoder), there(copy), there(remote))
    model.push_to_hub({name!r}, **asked)
    print("push", (vectors, encoder), there(remote))
model.save_pretrained(copy, push_to_hub=True, repo_id={name!r})
print("default", there(copy), there(remote))
"""


def test_what_is_pushed_is_what_was_asked_for(tiny, tmp_path, run):
    EBert.fit(tiny.folder("bert"), Vectors.open(tiny.vectors.path)).save_pretrained(tmp_path / "model")
    places = {name: str(tmp_path / name) for name in ("model", "copy", "remote")}
    with hub(NAME, tmp_path / "remote") as server:
        printed = run(server, PUSHES.format(name=NAME, **places))
    choices = list(itertools.product([False, True], repeat=2))
    expected = [line for asked in choices for line in (f"save {asked} {asked} {asked}", f"push {asked} {asked}")]
    # By default a folder brings along what nobody else has: its store, and an encoder that is only a local folder.
    assert printed.splitlines() == [*expected, "default (True, True) (True, True)"]


def test_a_model_on_the_hub_can_be_pinned(tiny, tmp_path, run):
    for name, length in (("new", 2.0), ("old", 3.0)):
        model = EBert.fit(tiny.folder("bert"), Vectors.open(tiny.vectors.path), options=AlignmentOptions(length=length))
        model.save_pretrained(tmp_path / name, include_vectors=True, include_encoder=True)
    code = """
from ebert import EBert, EbertError
for name, options in ((NAME, {}), (f"{NAME}@v1", {}), (NAME, {"revision": "v1"}), (f"{NAME}@v1", {"revision": "v1"})):
    print(EBert.from_pretrained(name, **options).alignment.options.length)
try:
    EBert.from_pretrained(f"{NAME}@v1", revision="main")
except EbertError as error:
    print(error)
"""
    with hub(NAME, tmp_path / "new", old=tmp_path / "old") as server:
        *lengths, refused = run(server, f"NAME = {NAME!r}\n{code}").splitlines()
    assert lengths == ["2.0", "3.0", "3.0", "3.0"]
    assert refused == f"{NAME}@v1 has a revision, and revision='main' is another one; give one of them"


def test_a_model_remembers_the_revision_of_its_encoder(tiny, tmp_path, run):
    other = ARCHITECTURES["bert"].save(tmp_path / "other", seed=1)
    code = f"""
from ebert import EBert
EBert.fit("{NAME}@v1", {str(tiny.vectors.path)!r}).save_pretrained({str(tmp_path / "model")!r})
print(EBert.from_pretrained({str(tmp_path / "model")!r}).name)
"""
    with hub(NAME, other, old=Path(tiny.folder("bert"))) as server:
        assert run(server, code) == f"{NAME}@v1"
    encoder = json.loads((tmp_path / "model" / "ebert.json").read_text())["encoder"]
    assert encoder == {"name": f"{NAME}@v1", "fingerprint": tiny.model("bert")._encoder.fingerprint}
