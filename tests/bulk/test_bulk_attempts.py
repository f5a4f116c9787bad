"""Which row is to blame when workers die."""

import pytest

from ebert.bulk.worker import MOST, THROUGH, Attempts
from ebert.errors import EbertError


@pytest.fixture
def attempts(tmp_path):
    return Attempts(tmp_path / "000000")


def die(attempts, *rows, done=False):
    """Begin a shard and die at the last of these rows, or after all of them."""
    found = attempts.begin()
    for row in rows:
        attempts.note(row)
    if done:
        attempts.note(THROUGH)
    return found


def test_a_row_is_to_blame_if_workers_died_at_it_twice(attempts):
    assert die(attempts) == (False, set())
    assert die(attempts) == (False, set())
    assert die(attempts, 0, 1, 2) == (True, set())
    assert die(attempts, 0, 1) == (True, set())  # another one: the machine may be at fault
    assert die(attempts, 0, 1, 2) == (True, set())
    assert die(attempts, 0, 1) == (True, {2})
    assert attempts.begin() == (True, {1, 2})
    attempts.end()
    assert attempts.begin() == (False, set())


def test_no_row_is_to_blame_for_what_comes_after_all_of_them(attempts):
    for _ in range(5):
        assert die(attempts, *((0, 1) if attempts.path.exists() else ()), done=True)[1] == set()


def test_there_is_an_end_to_it(attempts):
    for _ in range(MOST):
        die(attempts)
    with pytest.raises(EbertError, match=f"workers died {MOST} times in shard 000000"):
        attempts.begin()
