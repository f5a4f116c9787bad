"""Who does the work: the cores of this machine, or a Ray cluster. The options, and what they stand for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.bulk.local import Engine
    from ebert.wikipedia.build import Run

Command = TypeVar("Command", bound=Callable[..., Any])

ENGINES = ("local", "ray")


def engine_option(command: Command) -> Command:
    """Add ``--engine`` and ``--address``."""
    command = click.option("--address", help="Of the Ray cluster.  [default: RAY_ADDRESS, else this machine alone]")(
        command
    )
    return click.option(
        "--engine", type=click.Choice(ENGINES), default="local", show_default=True,
        help="All cores of this machine, or a Ray cluster.",
    )(command)  # fmt: skip


def worker_options(command: Command) -> Command:
    """Add what workers there are."""
    for option in reversed((
        engine_option,
        click.option("--workers", type=click.IntRange(1), help="At most so many.  [default: as there is room for]"),
        click.option("--least-workers", type=click.IntRange(1), default=1, show_default=True,
                     help="Of the pool that grows and shrinks (ray)."),
        click.option("--cpus-per-worker", type=click.IntRange(1),
                     help="Cores of a worker.  [default: this machine's, divided among them; 1 with ray]"),
        click.option("--gpus-per-worker", type=click.FloatRange(0), default=0.0, show_default=True,
                     help="GPUs of a worker; 0.5 shares one between two."),
    )):  # fmt: skip
        command = option(command)
    return command


def engine_of(
    *, engine: str, address: str | None, workers: int | None, least_workers: int, cpus_per_worker: int | None,
    gpus_per_worker: float,
) -> "Engine":  # fmt: skip
    """Give the engine that options ask for."""
    from ebert.bulk.local import LocalEngine
    from ebert.bulk.options import Workers

    chosen = Workers(most=workers, least=least_workers, cpus=cpus_per_worker, gpus=gpus_per_worker)
    if engine == "local":
        _refuse_address(address)
        return LocalEngine(chosen)
    from ebert.bulk.ray import RayEngine, need_ray

    need_ray()  # now, not after the inputs were read
    return RayEngine(chosen, address)


def tasks_of(engine: str, address: str | None, threads: int | None) -> "Run | None":
    """Give who reads the pieces of a dump; None stands for processes of this machine."""
    if engine == "local":
        _refuse_address(address)
        return None
    from ebert.bulk.options import Workers
    from ebert.bulk.ray import RayTasks, need_ray

    need_ray()
    return RayTasks(Workers(most=threads), address)


def _refuse_address(address: str | None) -> None:
    if address is not None:
        raise EbertError("--address is that of a Ray cluster; give --engine ray with it")
