"""`ebert starter --build full`: from a dump to a linker, in one command that can be stopped anywhere."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import walks

from ebert import Linker, Vectors
from ebert.starter import recipe

STEPS = ["corpus", "trained-vectors", "first-table", "documents", "vectors", "model", "run"]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A dump and an encoder."""
    folder = tmp_path_factory.mktemp("given")
    walks.write_dump(folder / "dump.xml.bz2", 150)
    walks.write_bert(folder / "bert")
    (folder / "titles.txt").write_text("Walk 3\nWalk 5\n", "utf-8")
    return folder


def arguments(given, out, *more):
    return [
        "starter", "--build", "full", "--dump", given / "dump.xml.bz2", "--out", out, "--bert", given / "bert",
        "--leave-out", given / "titles.txt", "--documents", "24", "--held-out", "12", "--dim", "16", "--steps", "20",
        "--threads", "1", *more,
    ]  # fmt: skip


def times(folder):
    """When the last file of each complete step was written."""
    steps = recipe.steps(folder, [], recipe.FullOptions(), threads=1)
    made = ((step.folder, folder / step.folder / step.done) for step in steps)
    return {name: path.stat().st_mtime_ns for name, path in made if path.exists()}


def test_it_is_killed_and_fails_and_continues_and_links(ebert, given, tmp_path):
    out = tmp_path / "full"
    shell = [sys.executable, "-m", "ebert", *map(str, arguments(given, out))]
    with subprocess.Popen(shell, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 300
        while "trained-vectors" not in times(out) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    killed = times(out)
    assert "trained-vectors" in killed
    assert "model" not in killed

    (out / "model").write_text("in the way")
    done = ebert(*arguments(given, out))
    assert (done.code, done.out) == (2, "")
    assert "model is a file" in done.err
    failed = times(out)
    assert list(failed) == STEPS[:5]
    assert failed | killed == failed  # what was complete was not done again
    (out / "model").unlink()

    done = ebert(*arguments(given, out, "--json"))
    assert done.code == 0, done.err
    assert done.json == {"model": str(out / "linker"), "vectors": str(out / "linker" / "vectors")}
    assert list(times(out)) == STEPS
    assert times(out) | failed == times(out)
    documents = json.loads((out / "documents" / "documents.json").read_text("utf-8"))
    assert [documents["files"][name]["documents"] for name in ("train.jsonl", "held-out.jsonl")] == [24, 12]
    assert documents["left_out"] == ["Walk 3", "Walk 5"]
    with Vectors.open(out / "vectors") as store:
        assert len(store.info.made["mentions"]["left out"]) == 24 + 12 + 2
        assert (store.info.dtype, store.dimension) == ("float16", 16)

    (out / "linker").rename(tmp_path / "moved")  # with all that belongs to it
    linker = Linker.from_pretrained(tmp_path / "moved")
    assert linker.options.adapter
    assert {m.entity for m in linker("Marie Curie left Warsaw.").mentions} == {"Marie Curie", "Warsaw"}
    done = ebert("fill", "--model", tmp_path / "moved", "[[Marie Curie]] left [MASK].", "--json")
    assert done.code == 0, done.err
    (tmp_path / "moved").rename(out / "linker")

    complete = times(out)
    done = ebert(*arguments(given, out))
    assert (done.code, done.out, times(out)) == (0, f"{out / 'linker'}\n", complete)

    done = ebert(*arguments(given, out, "--documents", "7"))
    assert done.code == 2
    assert "documents was 24, is 7" in done.err
    (given / "other.txt").write_text("Walk 4\n", "utf-8")
    done = ebert(*arguments(given, out, "--leave-out", given / "other.txt"))
    assert done.code == 2
    assert "left out has changed" in done.err
    assert times(out) == complete


def test_overwriting_begins_again(ebert, given, tmp_path):
    """What another build has left is removed; files of the user stay. A file in the way ends it after one step."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus.parts").mkdir()
    (tmp_path / "linker").mkdir()
    (tmp_path / "linker" / "linker.json").write_text("{}")
    (tmp_path / "trained-vectors").write_text("in the way")
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "build.json").write_text('{"dim": 16}')
    done = ebert(*arguments(given, tmp_path))
    assert (done.code, "is a full set of something else" in done.err, "--overwrite" in done.err) == (2, True, True)
    assert (tmp_path / "linker").exists()
    done = ebert(*arguments(given, tmp_path, "--overwrite"))
    assert (done.code, "trained-vectors is a file" in done.err) == (2, True)
    kept = {"build.json", "corpus", "mine.txt", "trained-vectors"}
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == kept
    assert json.loads((tmp_path / "build.json").read_text("utf-8"))["documents"] == 24


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--dump", "nowhere.xml"], "there is no dump at nowhere.xml"),
        (["--dump", __file__], "is neither XML nor XML packed"),
        (["--bert", "./nowhere"], "nowhere is not the folder of an encoder"),
        (["--leave-out", "nowhere.txt"], "nowhere.txt"),
        (["--out", __file__], "is a file; choose another --out"),
        (["--out", str(Path(__file__).parent)], "contains something else (it has no build.json)"),
        (["--documents", "0"], "0 is not in the range x>=1"),
    ],
)
def test_bad_input_is_refused_at_once(ebert, given, tmp_path, more, words):
    done = ebert(*arguments(given, tmp_path / "full", *more))
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert not (tmp_path / "full").exists()


def test_an_encoder_that_cannot_be_trained_to_link_is_refused(ebert, given, tmp_path):
    """Such as MPNet, which goes by relative positions: the last step would refuse it, after hours."""
    from transformers import BertTokenizer, MPNetConfig, MPNetForMaskedLM

    config = MPNetConfig(vocab_size=80, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    MPNetForMaskedLM(config).save_pretrained(tmp_path / "mpnet")
    BertTokenizer.from_pretrained(given / "bert").save_pretrained(tmp_path / "mpnet")
    done = ebert(*arguments(given, tmp_path / "full", "--bert", tmp_path / "mpnet"))
    assert done.code == 2
    assert "mpnet does not go by absolute positions alone" in done.err
    assert not (tmp_path / "full" / "build.json").exists()


def test_missing_packages_are_said_first(ebert, given, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    done = ebert(*arguments(given, tmp_path / "full"))
    assert done.code == 2
    assert "needs accelerate: pip install 'ebert[train,linking]'" in done.err


@pytest.mark.parametrize(
    ("given_options", "words"),
    [
        (["--out", "full"], "--out goes with --build full"),
        (["--documents", "5"], "--documents goes with --build full"),
        (["--overwrite"], "--overwrite goes with --build full"),
        (["--build", "full", "--out", "full"], "--build full needs --dump"),
        (["--build", "full", "--dump", "dump.xml"], "--build full needs --out"),
    ],
)
def test_options_that_do_not_go_together(ebert, given_options, words):
    done = ebert("starter", *given_options)
    assert (done.code, words in done.err) == (2, True)
