"""``ebert link corpus``, ``encode corpus`` and ``probe corpus``: every row of a corpus, on all cores or a cluster."""

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert._io.progress import say
from ebert._io.records import objects
from ebert._options import cli_options
from ebert.bulk.encode import EncodeJob
from ebert.bulk.link import LinkJob
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.probe import ProbeJob
from ebert.cli.common import PATH, json_option, options, overwrite_option, print_facts, print_json
from ebert.cli.lazy import Group
from ebert.errors import EbertError
from ebert.model.folder import find

if TYPE_CHECKING:
    from ebert.bulk.job import ModelJob

SHOWN = 3  # bad rows to print


@click.group("encode", cls=Group)
def encode_group() -> None:
    """Turn texts into vectors, with the entities in them.

    \b
    Example:
      ebert encode corpus passages.jsonl --model starter --out vectors
    """


_options = options(
    click.argument("input", nargs=-1, required=True),
    click.option("--out", required=True, type=PATH, help="The folder to write."),
    cli_options(ReadOptions, into="read"),
    cli_options(EngineOptions, into="engine"),
    overwrite_option,
    json_option,
)


@click.command("corpus")
@click.option("--linker", required=True, help="A folder made by 'ebert link train' or 'ebert align', or 'starter'.")
@cli_options(LinkJob, into="given", given_only=True)
@_options
def link(linker: str, given: dict[str, Any], **rest: Any) -> None:
    """Link every row of INPUT: Parquet, JSON lines or text, in files and folders.

    To continue a job that was stopped, run the same command again. OUT/rows has the linked rows; OUT/errors.jsonl
    lists the rows that could not be read.

    \b
    Example:
      ebert link corpus news/ --linker enwiki-linker --out linked
      ebert link corpus news.parquet --text-column body --linker enwiki-linker --engine ray --out linked
    """
    _run(LinkJob(linker=linker, **given), **rest)


@encode_group.command("corpus")
@cli_options(EncodeJob, into="job")
@_options
def encode(job: EncodeJob, **rest: Any) -> None:
    """Encode every row of INPUT: Parquet, JSON lines or text, in files and folders.

    Write entities as [[Title|words]] in the text, or give them in a column 'mentions', as 'ebert link corpus' does. To
    continue a job that was stopped, run the same command again.

    \b
    Example:
      ebert encode corpus passages.jsonl --model starter --out vectors
      ebert encode corpus linked/rows --model enwiki-ebert --pool entities --out entity-vectors
    """
    _run(job, **rest)


@click.command("corpus")
@cli_options(ProbeJob, into="given", given_only=True)
@click.option("--mode", help="Any of bert,concat,replace, or all.  [default: all with a model, bert without]")
@click.option("--vocabulary", type=PATH,
              help="The words to choose from, one per line, in addition to the answers.  "
              "[default: the encoder's]")  # fmt: skip
@_options
def probe(given: dict[str, Any], mode: str | None, vocabulary: Path | None, **rest: Any) -> None:
    """Ask every row of INPUT: questions of your own, in JSON lines or Parquet.

    The rows are the same as for 'ebert probe questions'. To continue a job that was stopped, run the same command
    again.

    \b
    Example:
      ebert probe corpus questions.jsonl --model starter --out answers
    """
    from ebert.cli.probe import print_scores, words_in
    from ebert.model.options import parse_modes

    modes = tuple(parse_modes(mode, with_entities="model" in given))
    words = tuple(words_in(vocabulary)) if vocabulary else None
    done = _run(ProbeJob(modes=modes, vocabulary=words, **given), **rest)
    if not rest["as_json"]:
        print_scores({"modes": done["modes"]})


def _run(
    job: "LinkJob | ModelJob", *, input: tuple[str, ...], out: Path, read: ReadOptions, engine: EngineOptions,  # noqa: A002
    overwrite: bool, as_json: bool,
) -> dict[str, Any]:  # fmt: skip
    from ebert._io.progress import progress
    from ebert.bulk.local import make_engine
    from ebert.bulk.run import run
    from ebert.finetuning.folder import check_trained

    device = getattr(job, "device", None)
    if engine.gpus_per_worker and device not in (None, "cuda"):
        raise EbertError(
            f"--device {device} and --gpus-per-worker do not go together: each worker has a GPU of its own, or a share "
            "of one; leave out one of the two"
        )
    made = make_engine(engine)  # which also checks its options
    if isinstance(job, LinkJob):
        check_trained(job.linker, "linker", job.vectors)
    else:
        find(job.model, job.bert, job.vectors)
    if sys.stderr.isatty():
        say("reading the input and loading the model ...")
    try:
        done = run(job, input, out, read=read, engine=made, overwrite=overwrite, watch=progress)
    except KeyboardInterrupt:
        say("stopped; run the same command again to continue")
        raise
    if as_json:
        shown = {name: value for name, value in done.items() if name not in ("identity", "shards")}
        print_json({**shown, "shards": len(done["shards"])})
    else:
        _show(done, out)
    return done


def _show(done: dict[str, Any], out: Path) -> None:
    """Print the counts for people, and some of the bad rows."""
    print_facts({name: done[name] for name in ("rows", "errors", "blank", "seconds")})
    if done["errors"]:
        say(f"{done['errors']:,} rows could not be used; all are in {out / 'errors.jsonl'}, such as:")
        with (out / "errors.jsonl").open(encoding="utf-8") as file:
            for _, bad in objects(islice(file, SHOWN)):
                if isinstance(bad, dict):
                    say(f"  {bad['where']}: {bad['reason']}")
    for reason, count in done["dropped"].items():
        say(f"{count:,} {reason}")
    if others := done.get("not read"):
        say(f"{len(others):,} files were not read, because their kind is unknown: {', '.join(others[:SHOWN])}")
    say(f"everything is in {out}")
