"""What tests share: the real BERT, loaded once."""

import pytest

from ebert import EBert
from ebert.model.encoder import Encoder


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The real bert-base-cased (`make test` fetches it)."""
    return Encoder.load("bert-base-cased")


@pytest.fixture(scope="session")
def bert(encoder) -> EBert:
    """The real BERT without entity vectors."""
    return EBert(encoder)
