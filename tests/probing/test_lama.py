"""Reading LAMA: what is there, and what is wrong with it."""

import json
import shutil
import tarfile
import zipfile

import pytest

from ebert import EbertError
from ebert.probing.lama import read_lama
from ebert.probing.questions import reasons


def test_questions_of_t_rex_and_google_re(lama):
    read = read_lama(lama)
    assert [q.id for q in read.questions] == [
        "P36/a1", "P36/a2", "P36/a3", "P103/b1", "P103/b2", "P1376/c1", "place_of_birth/d1", "place_of_birth/d2",
    ]  # fmt: skip
    first = read.questions[0]
    assert first.text == "The capital of France is [MASK] ."
    assert first.text[first.start : first.start + len(first.subject)] == first.subject == "France"
    assert (first.answers, first.oracle, first.where, first.entity) == (("Paris",), "Q142", "TREx/P36.jsonl:1", None)
    assert read.questions[5].text == "[MASK] is in Paris France ."
    assert read.questions[6].text == "Anna Rossi was born in [MASK] ."
    assert read.questions[6].oracle is None
    assert read.vocabulary is not None
    assert read.vocabulary[-1] == "Quito"
    assert read.skipped == []


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        ("date_of_birth", "Anna Rossi (born [MASK])."),
        ("place_of_birth", "Anna Rossi was born in [MASK] ."),
        ("place_of_death", "Anna Rossi died in [MASK] ."),
    ],
)
def test_google_re_has_templates_of_its_own(lama, relation, text):
    source = lama / "Google_RE" / "place_of_birth_test.jsonl"
    if relation != "place_of_birth":
        source.rename(source.with_name(f"{relation}_test.jsonl"))
    assert read_lama(lama, relations=[relation]).questions[0].text == text


def test_a_folder_and_archives_read_alike(lama, tmp_path):
    expected = read_lama(lama)
    with tarfile.open(tmp_path / "lama.tar.xz", "w:xz") as archive:
        archive.add(lama, "lama")
    with zipfile.ZipFile(tmp_path / "lama.zip", "w") as archive:
        for file in sorted(lama.rglob("*")):
            archive.write(file, file.relative_to(lama))
    for name in ("lama.tar.xz", "lama.zip"):
        read = read_lama(tmp_path / name)
        assert read.questions == expected.questions
        assert read.hashes == expected.hashes


def test_some_relations_only(lama):
    read = read_lama(lama, relations=["P103", "P36"])
    assert {q.relation for q in read.questions} == {"P36", "P103"}
    assert set(read.hashes) == {"TREx/P36.jsonl", "TREx/P103.jsonl", "relations.jsonl", "common_vocab_cased.txt"}
    with pytest.raises(EbertError, match=r"has no relation P999; it has P36, P103, P1376, place_of_birth"):
        read_lama(lama, relations=["P36", "P999"])


def test_rows_that_cannot_be_used_are_listed(lama):
    path = lama / "TREx" / "P36.jsonl"
    good = path.read_bytes()
    path.write_bytes(
        b'{"broken\n' + good + b'[1]\n{"sub_label": "Peru"}\n{"obj_label": "Lima", "sub_label": " "}\n\xff\xfe\n\n'
    )
    read = read_lama(lama, relations=["P36"])
    assert [q.id for q in read.questions] == ["P36/a1", "P36/a2", "P36/a3"]
    assert [(row.where.rpartition(":")[2], row.reason) for row in read.skipped] == [
        ("1", "it is not JSON"),
        ("5", "it is not a JSON object but list"),
        ("6", "it has no answer (obj_label)"),
        ("7", "it has no subject (sub_label)"),
        ("8", "it is not JSON"),
    ]
    assert reasons(read.skipped)["it is not JSON"] == 2


def test_an_id_that_was_there_before_is_listed(lama):
    path = lama / "TREx" / "P36.jsonl"
    path.write_text(path.read_text().replace('"a2"', '"a1"'))
    read = read_lama(lama, relations=["P36"])
    assert [q.id for q in read.questions] == ["P36/a1", "P36/a3"]
    assert [(row.where, row.reason) for row in read.skipped] == [("TREx/P36.jsonl:2", "its id was there before")]


def test_empty_files_and_lines(lama):
    with (lama / "relations.jsonl").open("a") as file:
        file.write("\n")
    (lama / "TREx" / "P36.jsonl").write_text("")
    assert [row.reason for row in read_lama(lama).skipped] == ["the file is empty"]
    with pytest.raises(EbertError, match="the file is empty"):
        read_lama(lama, relations=["P36"])
    with pytest.raises(EbertError, match="no relation is named"):
        read_lama(lama, relations=[])


def test_a_vocabulary_that_is_not_utf_8(lama):
    (lama / "common_vocab_cased.txt").write_bytes(b"Paris\nK\xf6ln\n")
    with pytest.raises(EbertError, match="line 2: not UTF-8"):
        read_lama(lama)


def test_links_in_an_archive_are_no_files(lama, tmp_path):
    (lama / "TREx" / "P1.jsonl").symlink_to("nowhere")
    with tarfile.open(tmp_path / "lama.tar", "w") as archive:
        archive.add(lama, "lama")
    assert len(read_lama(tmp_path / "lama.tar").questions) == 8


def test_a_relation_without_a_template_is_listed(lama):
    shutil.copy(lama / "TREx" / "P36.jsonl", lama / "TREx" / "P9999.jsonl")
    read = read_lama(lama)
    assert len(read.questions) == 8
    why = "the relation P9999 cannot be asked: there is no template for it in relations.jsonl"
    assert reasons(read.skipped) == {why: 3}
    with pytest.raises(EbertError, match=r"no question of .* can be asked: TREx/P9999\.jsonl"):
        read_lama(lama, relations=["P9999"])


@pytest.mark.parametrize("template", ["The capital of [X] is nice .", "[Y] is [Y] of [X]", "The capital is [Y] ."])
def test_a_template_needs_both_slots_once(lama, template):
    (lama / "relations.jsonl").write_text(json.dumps({"relation": "P36", "template": template}))
    with pytest.raises(EbertError, match=r"needs one \[[XY]\]"):
        read_lama(lama, relations=["P36"])


def test_what_is_not_lama(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("hello")
    with pytest.raises(EbertError, match="is not LAMA"):
        read_lama(tmp_path / "empty")
    with pytest.raises(EbertError, match="cannot be read"):
        read_lama(tmp_path / "file")
    with pytest.raises(EbertError, match="does not exist"):
        read_lama(tmp_path / "nothing")


def test_a_truncated_archive(lama, tmp_path):
    with tarfile.open(tmp_path / "lama.tar.xz", "w:xz") as archive:
        archive.add(lama, "lama")
    data = (tmp_path / "lama.tar.xz").read_bytes()
    (tmp_path / "lama.tar.xz").write_bytes(data[: len(data) // 2])
    with pytest.raises(EbertError, match="cannot be read"):
        read_lama(tmp_path / "lama.tar.xz")


def test_two_copies_of_a_relation_are_refused(lama):
    (lama / "copy" / "TREx").mkdir(parents=True)
    shutil.copy(lama / "TREx" / "P36.jsonl", lama / "copy" / "TREx")
    with pytest.raises(EbertError, match="has the relation P36 twice"):
        read_lama(lama)
