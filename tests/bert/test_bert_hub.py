"""get_bert from a hub: a server on this machine that answers like it."""

import contextlib
import io
import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from bundle_writer import PIECES
from hub_server import COMMIT, OLD, hub
from huggingface_hub import constants

from ebert.bert.get import Manifest, get_bert, verify
from ebert.bert.hub import choose
from ebert.bert.load import load_masked_lm
from ebert.errors import EbertError
from ebert.model.encoder import Encoder

NAME = "someone/small-bert"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A small random BERT with all the other things that repositories hold."""
    import torch
    from transformers import BertConfig, BertForPreTraining, BertTokenizer

    folder = tmp_path_factory.mktemp("repository")
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    model = BertForPreTraining(config)
    model.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    vocabulary = {piece: row for row, piece in enumerate(PIECES)}
    BertTokenizer(vocab=vocabulary, do_lower_case=False).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    for other in ("tf_model.h5", "flax_model.msgpack", "README.md", "onnx/model.onnx", "onnx/config.json", "evil.py"):
        (folder / other).parent.mkdir(exist_ok=True)
        (folder / other).write_text("not needed")
    return folder


@pytest.fixture
def get(tmp_path, monkeypatch):
    """Runs get_bert, which knows only the given hub and has no mvn."""
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/nothing")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))

    def run(server, name=NAME, **options):
        place = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", place)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", place + "/{repo_id}/resolve/{revision}/{filename}"
        )
        told, folder = io.StringIO(), None
        with contextlib.redirect_stderr(told):
            try:
                folder = get_bert(name, **options)
            except EbertError as error:
                told.write(str(error))
        return SimpleNamespace(folder=folder, told=told.getvalue())

    run.folder = tmp_path / "home" / "bert" / NAME.replace("/", "--")
    return run


def test_fetches_what_is_needed_and_keeps_it_as_it_is(repository, get):
    with hub(NAME, repository) as server:
        done = get(server)
        assert done.folder == get.folder, done.told
        asked = {path.split("/", 5)[-1] for path in server.asked if "/resolve/" in path}
        count = len(server.asked)
        again = get(server)
        assert (again.folder, again.told) == (done.folder, "")
        assert len(server.asked) == count  # from the cache
    assert asked == {"config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}
    assert {path.name for path in get.folder.iterdir()} == asked | {"ebert-encoder.json"}
    for name in asked:
        assert (get.folder / name).read_bytes() == (repository / name).read_bytes()
    assert verify(get.folder) == []
    origin = Manifest.read(get.folder)
    assert (origin.source, origin.artifact, origin.licence) == ("hub", f"{NAME}@{COMMIT}", "mit")
    assert origin.variables > 20
    assert origin.parameters > len(PIECES) * 16


def test_what_was_fetched_loads_without_a_word(repository, get):
    with hub(NAME, repository) as server:
        assert get(server).folder
    # In a process of its own, where transformers writes to a stderr that nobody has replaced.
    code = f"""
from pathlib import Path
from ebert.bert.load import load_masked_lm, load_tokenizer
folder = Path({str(get.folder)!r})
print(load_masked_lm(folder).config.hidden_size, load_tokenizer(folder).tokenize("Jean Marais"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # though the checkpoint has a pooler and a head for the next sentence, which are not used
    assert (done.stdout, done.stderr) == ("16 ['Jean', 'Mara', '##is']\n", "")


@pytest.fixture
def pickled(repository, tmp_path):
    """The same repository as it was before safetensors."""
    folder = shutil.copytree(repository, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    return folder


def test_a_pickle_is_taken_only_if_it_is_asked_for(repository, pickled, get):
    with hub(NAME, pickled) as server:
        done = get(server)
        assert "only pytorch_model.bin, which is a pickle" in done.told
        assert "ebert bert get NAME --allow-pickle" in done.told
        assert not any("/resolve/" in path for path in server.asked)
        assert not get.folder.exists()
        assert get(server, allow_pickle=True).folder
    assert not list(get.folder.glob("*.bin"))
    assert Manifest.read(get.folder).variables > 20
    assert verify(get.folder) == []
    ours, theirs = (load_masked_lm(folder).state_dict() for folder in (get.folder, repository))
    assert ours.keys() == theirs.keys()
    assert all(ours[name].equal(theirs[name]) for name in ours)


def test_a_folder_with_a_pickle_is_made_safe_on_request(pickled):
    with pytest.raises(EbertError, match=rf"ebert bert get {pickled} --allow-pickle"):
        Encoder.load(pickled)
    before = {path.name: path.read_bytes() for path in pickled.iterdir() if path.is_file()}
    assert get_bert(str(pickled), allow_pickle=True) == pickled
    after = {path.name: path.read_bytes() for path in pickled.iterdir() if path.is_file()}
    assert set(after) - set(before) == {"model.safetensors"}
    assert before.items() <= after.items()
    assert Encoder.load(pickled).width == 16


class Evil:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def test_a_program_in_a_pickle_is_not_run(pickled, get, tmp_path):
    import torch

    weights = torch.load(pickled / "pytorch_model.bin", weights_only=True)
    torch.save({**weights, "more": Evil(tmp_path / "evil")}, pickled / "pytorch_model.bin")
    with hub(NAME, pickled) as server:
        done = get(server, allow_pickle=True)
    assert "cannot be read as tensors alone" in done.told
    assert not (tmp_path / "evil").exists()
    assert [path.name for path in get.folder.parent.iterdir()] == [f".{get.folder.name}.lock"]
    with pytest.raises(EbertError, match="cannot be read as tensors alone"):
        get_bert(str(pickled), allow_pickle=True)
    assert not (tmp_path / "evil").exists()
    assert not list(pickled.glob("*.safetensors"))


@pytest.mark.parametrize("revision", ["v1", OLD])
def test_a_revision_can_be_pinned(repository, get, tmp_path, revision):
    old = shutil.copytree(repository, tmp_path / "old")
    (old / "vocab.txt").write_text("as it was")
    pinned = get.folder.with_name(f"{get.folder.name}@{revision}")
    with hub(NAME, repository, old=old) as server:
        done = get(server, f"{NAME}@{revision}")
        assert done.folder == pinned, done.told
        assert (pinned / "vocab.txt").read_text() == "as it was"
        assert Manifest.read(pinned).artifact == f"{NAME}@{OLD}"
        asked = len(server.asked)
        assert get(server, f"{NAME}@{revision}").folder == done.folder
        assert len(server.asked) == asked  # from the cache
        if revision == "v1":
            assert get(server).folder == get.folder
            assert Manifest.read(get.folder).artifact == f"{NAME}@{COMMIT}"
            done = get(server, f"{NAME}@v2")
            assert "RevisionNotFoundError" in done.told


def test_a_repository_that_is_not_there(repository, get):
    with hub(NAME, repository) as server:
        done = get(server, "someone/else")
    assert done.folder is None
    assert "- hub: RepositoryNotFoundError" in done.told
    assert "- maven: has only" in done.told


def test_after_the_hub_maven_is_asked(repository, get):
    with hub(NAME, repository) as server:
        done = get(server, "bert-base-cased")
    assert "trying the next source" in done.told
    assert "- maven: needs `mvn`" in done.told


def test_with_a_source_only_that_is_asked(repository, get):
    with hub(NAME, repository) as server:
        done = get(server, "bert-base-cased", source="hub")
        assert "- hub: RepositoryNotFoundError" in done.told
        assert "maven" not in done.told
        server.asked.clear()
        get(server, "bert-base-cased", source="maven")
        assert server.asked == []


def test_a_download_that_breaks_off_leaves_nothing(repository, get):
    with hub(NAME, repository, broken=["model.safetensors"]) as server:
        done = get(server)
    assert "the download broke off" in done.told
    assert [path.name for path in get.folder.parent.iterdir()] == [f".{get.folder.name}.lock"]


def test_which_files_are_chosen():
    sharded = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    files = ["config.json", "sentencepiece.bpe.model", "pytorch_model.bin", "model.fp16.safetensors", *sharded]
    assert choose(files) == ["config.json", "sentencepiece.bpe.model", *sharded]
    with pytest.raises(EbertError, match=r"no config\.json"):
        choose(["model.safetensors"])
    with pytest.raises(EbertError, match=r"neither model\.safetensors nor pytorch_model\.bin"):
        choose(["config.json", "tf_model.h5"])


def test_a_model_that_lacks_weights_is_not_loaded(repository, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(repository, tmp_path / "partial")
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.predictions.transform.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert json.loads((folder / "config.json").read_text())["model_type"] == "bert"
    with pytest.raises(EbertError, match=r"it lacks cls\.predictions\.transform\.dense\.weight"):
        load_masked_lm(folder)


def test_an_unreachable_hub_is_replaced_by_its_clients_cache(repository, get, tmp_path):
    """As when transformers has loaded the model before and the network is gone now."""
    cache = tmp_path / "hf" / "hub" / f"models--{NAME.replace('/', '--')}"
    shutil.copytree(repository, cache / "snapshots" / COMMIT)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(COMMIT)
    with hub(NAME, repository) as server:
        port = server.server_port
    server.server_port = port  # closed: nobody listens there any more
    done = get(server)
    assert done.folder == get.folder, done.told
    assert "taking someone/small-bert from its cache" in done.told
    assert verify(get.folder) == []
    assert Manifest.read(get.folder).artifact == f"{NAME}@{COMMIT}"
    assert load_masked_lm(get.folder)
