"""The service: puts what endpoints parsed into a queue and waits for the answer, with a time limit.

Nothing heavy is imported here, so that the service can answer that it is loading long before torch is there.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel

from ebert.errors import EbertError, UnknownNameError
from ebert.serve import schemas
from ebert.serve.batch_queue import BatchQueue, QueueClosedError, QueueFullError
from ebert.serve.metrics import Metrics
from ebert.serve.options import ServeOptions
from ebert.serve.schemas import Problem, encode
from ebert.text.passage import Mention, Passage

if TYPE_CHECKING:
    from ebert.linking.document import LinkedMention
    from ebert.linking.readers.nif import NifText
    from ebert.serve.work import LinkWork, Steps, TextToFill, TextToLink, Working

Item = TypeVar("Item")
Result = TypeVar("Result")

TEXTS = 64  # of one NIF file
MOMENT = 2.0  # seconds after which to ask a service again that is not ready


class Service:
    """Answers clients. Until `start` it is loading, after `stop` it is shutting down, and says so."""

    def __init__(self, options: ServeOptions) -> None:
        self.options, self.metrics = options, Metrics()
        self.stopping = False
        self._working: Working | None = None

    @property
    def why_not_ready(self) -> str | None:
        """What the service is doing instead of answering, or None."""
        if self.stopping:
            return "the service is shutting down"
        return None if self._working is not None else "the model is still loading"

    def start(self, working: "Working") -> None:
        """Take a loaded model and begin to answer."""
        self._working = working

    def stop(self) -> None:
        """Finish what was accepted."""
        self.stopping = True
        if self._working is not None:
            self._working.close()

    # Answers, as JSON

    async def look_up(
        self,
        make: "Callable[[Working], Any]",
        schema: type[BaseModel],
        *,
        text: str = "",
        count: int = 1,
        queue: Literal["quick", "slow"] = "quick",
    ) -> bytes:
        """Return what `make` returns, called in a thread of one of the queues for look-ups."""
        self._check(text, count)
        working = self._ready
        return await self._wait(getattr(working, queue), lambda: encode(make(working), schema))

    async def fill(self, asked: schemas.FillRequest) -> bytes:
        """Fill the masks of a text."""
        working, limits = self._ready, self.options.limits
        self._check(asked.text, asked.top)
        if asked.candidates is not None and len(asked.candidates) > limits.candidates:
            raise Problem(422, f"{len(asked.candidates):,} candidates are too many: at most {limits.candidates:,}")
        modes = list(dict.fromkeys(asked.modes)) if asked.modes else list(working.loaded.modes)

        def prepare() -> "TextToFill":
            if asked.mentions is None:
                passage = Passage.parse(asked.text)
            else:
                passage = Passage(asked.text, tuple(Mention(m.start, m.end, m.entity) for m in asked.mentions))
            return working.fill.prepare(passage, modes, top=asked.top, candidates=asked.candidates)

        end = self._end()
        job = await self._wait(working.quick, prepare, end=end)
        answers = await self._wait(working.filling, job, job.tokens, end=end)
        write = lambda: encode(working.fill.write(job, answers), schemas.FillAnswer)  # noqa: E731
        return await self._wait(working.quick, write, end=end, begun=True)

    async def link(self, asked: schemas.LinkRequest) -> bytes:
        """Find and link the entities of a text."""
        from ebert.linking.document import Document
        from ebert.serve.work import TextToLink

        self._check(asked.text, rounds=asked.rounds)
        working = self._ready
        work, queue = self._linker
        try:
            job = TextToLink(Document("1", asked.text), asked.rounds or work.rounds)
        except EbertError as error:
            raise Problem(422, str(error)) from None
        self._check_cost([job])
        end = self._end()
        steps = await self._wait(queue, job, job.tokens, end=end)
        how: dict[str, Any] = {"threshold": asked.threshold, "trace": asked.trace}
        write = lambda: encode(work.write(steps, **how), schemas.LinkAnswer)  # noqa: E731
        return await self._wait(working.quick, write, end=end, begun=True)

    async def nif(self, text: str) -> bytes:
        """Link the texts of a NIF file, or the mentions in it; return it with the entities."""
        from ebert.linking.readers.nif import read_asked, write_answer

        working = self._ready
        work, queue = self._linker
        end = self._end()
        asked = await self._wait(working.quick, lambda: read_asked(text), end=end)
        if not asked:
            raise Problem(422, "the request has no nif:Context with a nif:isString: there is no text to link")
        self._check("".join(one.text for one in asked))
        numbered = _numbered_jobs(asked, work.rounds)
        jobs = await self._wait(working.quick, lambda: list(islice(numbered, TEXTS + 1)), end=end)
        if len(jobs) > TEXTS:
            raise Problem(422, f"the request has more than {TEXTS} texts, or mentions in mentions; send one at a time")
        self._check_cost([job for _, job in jobs])
        linked = await _all(self._wait(queue, job, job.tokens, end=end) for _, job in jobs)

        def write() -> bytes:
            found: list[list[LinkedMention]] = [[] for _ in asked]
            for (number, job), steps in zip(jobs, linked, strict=True):
                found[number] += steps[-1].mentions if job.given else work.sure(steps[-1])
            return write_answer(zip(asked, found, strict=True)).encode("utf-8", "replace")

        return await self._wait(working.quick, write, end=end, begun=True)

    # Waiting in a queue

    @property
    def _ready(self) -> "Working":
        why = self.why_not_ready
        if why is not None or self._working is None:
            raise Problem(503, f"{why}; try again in a moment", retry_after=MOMENT)
        return self._working

    @property
    def _linker(self) -> "tuple[LinkWork, BatchQueue[TextToLink, Steps]]":
        working = self._ready
        if working.link is None or working.linking is None:
            why = "this service has no linker; start it with --linker LINKER, or with a model whose store has a "
            raise Problem(404, f"{why}mention table")
        return working.link, working.linking

    def _check(self, text: str, top: int = 1, rounds: int | None = None) -> None:
        limits = self.options.limits
        if len(text) > limits.characters:
            self.metrics.refused("text too long")
            why = f"the text has {len(text):,} characters; this service takes {limits.characters:,}: split it"
            raise Problem(413, why)
        if top > limits.top:
            raise Problem(422, f"{top:,} answers are too many: at most {limits.top:,}")
        if rounds is not None and rounds > limits.rounds:
            raise Problem(422, f"{rounds:,} rounds of refinement are too many: at most {limits.rounds:,}")

    def _check_cost(self, jobs: "Sequence[TextToLink]") -> None:
        """Refuse texts that would take too long."""
        most, cost = self.options.limits.cost, sum(len(job.document.text) * job.rounds for job in jobs)
        if cost > most:
            self.metrics.refused("text too long")
            rounds = jobs[0].rounds
            why = f"{cost // rounds:,} characters in {rounds:,} rounds of refinement cost {cost:,}"
            raise Problem(413, f"{why}; this service takes {most:,}: split the text, or ask for fewer rounds")

    def _end(self) -> float:
        """Return the deadline of a request that arrives now."""
        return asyncio.get_running_loop().time() + self.options.limits.seconds

    async def _wait(
        self,
        queue: BatchQueue[Item, Result],
        item: Item,
        cost: int = 1,
        *,
        end: float | None = None,
        begun: bool = False,
    ) -> Result:
        """Submit a job and wait for its answer until the deadline; if the client stops waiting, the job stops."""
        try:
            future = queue.submit(item, cost, begun=begun)
        except QueueFullError as error:
            self.metrics.refused("full")
            why = f"too many requests wait for an answer; try again in {error.seconds:.0f} s"
            raise Problem(503, why, retry_after=error.seconds) from None
        except QueueClosedError:
            raise Problem(503, "the service is shutting down; try again in a moment", retry_after=MOMENT) from None
        try:
            async with asyncio.timeout_at(self._end() if end is None else end):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            self.metrics.refused("took too long")
            why = f"no answer within {self.options.limits.seconds:g} s: the service is busy or the text is long"
            raise Problem(504, f"{why}; try again, or send less at a time") from None
        except UnknownNameError as error:
            raise Problem(404, str(error)) from None
        except EbertError as error:
            raise Problem(422, str(error)) from None


def _numbered_jobs(asked: "Sequence[NifText]", rounds: int) -> "Iterator[tuple[int, TextToLink]]":
    """Yield jobs for texts: one if the mentions are to be found, else one for each layer of those given."""
    from ebert.linking.document import Document
    from ebert.serve.work import TextToLink

    for number, one in enumerate(asked):
        if not one.mentions:
            yield number, TextToLink(Document(one.iri, one.text), rounds)
        for layer in one.layers():
            yield number, TextToLink(Document(one.iri, one.text, layer), rounds, given=True)


async def _all(waits: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Wait for all; if one fails, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(wait) for wait in waits]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
