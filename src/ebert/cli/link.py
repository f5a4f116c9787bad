"""``ebert link``: finding and linking the entities of a text, and training a linker to do it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert.cli import link_data
from ebert.cli.common import json_option, print_facts, print_json, print_search, schedule_options
from ebert.cli.link_data import (
    CANDIDATES,
    IDS_HELP,
    LAYOUT_HELP,
    MASKS,
    VARIANTS,
    generator_of,
    read_documents,
    say,
    use_candidates,
)
from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.linking.document import Document
    from ebert.model.ebert import EBert

STRATEGIES = ("paper", "packed")
STDIN = "-"
TENTH = 10  # every so many documents are held out, if no dev set is given


@click.group("link")
def group() -> None:
    """Find entities in text and link them to Wikipedia: E-BERT-MLM, trained on Wikipedia's own links.

    \b
    Example:
      ebert link wikipedia enwiki --vectors enwiki-vectors --leave-out test.jsonl --out documents
      ebert link candidates enwiki-vectors --corpus enwiki --leave-out test.jsonl --leave-out documents/train.jsonl
        --leave-out documents/held-out.jsonl --out linking-vectors
      ebert link train documents --model enwiki-ebert --vectors linking-vectors --out linker
      ebert link evaluate linker test.jsonl
      ebert link run linker --text "Adams and Platt are both injured."
    """


for command in (link_data.candidates, link_data.wikipedia, link_data.evaluate):
    group.add_command(command)


def _training_options(command: Any) -> Any:
    for option in reversed((
        click.argument("data"),
        click.option("--model", required=True, help="A model folder made by 'ebert align', or 'starter'."),
        click.option("--vectors", help="The store to link to, if not the model's own: one of 'link candidates', say."),
        click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder of the linker."),
        click.option("--dev", help="Data to choose the best epoch on.  [default: a tenth of DATA]"),
        click.option("--layout", help=LAYOUT_HELP),
        click.option("--ids", type=click.Path(path_type=Path), help=IDS_HELP),
        click.option("--given", help="A file of candidates of your own, instead of the store's mention table."),
        click.option("--candidates", type=click.IntRange(1), default=CANDIDATES, show_default=True,
                     help="Entities that a span may mean, at most."),
        click.option("--min-link-probability", type=click.FloatRange(0, 1), default=0.005, show_default=True,
                     help="Spans whose words are more rarely a link are not looked at."),
        click.option("--ignore-case", is_flag=True, help="Find names without capitals too, as in tweets."),
        click.option("--strategy", type=click.Choice(STRATEGIES), default="packed", show_default=True,
                     help="A pass of the encoder for each span, or one for all spans of a chunk."),
        click.option("--variant", type=click.Choice(VARIANTS), default="e-bert-mlm", show_default=True,
                     help="E-BERT-MLM, or one of the paper's baselines."),
        click.option("--mask", type=click.Choice(MASKS),
                     help="What stands for the entity: the mean of its candidates, or [MASK]."),
        click.option("--link-prior/--no-link-prior", default=True, show_default=True,
                     help="Weigh how rarely a span's words are a link. The paper does without."),
        click.option("--block", type=click.Choice(("markers", "copy")), default="markers", show_default=True,
                     help="What packed has for a span: markers alone, or its wordpieces too."),
        click.option("--chunk", type=click.IntRange(16), default=512, show_default=True,
                     help="Wordpieces that the encoder sees at once."),
        click.option("--epochs", type=click.IntRange(1), default=10, show_default=True, help="Passes over DATA."),
        click.option("--nulls", type=float, default=1.0, show_default=True,
                     help="Share of over-generated spans that an epoch sees; the loss weighs them accordingly."),
        click.option("--seed", type=int, default=0, show_default=True, help="Of everything that is random."),
        click.option("--evaluations", type=click.IntRange(1), default=1, show_default=True,
                     help="How often in an epoch the dev set is linked."),
        click.option("--tune/--no-tune", default=True, show_default=True,
                     help="Choose on the dev set how ready it is to link. The paper does without."),
        schedule_options(checkpoint_steps=50),
        click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ..."),
        json_option,
    )):  # fmt: skip
        command = option(command)
    return command


@group.command("train")
@_training_options
@click.option("--learning-rate", type=float, default=2e-5, show_default=True, help="The highest of the schedule.")
@click.option("--batch", type=click.IntRange(1), default=128, show_default=True, help="Spans in a step.")
def train(
    learning_rate: float, batch: int, device: str | None, out: Path, as_json: bool, model: str, vectors: str | None,
    **rest: Any,
) -> None:  # fmt: skip
    """Train a linker on DATA: a folder of 'ebert link wikipedia', or a file of any layout.

    The same command goes on with a training that was stopped. The best linker of all epochs is kept.

    \b
    Example:
      ebert link train documents --model enwiki-ebert --strategy packed --out linker
    """
    from ebert.linking.train import train as run
    from ebert.report.training_curves import draw_convergence

    loaded = _load(model, vectors, device)
    prepared = _prepare(loaded, **rest)
    options = _options(rest, learning_rate=learning_rate, batch=batch)
    metrics = run(
        prepared.pop("documents"), prepared.pop("dev"), loaded, out, options=options, device=device,
        command=" ".join(sys.argv[1:]), say=say, **prepared,
    )  # fmt: skip
    try:
        draw_convergence({rest["variant"]: metrics["epochs"]}, out / "convergence.svg", score="strong-match micro F1")
    except EbertError as error:  # no matplotlib: the linker is there all the same
        say(f"no plot of the convergence: {error}")
    _show(metrics, as_json)


@group.command("search")
@_training_options
@click.option("--learning-rates", help="With commas between them.  [default: the paper's: 2e-5,3e-5,5e-5]")
@click.option("--batches", help="With commas between them.  [default: the paper's: 16,32,64,128]")
def search(
    learning_rates: str | None, batches: str | None, device: str | None, out: Path, as_json: bool, model: str,
    vectors: str | None, **rest: Any,
) -> None:  # fmt: skip
    """Train a linker with every learning rate and batch size of a grid; draw the expected best of so many trials.

    \b
    Example:
      ebert link search documents --model enwiki-ebert --learning-rates 2e-5,5e-5 --batches 64,128 --out search
    """
    from ebert.finetuning.options import RATES
    from ebert.finetuning.run import CURVE
    from ebert.linking.options import BATCHES
    from ebert.linking.train import search as run
    from ebert.report.training_curves import draw_expected_maximum

    try:
        rates = [float(rate) for rate in learning_rates.split(",")] if learning_rates else RATES
        sizes = [int(size) for size in batches.split(",")] if batches else BATCHES
    except ValueError as error:
        raise click.UsageError(f"not numbers with commas between them: {error}") from None
    prepared = _prepare(_load(model, vectors, device), **rest)
    result = run(
        prepared.pop("documents"), prepared.pop("dev"), lambda: _load(model, vectors, device), out, rates=rates,
        batches=sizes, options=_options(rest), device=device, command=" ".join(sys.argv[1:]), say=say, **prepared,
    )  # fmt: skip
    try:
        draw_expected_maximum({rest["variant"]: result}, out / CURVE, score="micro F1")
    except EbertError as error:  # no matplotlib: the best linker is there all the same
        say(f"no plot of the search: {error}")
    if as_json:
        print_json(result)
    else:
        print_search(result, "batch")


@group.command("run")
@click.argument("linker")
@click.argument("file", nargs=-1)
@click.option("--text", multiple=True, help="A text to link, instead of a file.")
@click.option("--lines", is_flag=True, help="Every line of a text file is a document of its own.")
@click.option("--layout", help=f"{LAYOUT_HELP} Its gold is not looked at.")
@click.option("--vectors", help="Where the linker's store is now, if not where it was.")
@click.option("--given", help="A file of candidates of your own, instead of the store's mention table.")
@click.option("--threshold", type=click.FloatRange(0, 1), help="Leave out mentions that are less probable.")
@click.option("--rounds", type=click.IntRange(1), help="Iterations of refinement; 1 is none.")
@click.option("--format", "form", type=click.Choice(("brackets", "jsonl", "html")), default="brackets",
              show_default=True, help="What to write.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path),
              help="Write to a file instead of standard output; one that is there is replaced at the end.")  # fmt: skip
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@json_option
def run(
    linker: str, file: tuple[str, ...], text: tuple[str, ...], lines: bool, layout: str | None, vectors: str | None,
    given: str | None, threshold: float | None, rounds: int | None, form: str, out: Path | None, device: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Link texts: files, folders, JSONL with a 'text' a line, or standard input if none are given (or for '-').

    \b
    Example:
      ebert link run linker --text "Adams and Platt are both injured."
      ebert link run linker news/ --format html --out news.html
      cat article.txt | ebert link run linker --json
    """
    from ebert._io import files
    from ebert.linking.linker import Linker
    from ebert.linking.output import lines as output

    if text and layout:
        raise click.UsageError("--layout is for files; a --text has none")
    if as_json and form == "html":
        raise click.UsageError("give --json or --format html, not both")
    if out is not None:
        files.refuse_unwritable(out)
    loaded = Linker.from_pretrained(linker, vectors=vectors, rounds=rounds, device=device)
    use_candidates(loaded, given)
    linked = loaded.link(_documents(file, text, lines, layout), threshold=threshold)
    parts = output(linked, "jsonl" if as_json else form)
    if out is None:
        for part in parts:
            click.echo(part, nl=False)
    else:
        with files.replacing(out, "w") as target:
            target.writelines(parts)
    for what, count in loaded.dropped.items():
        click.echo(f"{count:,} {what}", err=True)


def _documents(paths: tuple[str, ...], texts: tuple[str, ...], lines: bool, layout: str | None) -> "Iterator[Document]":
    from ebert.linking.document import Document
    from ebert.linking.readers.texts import from_paths, from_text

    for number, text in enumerate(texts, 1):
        yield Document(str(number), text)
    places = paths or (() if texts else (STDIN,))
    for number, path in enumerate(places):
        if path != STDIN:
            yield from from_paths([path], lines=lines, layout=layout)
        elif STDIN not in places[:number]:  # it can be read once only
            yield from from_text(_standard_input(), "stdin", lines=lines, layout=layout)


def _standard_input() -> str:
    try:
        return sys.stdin.read().removeprefix("\ufeff")  # the mark of some editors, which is no part of the text
    except UnicodeDecodeError as error:
        raise EbertError(f"standard input is not UTF-8 ({error})") from None


def _load(model: str, vectors: str | None, device: str | None) -> "EBert":
    from ebert.model.ebert import EBert

    return EBert.from_pretrained(model, vectors=vectors, device=device)


def _prepare(
    loaded: "EBert", *, data: str, dev: str | None, layout: str | None, ids: Path | None, given: str | None,
    strategy: str, variant: str, mask: str | None, chunk: int, block: str, link_prior: bool, candidates: int,
    min_link_probability: float, ignore_case: bool, **_: Any,
) -> dict[str, Any]:  # fmt: skip
    """Read what to train on: the documents, the dev documents, how to find spans and how to read."""
    from ebert._io import files
    from ebert.linking.candidates.table import GeneratorOptions
    from ebert.linking.options import LinkerOptions
    from ebert.linking.resolve import Resolver
    from ebert.linking.wikipedia import HELD_OUT, TRAIN
    from ebert.vectors.wikidata_ids import read_ids

    if loaded.vectors is None:
        raise EbertError("a linker needs entity vectors: give a model made by 'ebert align' instead of an encoder")
    path = Path(data)
    if path.is_dir() and (path / TRAIN).is_file():
        if dev is None and (path / HELD_OUT).is_file() and (path / HELD_OUT).stat().st_size:
            dev = str(path / HELD_OUT)
        path = path / TRAIN
    resolver = Resolver(loaded.vectors, read_ids(ids) if ids else None)
    documents = read_documents(str(path), layout, resolver, told=True)
    if dev:
        held = read_documents(dev, layout if not Path(data).is_dir() else None, resolver, told=True)
    else:
        if len(documents) < 2:
            raise EbertError(f"{path} has one document, and one must be held out to choose by; give others with --dev")
        held, documents = documents[::TENTH], [d for n, d in enumerate(documents) if n % TENTH]
        say(f"{len(held):,} of the documents are held out to choose the best epoch on (--dev gives others)")
    parts = {"train": path, "dev": Path(dev) if dev else None, **({"ids": ids} if ids else {})}
    sources = {name: {"file": one.name, "sha256": files.sha256(one)} if one else None for name, one in parts.items()}
    spans = GeneratorOptions(candidates, min_link_probability, ignore_case=ignore_case)
    options: dict[str, Any] = {
        "strategy": strategy, "variant": variant, "mask": mask, "chunk": chunk, "block": block,
        "link_prior": link_prior,
    }  # fmt: skip
    return {
        "documents": documents, "dev": held, "data": sources, "linker_options": LinkerOptions(**options),
        "generator": generator_of(given, loaded.vectors, candidates) if given else spans,
    }  # fmt: skip


def _options(rest: dict[str, Any], **more: Any) -> Any:
    from ebert.linking.options import TrainingOptions

    own = ("epochs", "nulls", "seed", "evaluations", "tune")
    shared = ("warmup", "weight_decay", "checkpoint_steps", "precision")
    return TrainingOptions(**{name: rest[name] for name in own + shared}, **more)


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print_facts({name: value for name, value in result.items() if not isinstance(value, list)})
