"""From subjects to entities: titles, redirects, labels and oracles."""

import pytest

from ebert import EbertError
from ebert.probing.ask import SubjectFinder, read_labels
from ebert.probing.questions import Question


def question(subject, *, entity=None, oracle=None):
    return Question("1", "P36", f"{subject} is [MASK]", ("x",), subject, 0, entity, oracle)


def found(finder, *args, **kwargs):
    subject = finder(question(*args, **kwargs))
    return subject and (subject.entity.title, subject.way)


def test_titles_go_before_redirects(store):
    finder = SubjectFinder(store)
    assert found(finder, "France") == ("France", "title")
    assert found(finder, "france") == ("France", "title")
    assert found(finder, "Republic of Peru") == ("France", "redirect")
    assert found(finder, "Peru") is None
    assert found(finder, "") is None


def test_the_lowest_id_of_a_label_wins(store, tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("id\tlabel\nQ142\tGaul\nQ38\tGaul\nQ142\tItaly\nQ9\tFrance\nQ142\tFrance\n")
    labels = read_labels(path)
    assert labels == {"Gaul": 38, "Italy": 142, "France": 9}
    finder = SubjectFinder(store, labels=labels)
    assert found(finder, "Gaul") == ("Italy", "label")
    assert found(finder, "Italy") == ("France", "label")  # the paper's rule knows no titles
    assert found(finder, "France") is None  # the lowest id has no vector
    assert found(finder, "Jean Marais") == ("Jean Marais", "title")  # no label is known


def test_oracles_only_on_request(store):
    assert found(SubjectFinder(store), "Somebody", oracle="Q168359") is None
    assert found(SubjectFinder(store, oracle=True), "Somebody", oracle="Q168359") == ("Jean Marais", "oracle")
    assert found(SubjectFinder(store, oracle=True), "France", oracle="Q99") == ("France", "title")


def test_an_entity_that_is_given_is_not_replaced_by_another(store):
    assert found(SubjectFinder(store), "France", entity="Italy") == ("Italy", "given")
    assert found(SubjectFinder(store), "France", entity="Zorblax") is None


@pytest.mark.parametrize("text", ["id\tlabel\nX\tParis\n", "id\tlabel\n", "label\nParis\n"])
def test_bad_labels(tmp_path, text):
    path = tmp_path / "labels.tsv"
    path.write_text(text)
    with pytest.raises(EbertError):
        read_labels(path)
