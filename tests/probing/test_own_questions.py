"""Questions of one's own: the ways to write them, and what is wrong with others."""

import json

import pytest

from ebert import EbertError
from ebert.probing.filters import string_match
from ebert.probing.questions import Question, limited, read_questions


def write(tmp_path, *lines):
    path = tmp_path / "own.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_four_ways_to_ask_the_same(tmp_path):
    text = "The capital of France is [MASK]."
    path = write(
        tmp_path,
        {"text": "The capital of [[France]] is [MASK].", "answers": ["Paris"]},
        {"text": "The capital of [[French Republic|France]] is [MASK].", "answer": "Paris", "relation": "capital"},
        {
            "text": text,
            "subject": {"start": 15, "end": 21, "entity": "France"},
            "answers": ["Paris", "Lutetia", "Paris"],
        },
        {"template": "The capital of [X] is [Y].", "subject": "France", "id": "x", "answers": ["Paris"]},
    )
    read = read_questions(path)
    assert read.skipped == []
    assert [q.text for q in read.questions] == [text] * 4
    assert [(q.subject, q.start) for q in read.questions] == [("France", 15)] * 4
    assert [q.entity for q in read.questions] == ["France", "French Republic", "France", None]
    assert [q.relation for q in read.questions] == ["all", "capital", "all", "all"]
    assert [q.id for q in read.questions] == ["1", "2", "3", "x"]
    assert read.questions[2].answers == ("Paris", "Lutetia")


def test_a_question_needs_no_subject(tmp_path):
    question = read_questions(write(tmp_path, {"text": "Grass is [MASK].", "answers": ["green"]})).questions[0]
    assert (question.subject, question.passage().mentions) == ("", ())
    assert not string_match(question)


def test_masks_for_answers_of_several_pieces(tmp_path):
    path = write(tmp_path, {"text": "[MASK] is the capital of [[Peru]].", "answers": ["Lima"]})
    passage = read_questions(path).questions[0].passage(3)
    assert passage.text == "[MASK] [MASK] [MASK] is the capital of Peru."
    assert passage.surface(passage.mentions[0]) == "Peru"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ({"text": "a [MASK]"}, "no answers"),
        ({"text": "a [MASK]", "answers": []}, "no answers"),
        ({"text": "a [MASK]", "answers": [1]}, "no answers"),
        ({"text": "a", "answers": ["b"]}, r"the text has 0 \[MASK\]"),
        ({"text": "[MASK] [MASK]", "answers": ["b"]}, r"the text has 2 \[MASK\]"),
        ({"answers": ["b"]}, "neither a text nor a template"),
        ({"template": "[X] is", "subject": "a", "answers": ["b"]}, r"needs one \[Y\]"),
        ({"template": "[X] is [Y]", "answers": ["b"]}, "a template and a subject are strings"),
        ({"template": "[X] is [Y]", "subject": "a", "entity": 7, "answers": ["b"]}, "an entity is a title"),
        ({"text": "a [MASK]", "subject": "a", "answers": ["b"]}, "the subject is"),
        ({"text": "a [MASK]", "subject": {"start": 0, "end": 99}, "answers": ["b"]}, "not a part of the text"),
        ({"text": "a [MASK]", "subject": {"start": 2, "end": 8}, "answers": ["b"]}, "covers the mask"),
        ({"text": "[[A]] [[B]] [MASK]", "answers": ["b"]}, "marks several entities"),
        ({"text": "a [MASK]", "subject": {"start": True, "end": 2}, "answers": ["b"]}, "not a part of the text"),
        ({"text": "a [MASK]", "answers": ["b"], "relation": {}}, "a name or a number is needed"),
        ({"text": "a [MASK]", "answers": ["b"], "id": True}, "a name or a number is needed"),
        ({"text": "a [MASK]", "answers": ["b"], "ansers": 1}, "'ansers', which have no meaning here"),
    ],
)
def test_lines_that_are_no_questions_are_listed(tmp_path, line, reason):
    good = {"text": "a [MASK]", "answers": ["b"]}
    read = read_questions(write(tmp_path, good, line))
    assert len(read.questions) == 1
    assert read.skipped[0].where == "own.jsonl:2"
    with pytest.raises(EbertError, match=f"no question of .* can be asked: own.jsonl:1: .*{reason}"):
        read_questions(write(tmp_path, line))


def test_no_id_and_no_relation(tmp_path):
    question = read_questions(write(tmp_path, {"text": "a [MASK]", "answers": ["b"], "id": None, "relation": None}))
    assert [(q.id, q.relation) for q in question.questions] == [("1", "all")]


def test_an_id_occurs_once(tmp_path):
    question = {"text": "a [MASK]", "answers": ["b"], "id": "x"}
    assert [row.reason for row in read_questions(write(tmp_path, question, question)).skipped] == [
        "the id 'x' was there before"
    ]


def test_files_that_have_none(tmp_path):
    with pytest.raises(EbertError, match="it is empty"):
        read_questions(write(tmp_path))
    with pytest.raises(EbertError, match="is not a file"):
        read_questions(tmp_path)


def test_a_limit_takes_questions_of_the_whole_file_whatever_their_order():
    questions = [Question(f"{relation}{n}", relation, "[MASK]", ("a",)) for relation in "ab" for n in range(40)]
    kept = limited(questions, 5)
    assert [question.relation for question in kept] == ["a"] * 5 + ["b"] * 5
    assert kept == [question for question in questions if question in kept]
    assert max(int(question.id[1:]) for question in kept) >= 20  # not the first five
    assert {question.id for question in limited(questions[::-1], 5)} == {question.id for question in kept}
