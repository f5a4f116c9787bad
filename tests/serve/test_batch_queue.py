"""Lanes: jobs wait in line, run together, and none is lost, doubled or answered with another's result."""

import random
import threading
from concurrent.futures import CancelledError

import pytest

from ebert.serve.batch_queue import BatchQueue, QueueClosedError, QueueFullError, QueueOptions


class Held:
    """Doubles numbers, but only when it is let go; keeps what ran together."""

    def __init__(self) -> None:
        self.go, self.begun, self.batches = threading.Event(), threading.Event(), []

    def __call__(self, items, _pause):
        self.begun.set()
        self.go.wait()
        self.batches.append(list(items))
        return [2 * item for item in items]


def held_queue(**options):
    """A queue whose only thread is busy with a first job."""
    held = Held()
    queue = BatchQueue("test", held, QueueOptions(**options))
    first = queue.submit(0)
    held.begun.wait()
    return queue, held, first


def test_jobs_that_waited_run_together_within_the_budget_and_in_their_order():
    queue, held, first = held_queue(together=100, budget=10)
    futures = [queue.submit(number, cost) for number, cost in enumerate([4, 4, 4, 50, 1, 1, 1], 1)]
    held.go.set()
    assert [future.result() for future in [first, *futures]] == [0, 2, 4, 6, 8, 10, 12, 14]
    assert held.batches == [[0], [1, 2], [3], [4], [5, 6, 7]]  # one that costs more than the budget runs alone
    queue.close()


def test_no_more_jobs_run_together_than_allowed():
    queue, held, _ = held_queue(together=1, budget=1000)
    futures = [queue.submit(number) for number in (1, 2)]
    held.go.set()
    assert [future.result() for future in futures] == [2, 4]
    assert held.batches == [[0], [1], [2]]
    queue.close()


def test_a_window_lets_the_first_wait_for_others():
    held = Held()
    held.go.set()
    with BatchQueue(
        "test", held, QueueOptions(together=3, budget=100, window=1000)
    ) as queue:  # ends when there are three
        futures = [queue.submit(number) for number in (1, 2, 3)]
        assert [future.result() for future in futures] == [2, 4, 6]
    assert held.batches == [[1, 2, 3]]


def test_a_job_that_is_always_alone_does_not_wait():
    held = Held()
    held.go.set()
    with BatchQueue("test", held, QueueOptions(together=2, budget=100, window=1000)) as queue:
        for future in [queue.submit(1), queue.submit(2)]:
            future.result()
        first, second = queue.submit(3), queue.submit(4)  # there were two together before: they wait for each other
        assert (first.result(), second.result()) == (6, 8)
        queue.submit(5, 100).result()  # alone, and as dear as a whole batch
        for number in range(6, 10):
            assert queue.submit(number).result() == 2 * number
    assert held.batches == [[1, 2], [3, 4], [5], [6], [7], [8], [9]]


def test_a_window_ends_when_the_budget_is_reached_or_the_queue_is_closed():
    held = Held()
    held.go.set()
    queue = BatchQueue("test", held, QueueOptions(together=100, budget=5, window=1000))
    assert queue.submit(1, 5).result() == 2
    last = queue.submit(2, 1)
    queue.close()
    assert last.result() == 4


def test_one_job_too_many_is_refused_with_a_time_to_come_back():
    queue, held, _ = held_queue(waiting=2)
    futures = [queue.submit(1), queue.submit(2)]
    with pytest.raises(QueueFullError) as refused:
        queue.submit(3)
    assert refused.value.seconds >= 1
    assert len(queue) == 2
    held.go.set()
    assert [future.result() for future in futures] == [2, 4]
    queue.close()


def test_a_job_of_a_request_that_was_begun_is_taken_although_the_line_is_full():
    queue, held, _ = held_queue(waiting=1)
    futures = [queue.submit(1), queue.submit(2, begun=True), queue.submit(3, begun=True)]
    with pytest.raises(QueueFullError):
        queue.submit(4)
    held.go.set()
    assert [future.result() for future in futures] == [2, 4, 6]
    queue.close()


def test_a_job_that_would_wait_too_long_is_refused_at_once():
    queue, held, _ = held_queue(waiting=100, patience=5)
    queue._pace = 2.0  # seconds for what costs one
    kept = [queue.submit(1, 2), queue.submit(2, 1)]  # the second can expect to wait 4 seconds
    with pytest.raises(QueueFullError) as refused:
        queue.submit(3, 1)  # 6 seconds
    assert refused.value.seconds == 6
    held.go.set()
    assert [future.result() for future in kept] == [2, 4]
    assert queue.submit(4, 1000).result() == 8  # whoever need not wait is never refused
    queue.close()


def test_a_cancelled_job_makes_room_and_never_runs():
    queue, held, _ = held_queue(waiting=1)
    gone = queue.submit(1)
    assert gone.cancel()
    assert len(queue) == 0
    kept = queue.submit(2)
    held.go.set()
    assert kept.result() == 4
    queue.close()
    assert [1] not in held.batches
    with pytest.raises(CancelledError):
        gone.result()


class InParts:
    """Works on numbers in so many parts, one each time that it is let go; keeps the parts in their order."""

    def __init__(self) -> None:
        self.go, self.begun, self.parts = threading.Semaphore(0), threading.Semaphore(0), []

    def __call__(self, items, pause):
        for _ in range(max(items)):
            pause()
            self.begun.release()
            self.go.acquire()
            self.parts.append(list(items))
        return [2 * item for item in items]


def test_a_job_that_runs_is_stopped_when_nobody_waits_for_it():
    work = InParts()
    queue = BatchQueue("test", work)
    long, next_one = queue.submit(1000), queue.submit(1)
    work.begun.acquire()
    assert long.cancel()
    work.go.release(2)
    assert next_one.result() == 2
    assert work.parts == [[1000], [1]]  # the part that was under way, and nothing more of it
    queue.close()


def test_jobs_that_run_together_go_on_for_the_one_that_still_waits():
    work = InParts()
    with BatchQueue("test", work, QueueOptions(together=2, budget=10, window=1000)) as queue:
        gone, kept = queue.submit(3), queue.submit(2)
        work.begun.acquire()
        assert gone.cancel()
        work.go.release(3)
        assert kept.result() == 4
        assert gone.cancelled()
    assert work.parts == [[3, 2]] * 3


def test_short_jobs_need_not_wait_for_a_long_one():
    work = InParts()
    seen = []
    queue = BatchQueue("test", work, QueueOptions(together=10, budget=4), watch=seen.append)
    long = queue.submit(4, 20)
    work.begun.acquire()
    other, middle = queue.submit(4, 10), queue.submit(2, 9)
    short = [queue.submit(1, 2) for _ in range(3)]
    work.go.release(4 + 4 + 2 + 2)
    results = [future.result() for future in [*short, middle, long, other]]
    assert results == [2, 2, 2, 4, 8, 8]
    # After a part of the long one those that cost less than half; they in turn let shorter ones pass.
    assert work.parts == [[4], [1, 1], [2], [1], [2], *[[4]] * 3, *[[4]] * 4]
    assert sorted(ran.cost for ran in seen) == [2, 4, 9, 10, 20]
    queue.close()


def test_a_short_job_is_not_refused_because_long_ones_wait():
    queue, held, _ = held_queue(waiting=100, patience=5)
    queue._pace = 1.0
    long = queue.submit(1, 100)
    with pytest.raises(QueueFullError):
        queue.submit(2, 50)
    short = queue.submit(3, 49)
    held.go.set()
    assert (long.result(), short.result()) == (2, 6)
    queue.close()


def test_closing_finishes_what_waits_and_takes_no_more():
    queue, held, _ = held_queue(waiting=10)
    futures = [queue.submit(number) for number in range(5)]
    closing = threading.Thread(target=queue.close)
    closing.start()
    held.go.set()
    closing.join()
    assert [future.result() for future in futures] == [0, 2, 4, 6, 8]
    with pytest.raises(QueueClosedError):
        queue.submit(1)


def test_closing_waits_so_long_and_no_longer():
    queue, held, first = held_queue()
    queue.close(timeout=0.01)
    assert not first.done()
    held.go.set()
    assert first.result() == 0


def test_a_job_that_fails_fails_alone():
    def run(items, _pause):
        if any(item < 0 for item in items):
            raise ValueError(f"negative: {items}")
        return [2 * item for item in items]

    with BatchQueue("test", run, QueueOptions(together=10, budget=10, window=1000)) as queue:
        futures = [queue.submit(number) for number in (1, -1, 3, 4, 5, 6, 7, 8, 9, 10)]
        assert futures[0].result() == 2
        with pytest.raises(ValueError, match=r"negative: \[-1\]"):
            futures[1].result()
        assert [future.result() for future in futures[2:]] == [6, 8, 10, 12, 14, 16, 18, 20]


def test_errors_can_be_results_of_their_own():
    with BatchQueue("test", lambda items, _: [KeyError(item) for item in items]) as queue, pytest.raises(KeyError):
        queue.submit(1).result()


def test_what_ran_together_is_reported():
    seen = []
    held = Held()
    held.go.set()
    with BatchQueue("test", held, QueueOptions(together=2, budget=100, window=1000), watch=seen.append) as queue:
        for future in [queue.submit(1, 3), queue.submit(2, 4)]:
            future.result()
    (ran,) = seen
    assert (ran.jobs, ran.cost) == (2, 7)
    assert ran.seconds >= 0


def test_nothing_is_lost_or_mixed_up_among_many_threads():
    options = QueueOptions(threads=3, waiting=10_000, together=7, budget=20, window=0.0005)
    with BatchQueue("test", lambda items, _: [(item, item * item) for item in items], options) as queue:
        results: dict[int, tuple[int, int]] = {}

        def client(start: int) -> None:
            chance = random.Random(start)
            for number in range(start, start + 300):
                future = queue.submit(number, chance.randint(1, 9))
                if chance.random() < 0.1 and future.cancel():
                    results[number] = (number, number * number)  # as if it had been answered
                else:
                    results[number] = future.result()

        threads = [threading.Thread(target=client, args=(1000 * number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 2400
    assert all(result == (number, number * number) for number, result in results.items())
