"""What tests share: the real BERT, loaded once, and a small corpus."""

import signal

import corpora
import pytest

from ebert import EBert
from ebert.model.encoder import Encoder
from ebert.wikipedia.corpus import Corpus

# Whoever runs the tests in the background has SIGINT ignored, which children inherit: here Ctrl-C counts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The real bert-base-cased (`make test` fetches it)."""
    return Encoder.load("bert-base-cased")


@pytest.fixture(scope="session")
def bert(encoder) -> EBert:
    """The real BERT without entity vectors."""
    return EBert(encoder)


@pytest.fixture
def world(tmp_path) -> Corpus:
    """A small corpus about five countries."""
    return corpora.world(tmp_path / "corpus")
