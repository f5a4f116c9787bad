"""What a model says about an entity, with its vector and without."""

import pytest

from ebert import EBert, EbertError
from ebert.errors import UnknownNameError
from ebert.model.check import TEMPLATES, check_entity


def test_before_is_plain_bert_and_after_is_the_entity_beside_its_name(tiny):
    model = tiny.model("bert")
    checked = check_entity(model, "Jean Marais", top=4)
    assert [one.template for one in checked] == list(TEMPLATES)
    for one in checked:
        text = one.template.format("[[Jean Marais]]")
        for answers, mode in ((one.before, "bert"), (one.after, "concat")):
            wanted = model.fill(text, mode=mode, top=4).answers
            assert [a.token for a in answers] == [a.token for a in wanted]
            assert [a.probability for a in answers] == pytest.approx([a.probability for a in wanted], abs=1e-5)
        assert one.before != one.after


def test_what_is_in_brackets_is_not_part_of_the_name(tiny):
    model = tiny.model("bert")
    film = check_entity(model, 'The "Best" (film)')[0]
    assert [a.token for a in film.after] == [
        a.token for a in model.fill('[[The "Best" (film)|The "Best"]] is a [MASK].', top=3).answers
    ]
    assert [a.token for a in film.before] == [
        a.token for a in model.fill('The "Best" is a [MASK].', mode="bert", top=3).answers
    ]


def test_any_name_of_the_entity_will_do(tiny):
    model = tiny.model("bert")
    assert check_entity(model, "Marais") == check_entity(model, "Jean Marais")


def test_what_cannot_be_checked(tiny):
    model = tiny.model("bert")
    with pytest.raises(UnknownNameError, match="nearest titles: 'Jean Marais'"):
        check_entity(model, "Jean Maris")
    with pytest.raises(EbertError, match="top is 0"):
        check_entity(model, "Paris", top=0)
    with pytest.raises(EbertError, match="no entity vectors"):
        check_entity(EBert(model._encoder), "Paris")


@pytest.mark.real
def test_the_real_bert_learns_who_sings_in_spanish():
    checked = {one.template: one for one in check_entity(EBert.from_pretrained("starter"), "Natalia Lafourcade")}
    language, kind = checked["The native language of {} is [MASK]."], checked["{} is a [MASK]."]
    assert (language.before[0].token, language.after[0].token) == ("French", "Spanish")
    assert language.after[0].probability > 2 * max(a.probability for a in language.before if a.token == "Spanish")
    assert (kind.before[0].token, kind.after[0].token) == ("writer", "singer")
