"""Reading samples: FewRel's release with its wrong starts, one's own JSONL, and whatever is wrong with a file."""

import json
import os
import tarfile
from pathlib import Path

import pytest

from ebert import EbertError
from ebert.relations.data import Sample, check_labels, fixed_subset, labels_of, parse, read, split_path
from ebert.relations.data import SampleSpan as Span

FEWREL = Path(os.environ.get("EBERT_FEWREL") or Path(__file__).parents[2].parent / "shared" / "data" / "fewrel.tar.xz")

# Written for this test in the way of the release: words between blanks, and 1 for the start of the text.
RELEASE = [
    {"label": "P1", "text": "Oslo lies on the Oslofjord .", "ents": [["Q1", 17, 26, 0.5], ["Q2", 1, 4, 0.5]]},
    {"label": "P2", "text": '" Storm " was sung by Ann Lee .', "ents": [["Q3", 1, 9, 0.5], ["Q4", 22, 29, 0.5]]},
    {"label": "P1", "text": "A I and B are letters", "ents": [["Q5", 2, 3, 0.5], ["Q6", 8, 9, 0.5]]},
]


def begins_inside_a_word(sample: Sample, span: Span) -> bool:
    return span.start > 0 and not sample.text[span.start - 1].isspace()


def test_starts_of_the_release_are_put_right():
    samples = parse(json.dumps(RELEASE), "release")
    assert [[s.surface(span) for span in (s.subject, s.object)] for s in samples] == [
        ["Oslofjord", "Oslo"],
        ['" Storm "', "Ann Lee"],
        ["I", "B"],
    ]
    assert samples[0].object == Span(0, 4, "Q2")
    assert not any(begins_inside_a_word(s, span) for s in samples for span in (s.subject, s.object))


def test_a_file_with_right_starts_stays_as_it_is():
    rows = [*RELEASE, {"label": "P1", "text": "(Rome) is old", "ents": [["Q5", 1, 5, 1], ["Q6", 10, 13, 1]]}]
    rows.append({"label": "P1", "text": "Rome is old", "ents": [["Q5", 0, 4, 1], ["Q6", 8, 11, 1]]})
    samples = parse(json.dumps(rows), "other")
    assert samples[3].surface(samples[3].subject) == "Rome"
    assert samples[0].object.start == 1


def test_a_mention_after_a_bracket_stays_where_it_is():
    rows = [*RELEASE, {"label": "P1", "text": "(Rome) is old", "ents": [["Q5", 1, 5, 1], ["Q6", 10, 13, 1]]}]
    samples = parse(json.dumps(rows), "other")
    assert samples[3].surface(samples[3].subject) == "Rome"
    assert samples[0].object.start == 0


@pytest.mark.skipif(not FEWREL.exists(), reason="needs the FewRel data; say where it is with EBERT_FEWREL")
def test_the_whole_release(tmp_path):
    with tarfile.open(FEWREL) as tar:
        tar.extractall(tmp_path, filter="data")
    corrected = 0
    for split, count in (("train", 8000), ("dev", 16000), ("test", 16000)):
        samples = read(tmp_path / "fewrel" / f"{split}.json")
        assert len(samples) == count
        assert len(labels_of(samples, split)) == 80
        spans = [(sample, span) for sample in samples for span in (sample.subject, sample.object)]
        corrected += sum(span.start == 0 for _, span in spans)
        assert not any(begins_inside_a_word(*pair) for pair in spans)
        assert all(sample.surface(span) == sample.surface(span).strip() for sample, span in spans)
    assert corrected == 7453


def test_ones_own_lines():
    text = "\n".join(
        [
            '{"text": "Ann lives in Rome", "subject": [0, 3], "object": [13, 17, "Rome"], "label": "lives in"}',
            "",
            '{"text": "(Ann) hates Bob", "subject": {"start": 12, "end": 15, "entity": "Q5"}, "object": [1, 4]}',
        ]
    )
    one, other = parse(text, "own.jsonl")
    assert one == Sample("Ann lives in Rome", Span(0, 3), Span(13, 17, "Rome"), "lives in", "own.jsonl, line 1")
    assert (other.subject, other.object, other.label) == (Span(12, 15, "Q5"), Span(1, 4), None)


def line(**changes):
    row = {"text": "Ann lives in Rome", "subject": [0, 3], "object": [13, 17], "label": "x"} | changes
    return json.dumps(row)


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        (line(subject=[0, 30]), "line 2: the subject at 0:30 is not a span of the text, which has 17 characters"),
        (line(subject=[-1, 3]), "line 2: the subject at -1:3 is not a span"),
        (line(object=[5, 5]), "line 2: the object at 5:5 is not a span"),
        (line(subject=[0, 14]), "line 2: the subject at 0:14 and the object at 13:17 overlap"),
        (line(object=[0, 3]), "line 2: the subject at 0:3 and the object at 0:3 overlap"),
        (line(object=[3, 4]), "line 2: the object at 3:4 is blank"),
        (line(object=["13", 17]), r"line 2: the object must be \[start, end\]"),
        (line(object=None), r"line 2: the object must be \[start, end\]"),
        (line(object=[13, 17, 5]), "line 2: the object must name its entity by a title"),
        (line(object=[True, 17]), r"line 2: the object must be \[start, end\]"),
        (line(text=None), "line 2: it has no 'text'"),
        (line(label=7), "line 2: the label must be a name, not 7"),
        (line(label=" "), "line 2: the label must be a name"),
        (line(ents=[["Q1", 0, 3]]), "line 2: 'ents' must be subject and object"),
        ('{"text": "half', "line 2: it is not JSON"),
        ("5", "line 2: it is not a JSON object but int"),
        (line(text="Ann \ud800lives in Rome"), "line 2: the text has a broken character at 4"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(second, complaint):
    with pytest.raises(EbertError, match=complaint):
        parse(f"{line()}\n{second}\n", "own.jsonl")


def test_what_is_wrong_with_an_array():
    with pytest.raises(EbertError, match=r"x.json, line 2: it is not JSON"):
        parse('[{"text":\n oops}]', "x.json")
    with pytest.raises(EbertError, match=r"x.json, sample 2: a JSON object is expected"):
        parse(json.dumps([RELEASE[0], 5]), "x.json")
    bad = RELEASE[0] | {"ents": [["Q1", 17, 99, 0.5], ["Q2", 1, 4, 0.5]]}
    with pytest.raises(EbertError, match=r"x.json, sample 3: the subject at 17:99 is not a span"):
        parse(json.dumps([*RELEASE[:2], bad]), "x.json")


@pytest.mark.parametrize("text", ["", "\n \n", "[]", "\ufeff"])
def test_an_empty_file(tmp_path, text):
    (tmp_path / "train.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(EbertError, match=r"train.jsonl is empty"):
        read(tmp_path / "train.jsonl")


def test_files_that_are_not_there_or_not_text(tmp_path):
    with pytest.raises(EbertError, match="there is no file"):
        read(tmp_path / "train.json")
    (tmp_path / "train.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EbertError, match="is not UTF-8"):
        read(tmp_path / "train.json")
    with pytest.raises(EbertError, match=r"has no dev.json and no dev.jsonl"):
        split_path(tmp_path, "dev")
    with pytest.raises(EbertError, match="is not a folder"):
        split_path(tmp_path / "train.json", "dev")


def test_labels():
    samples = parse("\n".join([line(), line(label="y"), line(label=None)]), "own.jsonl")
    assert labels_of(samples[:2], "own.jsonl") == ["x", "y"]
    with pytest.raises(EbertError, match=r"own.jsonl, line 3: it has no label"):
        labels_of(samples, "own.jsonl")
    with pytest.raises(EbertError, match="one relation only"):
        labels_of(samples[:1], "own.jsonl")
    check_labels(samples[:2], ["x", "y"])
    with pytest.raises(EbertError, match="line 2: the relation 'y' has no training sample"):
        check_labels(samples[:2], ["x", "z"])
    with pytest.raises(EbertError, match="line 3: it has no label"):
        check_labels(samples, ["x", "y"])


def test_a_part_of_the_samples_is_even_and_always_the_same():
    samples = [Sample("a b", Span(0, 1), Span(2, 3), label, str(n)) for n, label in enumerate("xxxxyyyyzz")]
    assert [s.where for s in fixed_subset(samples, 6)] == ["0", "1", "4", "5", "8", "9"]
    assert [s.where for s in fixed_subset(samples, 7)] == ["0", "1", "2", "4", "5", "8", "9"]
    assert fixed_subset(samples, 10) == fixed_subset(samples, 99) == samples
