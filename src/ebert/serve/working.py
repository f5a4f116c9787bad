"""A loaded model at work: the lanes that its work goes through, and what they do."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ebert.serve import examples
from ebert.serve.exploring import Explorer
from ebert.serve.filling import FillJob, FillWork, Masks, warm_up
from ebert.serve.lane import Lane, LaneOptions, Pause
from ebert.serve.linking import LinkJob, LinkWork, Steps
from ebert.serve.loading import Loaded
from ebert.serve.metrics import Metrics
from ebert.serve.options import Limits, ServeOptions

Task = Callable[[], Any]


class Working:
    """What a service has as soon as its model is loaded.

    Filling and linking each have a thread of their own, so that a long text that is linked holds nobody up who fills
    masks, and others who link for one batch only; looking something up, and looking at all vectors of a store, have
    others.
    """

    def __init__(self, loaded: Loaded, options: ServeOptions, metrics: Metrics) -> None:
        self.loaded, self._metrics, self._seconds = loaded, metrics, options.limits.seconds
        self.fill = FillWork(loaded.model, budget=options.budget)
        self.link = None if loaded.linker is None else LinkWork(loaded.linker, budget=options.budget)
        self.explorer = Explorer(loaded, most_added=options.limits.added)
        warm_up(self.fill)
        self.explorer.prepare()
        self._examples = examples.suited(loaded.vectors)
        common = LaneOptions(waiting=options.limits.waiting, patience=options.limits.seconds)
        batched = replace(
            common,
            together=options.limits.waiting if options.batching else 1,
            budget=self.fill.budget,
            window=options.window if options.batching else 0.0,
        )
        self._lanes: list[Lane[Any, Any]] = []
        self.quick: Lane[Task, Any] = self._lane("lookup", _each, replace(common, threads=2))
        self.slow: Lane[Task, Any] = self._lane("explore", _each, common)
        self.filling: Lane[FillJob, list[Masks]] = self._lane("fill", self.fill.run, batched)
        self.linking: Lane[LinkJob, Steps] | None = None
        if self.link is not None:  # a text costs its tokens in every round, and is in a batch with all of them
            self.linking = self._lane("link", self.link.run, replace(batched, budget=batched.budget * self.link.rounds))

    def describe(self, limits: Limits) -> dict[str, Any]:
        """Tell clients what there is."""
        loaded, linker = self.loaded, None
        if loaded.linker is not None:
            options = loaded.linker.options
            linker = {"name": loaded.linker_name, "rounds": options.rounds, "strategy": options.strategy}
        encoder = Path(loaded.model.name)
        return {
            "name": loaded.name,
            "encoder": encoder.name if encoder.is_absolute() else loaded.model.name,  # nobody's folders are told
            "mask": "[MASK]",
            "modes": list(loaded.modes),
            "entities": len(loaded.vectors),
            "words": loaded.vectors.info.words,
            "dimension": loaded.vectors.dimension,
            "linker": linker,
            "keeps": loaded.keeps,
            "limits": {"characters": limits.characters, "body": limits.body, "top": limits.top},
            "examples": self._examples,
        }

    def close(self) -> None:
        """Finish what waits, as long as anybody waits for it."""
        for lane in reversed(self._lanes):
            lane.close(self._seconds)

    def _lane(self, name: str, run: Any, options: LaneOptions) -> "Lane[Any, Any]":
        lane: Lane[Any, Any] = Lane(name, run, options, watch=lambda ran: self._metrics.ran(name, ran))
        self._metrics.watch(lane)
        self._lanes.append(lane)
        return lane


def _each(tasks: Sequence[Task], _: Pause) -> list[Any]:
    return [task() for task in tasks]
