"""Tiny encoders and the store they are fitted to, made once a session."""

import pytest
import torch
from architectures import ARCHITECTURES, Architecture, store

from ebert import EBert, Vectors


class Tiny:
    """Makes the folders and models of architectures when they are first asked for."""

    def __init__(self, path, vectors: Vectors) -> None:
        self._path, self.vectors = path, vectors
        self._models: dict[str, EBert] = {}

    def folder(self, name: str) -> str:
        folder = self._path / name
        return str(folder if folder.exists() else ARCHITECTURES[name].save(folder))

    def model(self, name: str) -> EBert:
        if name not in self._models:
            self._models[name] = EBert.fit(self.folder(name), self.vectors)
        return self._models[name]


@pytest.fixture(autouse=True)
def one_thread(request):
    """Tiny models are slower on several threads than on one, above all beside other work."""
    threads = torch.get_num_threads()
    if "tiny" in request.fixturenames:
        torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Tiny:
    path = tmp_path_factory.mktemp("architectures")
    return Tiny(path, store(path / "store"))


@pytest.fixture(scope="session", params=ARCHITECTURES)
def architecture(request) -> Architecture:
    return ARCHITECTURES[request.param]


# How a text is cut depends on the tokenizer alone, and these have one that an architecture before them has.
SAME_TOKENIZER = ("distilbert", "electra", "deberta-v3")


@pytest.fixture(scope="session", params=[name for name in ARCHITECTURES if name not in SAME_TOKENIZER])
def tokenizer_of(request) -> Architecture:
    """One architecture for every tokenizer in turn."""
    return ARCHITECTURES[request.param]


@pytest.fixture(scope="session")
def model(architecture: Architecture, tiny: Tiny) -> EBert:
    """A fitted model of every architecture in turn."""
    return tiny.model(architecture.name)
