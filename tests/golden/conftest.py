"""Golden tests: what ebert does, frozen, so that it can be written anew.

They go through the public surface only (commands, public names, HTTP). What they compare with lies in `data`, and is
written anew, after a change that is meant, by

    EBERT_GOLDEN=write python -m pytest tests/golden

EBERT_GOLDEN=all also runs the jobs of test_golden_bulk.py, which take longer, and writes nothing.
Look at the difference (`git diff tests/golden/data`) before committing it. `data/v0.1` and `data/v0.2` were written by
old code (see `golden_old_write.py`) and are never written anew.
"""

import pytest
from golden_world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The tiny world, with its folder as the current one."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("golden")
        patch.chdir(root)
        yield World(root)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Tiny models are slower on several threads than on one, above all beside other work."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
