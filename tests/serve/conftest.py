"""The tiny model and a service with it, once a session."""

import pytest
import serve_world
import torch


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    """The folder of the tiny model."""
    return serve_world.write_model(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Tiny models are slower on several threads than on one, above all beside other work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def service(tiny_folder):
    """A service with the tiny model that many tests share."""
    with serve_world.live(serve_world.tiny(tiny_folder)) as service:
        yield service


@pytest.fixture
def client(service):
    """A client of it that has the token."""
    with service.client() as client:
        yield client
