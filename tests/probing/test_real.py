"""With the real BERT: the paper's figures, where the data are at hand, and 8-bit inference."""

import os
from pathlib import Path

import pytest
import torch
from small_lama import rows

from ebert import EBert
from ebert.model.int8 import quantize
from ebert.probing import filters
from ebert.probing.lama import read_lama
from ebert.probing.options import ProbeOptions
from ebert.probing.questions import read_questions
from ebert.probing.run import probe

pytestmark = pytest.mark.real
LAMA = Path(os.environ.get("EBERT_LAMA") or Path(__file__).parents[2].parent / "shared" / "data" / "lama.tar.xz")
needs_lama = pytest.mark.skipif(not LAMA.exists(), reason=f"LAMA is not at {LAMA}; EBERT_LAMA says where it is")


@needs_lama
def test_p463_is_the_paper_s(bert, tmp_path):
    scores = probe(bert, read_lama(LAMA, relations=["P463"]), tmp_path / "run", options=ProbeOptions(modes=("bert",)))
    found = scores["modes"]["bert"]["all"]
    assert found["questions"] == 225
    assert found["relations"]["P463"]["hits@1"] == pytest.approx(67.1, abs=0.05)
    assert scores["modes"]["bert"]["string-match"]["questions"] == 225


@needs_lama
def test_the_person_name_filter_leaves_as_many_places_of_death_as_the_paper_s(bert, tmp_path):
    """Two thousand names are asked; the questions themselves are left to results/, all but a few."""
    asked = filters.with_persons(read_lama(LAMA, relations=["place_of_death"]).questions)
    assert len(asked) == 766
    windows = filters.guess_names(bert, filters.all_name_parts(asked))
    guesses = {part: tokens for window in windows for part, tokens in window.items()}
    assert sum(not check.dropped for check in filters.check_names(asked, guesses).values()) == 655


def test_own_questions_of_the_paper_s_table_1(bert, tmp_path):
    answers = {
        "Jean Marais": "French",
        "Daniel Ceccaldi": "Italian",
        "Orane Demazis": "Albanian",
        "Sylvia Lopez": "Spanish",
    }
    path = tmp_path / "own.jsonl"
    path.write_text("".join(
        f'{{"template": "The native language of [X] is [Y] .", "subject": "{name}", "answers": ["{answer}"]}}\n'
        for name, answer in answers.items()
    ))  # fmt: skip
    probe(bert, read_questions(path), tmp_path / "run")
    assert [row["modes"]["bert"]["rank"] for row in rows(tmp_path / "run" / "predictions.jsonl")] == [1] * 4


def test_eight_bits_answer_about_as_well():
    texts = {
        "The capital of France is [MASK] .": "Paris",
        "Rome is the capital of [MASK] .": "Italy",
        "The native language of Jean Marais is [MASK] .": "French",
    }
    exact = EBert.plain("bert-base-cased")
    before = [filled.answers[0] for filled in exact.fill(list(texts), mode="bert")]
    model = quantize(exact)
    layer = model.encoder.base_model.encoder.layer[0].intermediate.dense
    assert not isinstance(layer, torch.nn.Linear)
    after = [filled.answers[0] for filled in model.fill(list(texts), mode="bert")]
    assert [answer.token for answer in before] == [answer.token for answer in after] == list(texts.values())
    assert [answer.probability for answer in after] != [answer.probability for answer in before]
    assert [a.probability for a in after] == pytest.approx([b.probability for b in before], abs=0.1)
