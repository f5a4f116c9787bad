"""``ebert relations``: classify the relation between two entities in a sentence."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert._names import find_local
from ebert.cli.common import (
    Command,
    json_option,
    overwrite_option,
    print_facts,
    print_json,
    print_search,
    schedule_options,
)
from ebert.cli.relation_texts import Given, as_value, show
from ebert.errors import EbertError
from ebert.finetuning.options import RATES
from ebert.model import modes

if TYPE_CHECKING:
    from ebert.model.ebert import EBert
    from ebert.relations.data import Sample

MODES = (*modes.MODES, "wikipedia2vec-concat", "wikipedia2vec-replace")
EPOCHS = (3, 4, 5, 6, 7, 8, 9, 10)  # of the paper's grid, which is that of ERNIE
FILE = click.Path(path_type=Path)


@click.group("relations")
def group() -> None:
    """Classify the relation between two entities in a sentence."""


def training_options(command: Command) -> Command:
    """Add what `train` and `search` have in common."""
    for option in reversed(
        (
            click.option("--model", required=True,
                         help="A model made by 'ebert align', or 'starter'; with --mode bert also an encoder."),
            click.option("--mode", type=click.Choice(MODES), required=True, help="How entities are fed."),
            click.option("--out", required=True, type=FILE, help="The folder of the run; run again to go on."),
            click.option("--batch", type=int, default=32, show_default=True, help="Samples in a step."),
            click.option("--seed", type=int, default=0, show_default=True, help="Of the new layer, dropout and order."),
            click.option("--samples", type=int,
                         help="Training samples to use, evenly over the relations.  [default: all]"),
            click.option("--dev-samples", type=int, help="Dev samples to choose the best epoch by.  [default: all]"),
            schedule_options(checkpoint_steps=125),
            click.option("--ids", type=FILE, help="A table of Wikidata ids and titles, for stores that know no ids."),
            click.option("--ids-only", is_flag=True, help="Keep to the entities that the data names."),
            click.option("--threshold", type=float, default=0.5, show_default=True,
                         help="Share of a surface's links that its commonest entity must have."),
            click.option("--vectors", help="Where the model's store is now, if not where it was."),
            click.option("--device", type=click.Choice(["cpu"]), help="Keep to the CPU.  [default: a GPU if there is]"),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@group.command("train")
@click.argument("data", type=FILE)
@click.option("--epochs", type=int, default=10, show_default=True, help="Passes over the training set.")
@click.option("--learning-rate", type=float, default=5e-5, show_default=True, help="Highest rate of the schedule.")
@training_options
@json_option
def train(
    data: Path, model: str, mode: str, out: Path, ids: Path | None, ids_only: bool, threshold: float,
    vectors: str | None, device: str | None, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Fine-tune a classifier on DATA, a folder with train and dev: FewRel's .json, or .jsonl of your own.

    \b
    Example:
      ebert relations train fewrel --model enwiki-ebert --mode concat --epochs 3 --out runs/concat
    """
    _need_accelerate()
    from ebert.finetuning.run import leads
    from ebert.relations.options import RelationTrainingOptions
    from ebert.relations.train import train as run

    metrics = run(
        data, _load(model, mode, vectors), out, mode=mode, options=RelationTrainingOptions(**options),
        **_resolving(ids, ids_only, threshold), device=device, command=_command(), say=_say,
    )  # fmt: skip
    if not leads():
        return
    if as_json:
        print_json(metrics)
    else:
        print_facts({"best epoch": metrics["best epoch"], **{f"dev {k}": f"{v:.2f}" for k, v in metrics["dev"].items()},
                     "written to": out})  # fmt: skip


@group.command("evaluate")
@click.argument("run", type=FILE)
@click.argument("data", type=FILE)
@click.option("--samples", type=click.IntRange(min=1), help="How many, evenly over the relations.  [default: all]")
@click.option("--keep", is_flag=True, help="Also write the figures and all answers into RUN, for 'relations report'.")
@click.option("--vectors", help="Where the store is now, if not where it was.")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@json_option
def evaluate(
    run: Path, data: Path, samples: int | None, keep: bool, vectors: str | None, device: str | None, as_json: bool
) -> None:
    """Evaluate the best classifier of RUN on a labelled file, DATA.

    \b
    Example:
      ebert relations evaluate runs/concat fewrel/test.json
    """
    from ebert.relations import evaluate as evaluating
    from ebert.relations.classifier import RelationClassifier
    from ebert.relations.data import fixed_subset, read

    if keep:
        evaluating.see_complete(run)
    chosen = read(data)  # a bad file is told before the classifier is loaded
    if samples is not None:
        chosen = fixed_subset(chosen, samples)
    classifier = RelationClassifier.from_pretrained(run, vectors=vectors, device=device)
    evaluation = evaluating.evaluate(classifier, chosen)
    value = evaluation.as_json()
    if keep:
        evaluation.keep(run, data)
    if as_json:
        print_json(value)
        return
    coverage = value["coverage"]
    print_facts(
        {
            **{f"macro {name}": f"{figure:.2f}" for name, figure in value["macro"].items()},
            "accuracy": f"{value['accuracy']:.2f}",
            "samples": value["samples"],
            "both entities have vectors": value["covered"],
            **{f"mentions found by {way}": count for way, count in coverage["ways"].items() if way != "none"},
            "mentions without a vector": coverage["ways"]["none"],
        }
    )
    worst = sorted(value["relations"].items(), key=lambda item: item[1]["f1"])[:5]
    click.echo("lowest F1: " + ", ".join(f"{label} {figures['f1']:.1f}" for label, figures in worst), err=True)


@group.command("predict")
@click.argument("run", type=FILE)
@click.argument("text", nargs=-1)
@click.option("--data", type=FILE, help="A file instead of TEXT: FewRel's JSON, or lines.")
@click.option("--object-first", is_flag=True, help="In a marked text, the first mention is the object.")
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="Relations to show.")
@click.option("--vectors", help="Where the store is now, if not where it was.")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@json_option
def predict(
    run: Path, text: tuple[str, ...], data: Path | None, object_first: bool, top: int, vectors: str | None,
    device: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Tell the relation between the two mentions of texts, with the best classifier of RUN.

    Mentions are written [[Title]] or [[Title|surface]]; the first is the subject and the second the object. Lines of
    --data, or of standard input if there is neither --data nor TEXT, may be such texts or JSON as for training.

    \b
    Example:
      ebert relations predict runs/concat "[[Jean Marais]] was born in [[Cherbourg]] ."
    """
    from ebert.relations.classifier import RelationClassifier

    if data and text:
        raise EbertError("give --data or TEXT, not both")
    given = Given(object_first)
    samples: Iterable[Sample] = given.all_of(data) if data else given.texts(text) if text else given.stream(sys.stdin)
    classifier = RelationClassifier.from_pretrained(run, vectors=vectors, device=device)
    count = 0
    for count, prediction in enumerate(classifier(samples, top=top), 1):  # noqa: B007
        if as_json:
            print_json(as_value(prediction, classifier.names))
        else:
            show(prediction, classifier.names)
    if given.fault:
        raise given.fault
    if not count:
        raise EbertError("there is no text to classify; give it as an argument, by --data or on standard input")


@group.command("search")
@click.argument("data", type=FILE)
@click.option("--learning-rate", type=float, multiple=True, default=RATES, show_default=True, help="May be repeated.")
@click.option("--epochs", type=int, multiple=True, default=EPOCHS, show_default=True, help="May be repeated.")
@click.option("--keep-all", is_flag=True, help="Keep all classifiers, not only the best.")
@training_options
@json_option
def search(
    data: Path, learning_rate: tuple[float, ...], epochs: tuple[int, ...], keep_all: bool, model: str, mode: str,
    out: Path, ids: Path | None, ids_only: bool, threshold: float, vectors: str | None, device: str | None,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Train with every learning rate and number of epochs of a grid, and draw the expected maximum performance.

    \b
    Example:
      ebert relations search fewrel --model enwiki-ebert --mode concat --out searches/concat
    """
    _need_accelerate()
    from ebert.finetuning.run import CURVE
    from ebert.relations.options import RelationTrainingOptions
    from ebert.relations.train import search as run
    from ebert.report.training_curves import draw_expected_maximum

    result = run(
        data, lambda: _load(model, mode, vectors), out, mode=mode, options=RelationTrainingOptions(**options),
        rates=learning_rate, epochs=epochs, **_resolving(ids, ids_only, threshold), device=device, keep_all=keep_all,
        command=_command(), say=_say,
    )  # fmt: skip
    drawn = f"the curve of the expected maximum is in {out / CURVE}"
    try:
        draw_expected_maximum({mode: result}, out / CURVE, score="macro F1")
    except EbertError as error:  # no matplotlib: the best classifier is there all the same
        drawn = f"no plot of the search: {error}"
    _say(drawn)
    if as_json:
        print_json(result)
        return
    print_search(result, "epochs")


@group.command("report")
@click.argument("runs", nargs=-1, required=True, type=FILE, metavar="RUN...")
@click.option("--out", required=True, type=FILE, help="The folder: index.html, report.md, tables as CSV, plots as SVG.")
@click.option("--resamples", type=click.IntRange(min=100), default=1000, show_default=True, help="Of the bootstrap.")
@overwrite_option
@json_option
def report(runs: tuple[Path, ...], out: Path, resamples: int, overwrite: bool, as_json: bool) -> None:
    """Report on runs that were evaluated with --keep, beside the published figures; the first is compared with.

    \b
    Example:
      ebert relations report runs/bert runs/concat runs/replace --out report
    """
    from ebert.report.relations import make_report

    summary = make_report(runs, out, resamples=resamples, overwrite=overwrite)
    if as_json:
        print_json({"folder": str(out), **summary})
        return
    for line in summary["headlines"]:
        click.echo(line)
    click.echo(f"wrote {out}: open {out / 'index.html'}")


def _load(model: str, mode: str, vectors: str | None) -> "EBert":
    from ebert.model.ebert import EBert

    folder = find_local(model, "model")
    if mode != "bert" or (folder is not None and (folder / "ebert.json").is_file()):
        return EBert.from_pretrained(model, vectors=vectors)
    if vectors:
        raise EbertError("--vectors goes with a model made by 'ebert align', not with an encoder")
    return EBert.plain(model)


def _resolving(ids: Path | None, ids_only: bool, threshold: float) -> dict[str, Any]:
    from ebert.relations.data import ResolvingOptions
    from ebert.vectors.wikidata_ids import read_ids

    options = ResolvingOptions(ids_only=ids_only, threshold=threshold)
    return {"resolving": options, "ids": read_ids(ids) if ids else None}


def _need_accelerate() -> None:
    from importlib.util import find_spec

    if find_spec("accelerate") is None:
        raise EbertError("training needs accelerate: pip install 'ebert[relations]'")


def _command() -> str:
    return shlex.join(["ebert", *sys.argv[1:]])


def _say(line: str) -> None:
    from ebert.finetuning.run import leads

    if leads():
        click.echo(line, err=True)
