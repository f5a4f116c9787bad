"""The service itself: takes what endpoints parsed, puts it in line, and waits for the answer.

Nothing heavy is imported here, so that the service answers, that it is loading, long before torch is there.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from ebert.errors import EbertError, UnknownNameError
from ebert.serve import shapes
from ebert.serve.encoding import encode
from ebert.serve.lane import ClosedError, FullError, Lane
from ebert.serve.metrics import Metrics
from ebert.serve.options import ServeOptions
from ebert.serve.problem import Problem
from ebert.text import Mention, Passage

if TYPE_CHECKING:
    from ebert.linking.document import LinkedMention
    from ebert.linking.readers.nif import Asked
    from ebert.model.modes import Mode
    from ebert.serve.filling import FillJob
    from ebert.serve.linking import LinkJob, LinkWork, Steps
    from ebert.serve.working import Working

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
        """Take a model that is loaded, and begin to answer."""
        self._working = working

    def stop(self) -> None:
        """Finish what was accepted."""
        self.stopping = True
        if self._working is not None:
            self._working.close()

    # Answers, as JSON

    async def info(self) -> bytes:
        """Describe the model."""
        working = self._ready
        return await self._wait(working.quick, lambda: encode(working.describe(self.options.limits), shapes.ModelInfo))

    async def fill(
        self,
        text: str,
        *,
        modes: "Sequence[Mode] | None",
        top: int,
        candidates: Sequence[str] | None,
        mentions: Sequence[Mention] | None,
    ) -> bytes:
        """Fill the masks of a text."""
        working, limits = self._ready, self.options.limits
        self._check(text, top)
        if candidates is not None and len(candidates) > limits.candidates:
            raise Problem(422, f"{len(candidates):,} candidates are too many: at most {limits.candidates:,}")
        chosen = list(dict.fromkeys(modes)) if modes else list(working.loaded.modes)

        def prepare() -> "FillJob":
            passage = Passage.parse(text) if mentions is None else Passage(text, tuple(mentions))
            return working.fill.prepare(passage, chosen, top=top, candidates=candidates)

        end = self._end()
        job = await self._wait(working.quick, prepare, end=end)
        answers = await self._wait(working.filling, job, job.tokens, end=end)

        def write() -> bytes:
            return encode(working.fill.write(job, answers), shapes.FillAnswer)

        return await self._wait(working.quick, write, end=end)

    async def link(self, text: str, *, threshold: float | None, rounds: int | None, trace: bool) -> bytes:
        """Find and link the entities of a text."""
        from ebert.linking.document import Document
        from ebert.serve.linking import LinkJob

        working = self._ready
        self._check(text, rounds=rounds)
        work, lane = self._linker
        job = LinkJob(_sound(lambda: Document("1", text)), rounds or work.rounds)
        self._check_cost([job])
        end = self._end()
        steps = await self._wait(lane, job, job.tokens, end=end)

        def write() -> bytes:
            return encode(work.write(steps, threshold=threshold, trace=trace), shapes.LinkAnswer)

        return await self._wait(working.quick, write, end=end)

    async def nif(self, text: str) -> bytes:
        """Link the texts of a NIF file, or the mentions in it; give it back with the entities."""
        from ebert.linking.readers.nif import read_asked, write_answer

        working = self._ready
        work, lane = self._linker
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
        linked = await _all(self._wait(lane, job, job.tokens, end=end) for _, job in jobs)

        def write() -> bytes:
            found: list[list[LinkedMention]] = [[] for _ in asked]
            for (number, job), steps in zip(jobs, linked, strict=True):
                found[number] += steps[-1].mentions if job.given else work.sure(steps[-1])
            return write_answer(zip(asked, found, strict=True)).encode("utf-8", "replace")

        return await self._wait(working.quick, write, end=end)

    async def suggest(self, typed: str, count: int) -> bytes:
        """Suggest entities."""
        self._check(typed, count)
        working = self._ready
        return await self._wait(
            working.quick, lambda: encode(working.explorer.suggest(typed, count), shapes.Suggestions)
        )

    async def entity(self, name: str) -> bytes:
        """Look an entity up."""
        self._check(name)
        working = self._ready
        return await self._wait(working.slow, lambda: encode(working.explorer.entity(name), shapes.Entity))

    async def near(self, name: str, kind: Any, count: int) -> bytes:
        """Give neighbours."""
        self._check(name, count)
        working = self._ready
        return await self._wait(
            working.slow, lambda: encode(working.explorer.near(name, kind, count), shapes.Neighbours)
        )

    async def explore(self, name: str, count: int) -> bytes:
        """Give a neighbourhood."""
        self._check(name, count)
        working = self._ready
        return await self._wait(
            working.slow, lambda: encode(working.explorer.explore(name, count), shapes.Neighbourhood)
        )

    async def add(self, title: str, description: str, aliases: list[str], *, replace: bool) -> bytes:
        """Add an entity."""
        self._check(description)
        working = self._ready

        def write() -> bytes:
            return encode(working.explorer.add(title, description, aliases, replace=replace), shapes.Added)

        return await self._wait(working.slow, write)

    # Waiting in line

    @property
    def _ready(self) -> "Working":
        why = self.why_not_ready
        if why is not None or self._working is None:
            raise Problem(503, f"{why}; try again in a moment", retry_after=MOMENT)
        return self._working

    @property
    def _linker(self) -> "tuple[LinkWork, Lane[LinkJob, Steps]]":
        working = self._ready
        if working.link is None or working.linking is None:
            raise Problem(404, "this service has no linker; start it with --linker LINKER, or with a model whose store "
                          "has a mention table")  # fmt: skip
        return working.link, working.linking

    def _check(self, text: str, top: int = 1, rounds: int | None = None) -> None:
        limits = self.options.limits
        if len(text) > limits.characters:
            self.metrics.refused("text too long")
            raise Problem(
                413, f"the text has {len(text):,} characters; this service takes {limits.characters:,}: split it"
            )
        if top > limits.top:
            raise Problem(422, f"{top:,} answers are too many: at most {limits.top:,}")
        if rounds is not None and rounds > limits.rounds:
            raise Problem(422, f"{rounds:,} rounds of refinement are too many: at most {limits.rounds:,}")

    def _check_cost(self, jobs: "Sequence[LinkJob]") -> None:
        """Refuse texts that would take too long in all their rounds."""
        most, cost = self.options.limits.cost, sum(len(job.document.text) * job.rounds for job in jobs)
        if cost > most:
            self.metrics.refused("text too long")
            rounds = jobs[0].rounds
            why = f"{cost // rounds:,} characters in {rounds:,} rounds of refinement cost {cost:,}"
            raise Problem(413, f"{why}; this service takes {most:,}: split the text, or ask for fewer rounds")

    def _end(self) -> float:
        """Give the time until which a request that comes now is to be answered, whatever it has to wait for."""
        return asyncio.get_running_loop().time() + self.options.limits.seconds

    async def _wait(self, lane: Lane[Item, Result], item: Item, cost: int = 1, *, end: float | None = None) -> Result:
        """Put a job in line and wait for its answer, but not for ever; whoever stops waiting stops the job."""
        try:
            future = lane.submit(item, cost)
        except FullError as error:
            self.metrics.refused("full")
            why = f"too many requests wait for an answer; try again in {error.seconds:.0f} s"
            raise Problem(503, why, retry_after=error.seconds) from None
        except ClosedError:
            raise Problem(503, "the service is shutting down; try again in a moment", retry_after=MOMENT) from None
        seconds = self.options.limits.seconds
        try:
            async with asyncio.timeout_at(self._end() if end is None else end):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            self.metrics.refused("took too long")
            raise Problem(504, f"no answer within {seconds:g} s: the service is busy or the text is long; try again, "
                          "or send less at a time") from None  # fmt: skip
        except UnknownNameError as error:
            raise Problem(404, str(error)) from None
        except EbertError as error:
            raise Problem(422, str(error)) from None


def _numbered_jobs(asked: "Sequence[Asked]", rounds: int) -> "Iterator[tuple[int, LinkJob]]":
    """Make jobs of texts: one if the mentions are to be found, else one for each layer of those given."""
    from ebert.linking.document import Document
    from ebert.serve.linking import LinkJob

    for number, one in enumerate(asked):
        if not one.mentions:
            yield number, LinkJob(Document(one.iri, one.text), rounds)
        for layer in one.layers():
            yield number, LinkJob(Document(one.iri, one.text, layer), rounds, given=True)


async def _all(waits: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Wait for all; if one fails, the others are dropped."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(wait) for wait in waits]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _sound(make: Callable[[], Result]) -> Result:
    """Turn bad input into an answer."""
    try:
        return make()
    except EbertError as error:
        raise Problem(422, str(error)) from None
