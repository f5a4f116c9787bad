"""``ebert link corpus``, ``encode corpus`` and ``probe corpus``: every row of a corpus, on all cores or a cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ebert._names import find_local
from ebert.cli.common import device_options, json_option, overwrite_option, print_facts, print_json
from ebert.cli.engine import engine_of, worker_options
from ebert.errors import EbertError
from ebert.model.modes import MODES

if TYPE_CHECKING:
    from ebert.bulk.job import Job

Command = TypeVar("Command", bound=Callable[..., Any])

POOLS = ("mean", "first", "entities")
SHOWN = 3  # bad rows to print


@click.group("encode")
def encode_group() -> None:
    """Turn texts into vectors, with the entities in them.

    \b
    Example:
      ebert encode corpus passages.jsonl --model starter --out vectors
    """


def _options(command: Command) -> Command:
    """Add the options that all bulk work has."""
    for option in reversed((
        click.argument("input", nargs=-1, required=True),
        click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write."),
        click.option("--text-column", default="text", show_default=True, help="Where the text is: a column or key."),
        click.option("--id-column", help="Where a row's name is.  [default: id if there is one, else file and line]"),
        click.option("--lines", is_flag=True, help="Every line of a text file is a row of its own."),
        click.option("--shard-rows", type=click.IntRange(1), default=256, show_default=True,
                     help="Rows that a worker does at a time, and that a kill costs."),
        worker_options,
        overwrite_option,
        json_option,
    )):  # fmt: skip
        command = option(command)
    return command


@click.command("corpus")
@_options
@click.option("--linker", required=True, help="A folder of 'ebert link train' or 'ebert align', or 'starter'.")
@click.option("--vectors", help="Where the linker's store is now, if not where it was.")
@click.option("--threshold", type=click.FloatRange(0, 1), help="Leave out mentions that are less probable.")
@click.option("--rounds", type=click.IntRange(1), help="Iterations of refinement; 1 is none.")
@click.option("--candidates", type=click.IntRange(0), help="Candidates of a mention to write.  [default: all]")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
def link(
    linker: str, vectors: str | None, threshold: float | None, rounds: int | None, candidates: int | None,
    device: str | None, **rest: Any,
) -> None:  # fmt: skip
    """Link every row of INPUT: Parquet, JSON lines or text, in files and folders.

    The same command goes on with a job that was stopped. Rows are in OUT/rows, what could not be read in
    OUT/errors.jsonl.

    \b
    Example:
      ebert link corpus news/ --linker enwiki-linker --out linked
      ebert link corpus news.parquet --text-column body --linker enwiki-linker --engine ray --out linked
    """
    from ebert.bulk.link import LinkJob

    job = LinkJob(
        linker=_place(linker) or "", vectors=_path(vectors), threshold=threshold, rounds=rounds, candidates=candidates,
        device=_device(device, rest),
    )  # fmt: skip
    _run(job, **rest)


@encode_group.command("corpus")
@_options
@click.option("--model", help="A model folder made by 'ebert align', or 'starter'.")
@click.option("--bert", help="Instead of a model: an encoder without entities.")
@click.option("--vectors", help="Where the model's store is now, if not where it was.")
@click.option(
    "--mode", type=click.Choice(MODES), help="How entities are fed.  [default: concat with a model, else bert]"
)
@click.option("--pool", type=click.Choice(POOLS), default="mean", show_default=True,
              help="One vector a row (the mean of its pieces, or [CLS]) or one for each of its entities.")  # fmt: skip
@click.option("--layer", type=int, default=-1, show_default=True, help="Of the hidden states; 0 is the embeddings.")
@device_options
def encode(
    model: str | None, bert: str | None, vectors: str | None, mode: str | None, pool: Any, layer: int,
    device: str | None, dtype: str | None, **rest: Any,
) -> None:  # fmt: skip
    """Encode every row of INPUT: Parquet, JSON lines or text, in files and folders.

    Entities are written [[Title|words]] in the text, or given in a column 'mentions', as 'ebert link corpus' writes it.
    The same command goes on with a job that was stopped.

    \b
    Example:
      ebert encode corpus passages.jsonl --model starter --out vectors
      ebert encode corpus linked/rows --model enwiki-ebert --pool entities --out entity-vectors
    """
    from ebert.bulk.encode import EncodeJob

    job = EncodeJob(
        model=_place(model), bert=bert, vectors=_path(vectors), mode=mode or ("concat" if model else "bert"), pool=pool,
        layer=layer, device=_device(device, rest), dtype=dtype,
    )  # fmt: skip
    _run(job, **rest)


@click.command("corpus")
@_options
@click.option("--model", help="A model folder made by 'ebert align', or 'starter'.")
@click.option("--bert", help="Instead of a model: an encoder without entities.")
@click.option("--vectors", help="Where the model's store is now, if not where it was.")
@click.option("--mode", help="Any of bert,concat,replace, or all.  [default: all with a model, bert without]")
@click.option("--vocabulary", type=click.Path(path_type=Path),
              help="The words to choose from, one a line, beside the answers.  [default: the encoder's]")  # fmt: skip
@device_options
def probe(
    model: str | None, bert: str | None, vectors: str | None, mode: str | None, vocabulary: Path | None,
    device: str | None, dtype: str | None, **rest: Any,
) -> None:  # fmt: skip
    """Ask every row of INPUT: questions of your own, in JSON lines or Parquet.

    The rows are those of 'ebert probe questions'. The same command goes on with a job that was stopped.

    \b
    Example:
      ebert probe corpus questions.jsonl --model starter --out answers
    """
    from ebert.bulk.probe import ProbeJob
    from ebert.cli.probe import print_scores, words_in
    from ebert.model.modes import parse_modes

    job = ProbeJob(
        model=_place(model), bert=bert, vectors=_path(vectors),
        modes=tuple(parse_modes(mode, with_entities=model is not None)),
        vocabulary=tuple(words_in(vocabulary)) if vocabulary else None, device=_device(device, rest), dtype=dtype,
    )  # fmt: skip
    done = _run(job, **rest)
    if not rest["as_json"]:
        print_scores({"modes": done["modes"]})


def _run(
    job: "Job", *, input: tuple[str, ...], out: Path, text_column: str, id_column: str | None, lines: bool,  # noqa: A002
    shard_rows: int, overwrite: bool, as_json: bool, **engine: Any,
) -> dict[str, Any]:  # fmt: skip
    from ebert._io.progress import progress
    from ebert.bulk.options import ReadOptions
    from ebert.bulk.run import run

    read = ReadOptions(text=text_column, id=id_column, lines=lines, shard_rows=shard_rows)
    try:
        done = run(job, input, out, read=read, engine=engine_of(**engine), overwrite=overwrite, watch=progress)
    except KeyboardInterrupt:
        click.echo("stopped; the same command goes on where it was", err=True)
        raise
    shown = {name: value for name, value in done.items() if name not in ("identity", "shards")}
    if as_json:
        print_json({**shown, "shards": len(done["shards"])})
    else:
        _show(done, out)
    return done


def _show(done: dict[str, Any], out: Path) -> None:
    """Print the counts for people, and some of the bad rows."""
    print_facts({name: done[name] for name in ("rows", "errors", "blank", "seconds")})
    if done["errors"]:
        click.echo(f"{done['errors']:,} rows could not be used; all are in {out / 'errors.jsonl'}, such as:", err=True)
        with (out / "errors.jsonl").open(encoding="utf-8") as file:
            import json

            for _, line in zip(range(SHOWN), file, strict=False):
                bad = json.loads(line)
                click.echo(f"  {bad['where']}: {bad['reason']}", err=True)
    for reason, count in done["dropped"].items():
        click.echo(f"{count:,} {reason}", err=True)
    if others := done.get("not read"):
        click.echo(
            f"{len(others):,} files were not read, as they are of no known kind: {', '.join(others[:SHOWN])}", err=True
        )
    click.echo(f"everything is in {out}", err=True)


def _place(name: str | None) -> str | None:
    """Give the folder of a model so that it is found from anywhere; a name on the hub stays as it is."""
    if name is None:
        return None
    return str(find_local(name, "linker") or name)


def _path(name: str | None) -> str | None:
    return None if name is None else str(Path(name).expanduser().absolute())


def _device(given: str | None, rest: dict[str, Any]) -> str | None:
    """Give where the encoder runs: on a GPU, if workers have one. Which one it is, is for the engine to say."""
    if not rest["gpus_per_worker"]:
        return given
    if given not in (None, "cuda"):
        raise EbertError(
            f"--device {given} and --gpus-per-worker do not go together: each worker has a GPU of its own, or a share "
            "of one; leave one of the two out"
        )
    return "cuda"
