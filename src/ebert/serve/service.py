"""The service itself: takes what endpoints parsed, puts it in line, and waits for the answer."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from ebert.errors import EbertError, UnknownNameError
from ebert.linking.document import Document
from ebert.linking.linked import Linked
from ebert.model.sequence import Mode
from ebert.serve import examples
from ebert.serve.exploring import Explorer
from ebert.serve.filling import FillJob, FillWork, Masks, warm_up
from ebert.serve.lane import ClosedError, FullError, Lane, LaneOptions
from ebert.serve.linking import LinkJob, LinkWork
from ebert.serve.loading import Loaded
from ebert.serve.metrics import Metrics
from ebert.serve.options import ServeOptions
from ebert.serve.problem import Problem
from ebert.text import Mention, Passage

Result = TypeVar("Result")
Task = Callable[[], Any]

LOADING = 2.0  # seconds after which to ask again while the model is loading


class Service:
    """Answers clients. Until `start` it is loading, after `stop` it is shutting down, and says so."""

    def __init__(self, options: ServeOptions) -> None:
        """Begin; the model comes later."""
        self.options, self.metrics = options, Metrics()
        self.stopping = False
        self._working: _Working | None = None

    @property
    def why_not_ready(self) -> str | None:
        """What the service is doing instead of answering, or None."""
        if self.stopping:
            return "the service is shutting down"
        return None if self._working is not None else "the model is still loading"

    def start(self, loaded: Loaded) -> None:
        """Take a model and begin to answer."""
        self._working = _Working(loaded, self.options, self.metrics)

    def stop(self) -> None:
        """Finish what was accepted."""
        self.stopping = True
        if self._working is not None:
            self._working.close()

    # Answers

    def info(self) -> dict[str, Any]:
        """Describe the model."""
        loaded, limits = self._ready.loaded, self.options.limits
        linker = loaded.linker
        return {
            "name": loaded.name,
            "encoder": loaded.model.name,
            "mask": "[MASK]",
            "modes": list(loaded.modes),
            "entities": len(loaded.vectors),
            "words": loaded.vectors.info.words,
            "dimension": loaded.vectors.dimension,
            "linker": None
            if linker is None
            else {
                "name": loaded.linker_name,
                "rounds": linker.options.rounds,
                "strategy": linker.options.strategy,
            },
            "limits": {"characters": limits.characters, "body": limits.body, "top": limits.top},
            "examples": examples.known(loaded.vectors),
        }

    async def fill(
        self,
        text: str,
        *,
        modes: Sequence[Mode] | None,
        top: int,
        candidates: Sequence[str] | None,
        mentions: Sequence[Mention] | None,
    ) -> dict[str, Any]:
        """Fill the masks of a text."""
        working = self._ready
        self._check(text, top)
        if candidates is not None and len(candidates) > self.options.limits.candidates:
            raise Problem(
                422, f"{len(candidates):,} candidates are too many: at most {self.options.limits.candidates:,}"
            )
        chosen = list(dict.fromkeys(modes)) if modes else list(working.loaded.modes)

        def prepare() -> FillJob:
            passage = Passage.parse(text) if mentions is None else Passage(text, tuple(mentions))
            return working.fill.prepare(passage, chosen, top=top, candidates=candidates)

        job = await self._quick(prepare)
        answers = await self._wait(working.filling, job, job.tokens)
        return working.fill.write(job, answers)

    async def link(self, text: str, *, threshold: float | None, rounds: int | None, trace: bool) -> dict[str, Any]:
        """Find and link the entities of a text."""
        working = self._ready
        self._check(text, rounds=rounds)
        if working.link is None or working.linking is None:
            raise Problem(404, "this service has no linker; start it with --linker LINKER, or with a model whose store "
                          "has a mention table")  # fmt: skip
        job = LinkJob(Document("1", text), rounds)
        steps = await self._wait(working.linking, job, job.tokens)
        return working.link.write(steps, threshold=threshold, trace=trace)

    async def suggest(self, typed: str, count: int) -> dict[str, Any]:
        """Suggest entities."""
        self._check(typed, count)
        explorer = self._ready.explorer
        return await self._quick(lambda: explorer.suggest(typed, count))

    async def entity(self, name: str) -> dict[str, Any]:
        """Look an entity up."""
        self._check(name)
        explorer = self._ready.explorer
        return await self._quick(lambda: explorer.entity(name))

    async def near(self, name: str, kind: Any, count: int) -> dict[str, Any]:
        """Give neighbours."""
        self._check(name, count)
        explorer = self._ready.explorer
        return await self._slow(lambda: explorer.near(name, kind, count))

    async def explore(self, name: str, count: int) -> dict[str, Any]:
        """Give a neighbourhood."""
        self._check(name, count)
        explorer = self._ready.explorer
        return await self._slow(lambda: explorer.explore(name, count))

    async def add(self, title: str, description: str, aliases: list[str], *, replace: bool) -> dict[str, Any]:
        """Add an entity."""
        self._check(description)
        explorer = self._ready.explorer
        return await self._slow(lambda: explorer.add(title, description, aliases, replace=replace))

    # Waiting in line

    @property
    def _ready(self) -> "_Working":
        why = self.why_not_ready
        if why is not None or self._working is None:
            raise Problem(503, f"{why}; try again in a moment", retry_after=LOADING)
        return self._working

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

    async def _quick(self, task: Callable[[], Result]) -> Result:
        return await self._wait(self._ready.quick, task, 1)

    async def _slow(self, task: Callable[[], Result]) -> Result:
        return await self._wait(self._ready.slow, task, 1)

    async def _wait(self, lane: "Lane[Any, Any]", item: Any, cost: int) -> Any:
        """Put a job in line and wait for its answer, but not for ever."""
        try:
            future: Future[Any] = lane.submit(item, cost)
        except FullError as error:
            self.metrics.refused("full")
            raise Problem(
                503, f"too many requests wait for an answer; try again in {error.seconds:.0f} s",
                retry_after=error.seconds,
            ) from None  # fmt: skip
        except ClosedError:
            raise Problem(503, "the service is shutting down; try again in a moment", retry_after=LOADING) from None
        seconds = self.options.limits.seconds
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            self.metrics.refused("took too long")
            raise Problem(504, f"no answer within {seconds:g} s; the service is busy or the text long: try again, or "
                          "send less at a time") from None  # fmt: skip
        except UnknownNameError as error:
            raise Problem(404, str(error)) from None
        except EbertError as error:
            raise Problem(422, str(error)) from None


class _Working:
    """A loaded model and the lanes that its work goes through."""

    def __init__(self, loaded: Loaded, options: ServeOptions, metrics: Metrics) -> None:
        self.loaded = loaded
        self.fill = FillWork(loaded.model, budget=options.budget)
        self.link = None if loaded.linker is None else LinkWork(loaded.linker, budget=options.budget)
        self.explorer = Explorer(loaded, most_added=options.limits.added)
        warm_up(self.fill)
        waiting, together = options.limits.waiting, options.limits.waiting if options.batching else 1
        batched = LaneOptions(
            waiting=waiting,
            together=together,
            budget=self.fill.budget,
            window=options.window if options.batching else 0,
        )
        self._metrics = metrics
        self._lanes: list[Lane[Any, Any]] = []
        self.quick: Lane[Task, Any] = self._lane("lookup", _each, LaneOptions(threads=2, waiting=waiting))
        self.slow: Lane[Task, Any] = self._lane("explore", _each, LaneOptions(threads=1, waiting=waiting))
        self.filling: Lane[FillJob, list[Masks]] = self._lane("fill", self.fill.run, batched)
        self.linking: Lane[LinkJob, tuple[Linked, ...]] | None = None
        if self.link is not None:
            self.linking = self._lane("link", self.link.run, batched)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()

    def _lane(self, name: str, run: Any, options: LaneOptions) -> "Lane[Any, Any]":
        lane: Lane[Any, Any] = Lane(name, run, options, watch=lambda ran: self._metrics.ran(name, ran))
        self._metrics.watch(lane)
        self._lanes.append(lane)
        return lane


def _each(tasks: Sequence[Task]) -> list[Any]:
    return [task() for task in tasks]
