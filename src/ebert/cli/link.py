"""``ebert link``: finding and linking the entities of a text, and training a linker to do it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert._io.progress import say, waiting
from ebert._options import cli_options
from ebert.cli import common, link_data
from ebert.cli.lazy import Group
from ebert.cli.link_data import IDS_HELP, LAYOUT_HELP, given_option, use_candidates
from ebert.errors import EbertError
from ebert.linking.options import CandidateOptions, LinkerOptions, LinkTrainingOptions
from ebert.model.folder import find

if TYPE_CHECKING:
    from ebert.linking.document import Document
    from ebert.model.ebert import EBert

STDIN = "-"


@click.group("link", cls=Group, commands={"corpus": "bulk:link"})
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


_data_options = common.options(
    click.argument("data"),
    click.option("--model", required=True, help="A model folder made by 'ebert align', or 'starter'."),
    click.option(
        "--vectors", help="The store to link to, such as one made by 'link candidates'.  [default: the model's own]"
    ),
    click.option("--out", required=True, type=common.PATH, help="The folder of the linker."),
    click.option("--dev", help="Data for choosing the best epoch.  [default: a tenth of DATA]"),
    click.option("--layout", help=LAYOUT_HELP),
    click.option("--ids", type=common.PATH, help=IDS_HELP),
    given_option,
    cli_options(CandidateOptions, into="spans"),
    cli_options(LinkerOptions, into="linker_options"),
    common.device_option,
    common.json_option,
)


@group.command("train")
@_data_options
@cli_options(LinkTrainingOptions)
def train(out: Path, as_json: bool, **how: Any) -> None:
    """Train a linker on DATA: a folder made by 'ebert link wikipedia', or a file in any layout.

    To continue a training that was stopped, run the same command again. The best linker of all epochs is kept.

    \b
    Example:
      ebert link train documents --model enwiki-ebert --strategy packed --out linker
    """
    from ebert.report.plots import draw_convergence

    loaded, documents, dev, more = _prepare(**how)
    from ebert.linking.train import train as run

    metrics = run(documents, dev, loaded, out, **more)
    try:
        name = more["linker_options"].variant
        draw_convergence({name: metrics["epochs"]}, out / "convergence.svg", score="strong-match micro F1")
    except EbertError as error:  # no matplotlib: the linker is there all the same
        say(f"no plot of the convergence: {error}")
    plain = {name: value for name, value in metrics.items() if not isinstance(value, list)}
    common.print_result(metrics if as_json else plain, as_json)


@group.command("search")
@_data_options
@cli_options(LinkTrainingOptions, without=("learning_rate", "batch"))
@click.option("--learning-rates", help="Separated by commas.  [default: the paper's: 2e-5,3e-5,5e-5]")
@click.option("--batches", help="Separated by commas.  [default: the paper's: 16,32,64,128]")
def search(learning_rates: str | None, batches: str | None, out: Path, as_json: bool, **how: Any) -> None:
    """Train a linker with every learning rate and batch size of a grid, and plot the expected best score.

    \b
    Example:
      ebert link search documents --model enwiki-ebert --learning-rates 2e-5,5e-5 --batches 64,128 --out search
    """
    from ebert.finetuning.options import RATES
    from ebert.linking.options import BATCHES
    from ebert.report.plots import draw_expected_maximum

    try:
        rates = [float(rate) for rate in learning_rates.split(",")] if learning_rates else RATES
        sizes = [int(size) for size in batches.split(",")] if batches else BATCHES
    except ValueError as error:
        raise click.UsageError(f"not numbers separated by commas: {error}") from None
    _, documents, dev, more = _prepare(**how)
    from ebert.finetuning.run import CURVE
    from ebert.linking.train import search as run

    load = lambda: _load(how["model"], how["vectors"], how["device"])  # noqa: E731
    result = run(documents, dev, load, out, rates=rates, batches=sizes, **more)
    try:
        draw_expected_maximum({more["linker_options"].variant: result}, out / CURVE, score="micro F1")
    except EbertError as error:  # no matplotlib: the best linker is there all the same
        say(f"no plot of the search: {error}")
    common.print_result(result, as_json, lambda result: common.print_search(result, "batch"))


@group.command("run")
@click.argument("linker")
@click.argument("file", nargs=-1)
@click.option("--text", multiple=True, help="A text to link, instead of a file.")
@click.option("--lines", is_flag=True, help="Treat every line of a text file as a document.")
@click.option("--layout", help=f"{LAYOUT_HELP} Gold labels are ignored.")
@click.option("--vectors", help="The new path of the linker's store, if it has moved.")
@given_option
@click.option("--threshold", type=click.FloatRange(0, 1), help="Leave out mentions that are less probable than this.")
@click.option("--rounds", type=click.IntRange(1), help="Rounds of refinement; 1 means no refinement.")
@click.option("--format", "form", type=click.Choice(("brackets", "jsonl", "html")), default="brackets",
              show_default=True, help="What to write.")  # fmt: skip
@click.option("--out", type=common.PATH,
              help="Write to a file instead of standard output; an existing file is replaced at the end.")  # fmt: skip
@common.device_option
@common.precision_option
@common.json_option
def run(
    linker: str, file: tuple[str, ...], text: tuple[str, ...], lines: bool, layout: str | None, vectors: str | None,
    given: str | None, threshold: float | None, rounds: int | None, form: str, out: Path | None, device: str | None,
    precision: Any, as_json: bool,
) -> None:  # fmt: skip
    """Link texts in files, folders or JSONL with a 'text' in each line. Without FILE, or for '-', read standard input.

    \b
    Example:
      ebert link run linker --text "Adams and Platt are both injured."
      ebert link run linker news/ --format html --out news.html
      cat article.txt | ebert link run linker --json
    """
    from ebert._io import files
    from ebert.finetuning.folder import check_trained
    from ebert.linking.output import lines as output

    if text and layout:
        raise click.UsageError("--layout is for files; a --text has none")
    if as_json and form == "html":
        raise click.UsageError("give --json or --format html, not both")
    if out is not None:
        files.refuse_unwritable(out)
    link_data.check_files(*(path for path in file if path != STDIN), given)
    check_trained(linker, "linker", vectors)
    with waiting(f"loading {linker}"):
        from ebert.linking.linker import Linker

        loaded = Linker.from_pretrained(linker, vectors=vectors, rounds=rounds, precision=precision, device=device)
    use_candidates(loaded, given)
    linked = loaded.stream(_documents(file, text, lines, layout), threshold=threshold)
    parts = output(linked, "jsonl" if as_json else form)
    if out is None:
        for part in parts:
            click.echo(part, nl=False)
    else:
        with files.replacing(out, "w") as target:
            target.writelines(parts)
    for what, count in loaded.dropped.items():
        say(f"{count:,} {what}")


def _documents(paths: tuple[str, ...], texts: tuple[str, ...], lines: bool, layout: str | None) -> "Iterator[Document]":
    from ebert.linking.document import Document

    for number, text in enumerate(texts, 1):
        yield Document(str(number), text)
    places = paths or (() if texts else (STDIN,))
    for number, path in enumerate(places):
        from ebert.linking.readers.texts import from_paths, from_text

        if path != STDIN:
            yield from from_paths([path], lines=lines, layout=layout)
        elif STDIN not in places[:number]:  # it can be read once only
            text = "".join(common.standard_input()).removeprefix(
                "\ufeff"
            )  # the mark of some editors is no part of the text
            yield from from_text(text, "stdin", lines=lines, layout=layout)


def _load(model: str, vectors: str | None, device: str | None) -> "EBert":
    with waiting(f"loading {model}"):
        from ebert.model.ebert import EBert

        return EBert.from_pretrained(model, vectors=vectors, device=device)


def _prepare(
    *, model: str, vectors: str | None, device: str | None, data: str, dev: str | None, layout: str | None,
    ids: Path | None, given: str | None, spans: CandidateOptions, **options: Any,
) -> "tuple[EBert, list[Document], list[Document], dict[str, Any]]":  # fmt: skip
    """Load the model and read what to train on; return both with what more a training is told."""
    find(model, None, vectors)
    link_data.check_files(data, dev, ids, given)
    loaded = _load(model, vectors, device)
    from ebert.linking.train import read_data

    if loaded.vectors is None:
        raise EbertError("a linker needs entity vectors: give a model made by 'ebert align' instead of an encoder")
    documents, held_out, sources = read_data(data, dev, loaded.vectors, layout=layout, ids=ids, say=say)
    generator = link_data.read_given(given, loaded.vectors, spans.candidates) if given else spans
    more = {"generator": generator, "data": sources, "device": device, "command": common.command_line(), "say": say}
    return loaded, documents, held_out, {**more, **options}
