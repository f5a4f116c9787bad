"""What is asked of the encoder, and what comes of it: against sums made by hand with transformers alone."""

import pytest
import torch
from small_lama import PIECES

from ebert import EBert
from ebert.model.options import MODES
from ebert.probing.ask import Asker, choose, make_plan, tokenize
from ebert.probing.questions import Question


def ask(model, questions, candidates, modes=("bert",), budget=64):
    """Ask everything; return the plan, and a function that returns the result of a question in a mode."""
    wanted = [(q, candidates.find_all(q.answers)) for q in questions]
    plan = make_plan(tokenize(model, wanted, modes, candidates.sizes), modes, budget=budget)
    rankings = {}
    for found in Asker(model, candidates).run(plan):
        rankings |= found
    return plan, lambda number, mode="bert": plan.result(rankings, number, mode, candidates.words)


def logits(model, text):
    """The logits at the masks of a text, by transformers alone."""
    inputs = model.tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        found = model.encoder(**inputs).logits[0]
    return found[inputs["input_ids"][0] == model.tokenizer.mask_token_id]


def question(number, text, *answers, subject="", entity=None):
    start = text.index(subject) if subject else 0
    return Question(str(number), "r", text, answers, subject, start, entity)


def test_rank_and_probability_are_those_among_the_candidates(small):
    candidates, _ = choose(small.tokenizer, ["Paris", "Rome", "Lima", "France", "Italy"])
    questions = [question(1, "The capital of Peru is [MASK] .", "Lima"), question(2, "[MASK] is in Italy", "Rome")]
    _, result = ask(small, questions, candidates)
    for number, asked in enumerate(questions):
        expected = logits(small, asked.text)[0, [PIECES.index(word) for word in candidates.words]].softmax(-1)
        order = expected.argsort(descending=True).tolist()
        rank, probability, top = result(number)
        assert rank == 1 + order.index(candidates.find(asked.answers[0]))
        assert probability == pytest.approx(expected[candidates.find(asked.answers[0])].item(), abs=2e-6)
        assert [word for word, _ in top] == [candidates.words[place] for place in order]
        assert sum(value for _, value in top) == pytest.approx(1, abs=1e-5)


def test_an_answer_of_several_pieces_scores_the_mean_of_its_log_probabilities(small):
    candidates, _ = choose(small.tokenizer, ["Lima", "Rome"], ["Peruvian", "Peru", "Paris"])
    assert candidates.words == ["Lima", "Rome", "Peru", "Paris", "Peruvian"]
    asked = question(1, "Lima is a [MASK] capital", "Peruvian")
    _, result = ask(small, [asked], candidates)
    one = logits(small, asked.text).log_softmax(-1)
    three = logits(small, "Lima is a [MASK] [MASK] [MASK] capital").log_softmax(-1)
    scores = [one[0, PIECES.index(word)].item() for word in candidates.words[:4]]
    pieces = ["Peru", "##v", "##ian"]
    scores.append(sum(three[n, PIECES.index(piece)].item() for n, piece in enumerate(pieces)) / 3)
    expected = torch.tensor(scores).softmax(-1)
    rank, probability, _ = result(0)
    assert probability == pytest.approx(expected[4].item(), abs=2e-6)
    assert rank == 1 + sum(score > scores[4] for score in scores)


def test_the_best_of_several_answers_counts(small):
    candidates, _ = choose(small.tokenizer, ["Paris", "Rome", "Lima"])
    text = "The capital of Peru is [MASK] ."
    questions = [question(n, text, *answers) for n, answers in enumerate([["Paris"], ["Rome"], ["Paris", "Rome"]])]
    plan, result = ask(small, questions, candidates)
    assert len(plan.units) == 1  # one text, asked once
    ranks = [result(number).rank for number in range(3)]
    assert ranks[2] == min(ranks[:2])
    assert ranks[0] != ranks[1]


def test_of_equal_scores_the_first_candidate_goes_first(small_folder):
    blank = EBert.plain(small_folder)
    for weight in blank.encoder.cls.parameters():
        weight.data.zero_()
    candidates, _ = choose(blank.tokenizer, ["Paris", "Rome", "Lima"])
    questions = [question(n, f"is {'a ' * n}[MASK]", word) for n, word in enumerate(candidates.words)]
    _, result = ask(blank, questions, candidates)
    assert [result(number).rank for number in range(3)] == [1, 2, 3]


def test_what_all_modes_have_in_common_is_asked_once(small):
    candidates, _ = choose(small.tokenizer, ["Paris", "Rome"])
    with_vector = question(1, "The capital of France is [MASK] .", "Paris", subject="France", entity="France")
    without = question(2, "The capital of Peru is [MASK] .", "Paris", subject="Peru")
    plan, result = ask(small, [with_vector, without], candidates, MODES)
    assert len(plan.units) == 4
    assert len({plan.unit_of[mode][0] for mode in MODES}) == 3
    assert len({plan.unit_of[mode][1] for mode in MODES}) == 1
    for mode in MODES:
        filled = small.fill(with_vector.passage(), mode=mode, candidates=["Paris", "Rome"], top=2)
        expected = {answer.token: answer.probability for answer in filled.answers}
        assert result(0, mode).probability == pytest.approx(expected["Paris"], abs=2e-6)


def test_batches_keep_to_their_budget(small):
    candidates, _ = choose(small.tokenizer, ["Paris", "Rome"])
    questions = [question(n, "is " * (n % 7) + f"a{'s' * n} [MASK]", "Paris") for n in range(30)]
    small_plan, one = ask(small, questions, candidates, budget=40)
    assert max(len(batch) * max(small_plan.units[n].length for n in batch) for batch in small_plan.batches) <= 40
    assert sorted(n for batch in small_plan.batches for n in batch) == list(range(len(small_plan.units)))
    large_plan, other = ask(small, questions, candidates, budget=10_000)
    assert len(large_plan.batches) == 1 < len(small_plan.batches)
    for number in range(len(questions)):
        assert one(number)[:2] == pytest.approx(other(number)[:2], abs=2e-6)
