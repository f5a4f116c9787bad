"""``ebert relations``: classify the relation between two entities in a sentence."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert._io.progress import say, waiting
from ebert._options import cli_options
from ebert.cli import common
from ebert.cli.lazy import Group
from ebert.errors import EbertError
from ebert.finetuning.options import RATES
from ebert.model.folder import find_base
from ebert.relations.options import VARIANTS, RelationTrainingOptions, ResolvingOptions

if TYPE_CHECKING:
    from ebert.model.folder import FoundModel
    from ebert.relations.classifier import RelationPrediction
    from ebert.relations.data import Sample

EPOCHS = (3, 4, 5, 6, 7, 8, 9, 10)  # of the paper's grid, which is that of ERNIE


@click.group("relations", cls=Group)
def group() -> None:
    """Classify the relation between two entities in a sentence.

    \b
    Example:
      ebert relations train fewrel --model starter --mode concat --out runs/concat
      ebert relations predict runs/concat "[[Jean Marais]] was born in [[Cherbourg]]."
    """


store_option = click.option("--vectors", help="The new path of the store, if it has moved.")

# What `train` and `search` have in common, beside the options of the training itself.
training_options = common.options(
    click.option("--model", required=True,
                 help="A model made by 'ebert align', or 'starter'; with --mode bert, an encoder works too."),
    click.option("--mode", type=click.Choice(list(VARIANTS)), required=True, help="How entities are fed."),
    click.option("--out", required=True, type=common.PATH,
                 help="The folder of the run. To continue a run, run the same command again."),
    click.option("--ids", type=common.PATH, help="A table of Wikidata ids and titles, for stores without ids."),
    cli_options(ResolvingOptions, into="resolving"),
    common.vectors_option,
    click.option("--device", type=click.Choice(["cpu"]), help="Use only the CPU.  [default: a GPU if there is one]"),
)  # fmt: skip


@group.command("train")
@click.argument("data", type=common.PATH)
@training_options
@cli_options(RelationTrainingOptions)
@common.json_option
def train(
    data: Path, model: str, mode: str, out: Path, options: RelationTrainingOptions, ids: Path | None,
    vectors: str | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Fine-tune a classifier on DATA, a folder with train and dev: FewRel's .json, or .jsonl of your own.

    \b
    Example:
      ebert relations train fewrel --model enwiki-ebert --mode concat --epochs 3 --out runs/concat
    """
    how["ids"] = _read_ids(ids)
    found = _check(model, mode, vectors, data)
    with waiting(f"loading {model}"):
        from ebert.finetuning.run import leads
        from ebert.model.ebert import load_model
        from ebert.relations.train import train as run

        loaded = load_model(found)
    metrics = run(data, loaded, out, mode=mode, options=options, command=common.command_line(), say=_say, **how)
    if leads():
        common.print_result(metrics, as_json, lambda metrics: common.print_facts({
            "best epoch": metrics["best epoch"], **{f"dev {k}": f"{v:.2f}" for k, v in metrics["dev"].items()},
            "written to": out,
        }))  # fmt: skip


@group.command("evaluate")
@click.argument("run")
@click.argument("data", type=common.PATH)
@click.option(
    "--samples", type=click.IntRange(min=1), help="How many samples to use, evenly over the relations.  [default: all]"
)
@click.option("--keep", is_flag=True, help="Also write the figures and all answers into RUN, for 'relations report'.")
@store_option
@common.device_option
@common.json_option
def evaluate(
    run: str, data: Path, samples: int | None, keep: bool, vectors: str | None, device: str | None, as_json: bool
) -> None:
    """Evaluate the best classifier of RUN on a labelled file, DATA.

    \b
    Example:
      ebert relations evaluate runs/concat fewrel/test.json
    """
    from ebert.finetuning.folder import check_trained
    from ebert.relations.data import fixed_subset, read

    check_trained(run, "classifier", vectors)
    chosen = read(data)  # an error of the file comes before torch is loaded
    if samples is not None:
        chosen = fixed_subset(chosen, samples)
    with waiting(f"loading {run}"):
        from ebert.relations import evaluate as evaluating
        from ebert.relations.classifier import RelationClassifier
    if keep:
        evaluating.check_complete(Path(run))
    classifier = RelationClassifier.from_pretrained(run, vectors=vectors, device=device)
    evaluation = evaluating.evaluate(classifier, chosen)
    if keep:
        evaluation.keep(Path(run), data)
    common.print_result(evaluation.as_json(), as_json, _show_evaluation)


def _show_evaluation(value: dict[str, Any]) -> None:
    ways = dict(value["coverage"]["ways"])
    without = ways.pop("none")
    common.print_facts({
        **{f"macro {name}": f"{figure:.2f}" for name, figure in value["macro"].items()},
        "accuracy": f"{value['accuracy']:.2f}", "samples": value["samples"],
        "both entities have vectors": value["covered"],
        **{f"mentions found by {way}": count for way, count in ways.items()}, "mentions without a vector": without,
    })  # fmt: skip
    worst = sorted(value["relations"].items(), key=lambda item: item[1]["f1"])[:5]
    say("lowest F1: " + ", ".join(f"{label} {figures['f1']:.1f}" for label, figures in worst))


@group.command("predict")
@click.argument("run")
@click.argument("text", nargs=-1)
@click.option("--data", type=common.PATH, help="A file instead of TEXT: FewRel's JSON, or lines.")
@click.option("--object-first", is_flag=True, help="In a marked text, the first mention is the object.")
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="Relations to show.")
@store_option
@common.device_option
@common.json_option
def predict(
    run: str, text: tuple[str, ...], data: Path | None, object_first: bool, top: int, vectors: str | None,
    device: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Predict the relation between the two mentions in each TEXT, with the best classifier of RUN.

    Write mentions as [[Title]] or [[Title|surface]]. The first is the subject and the second the object. Without TEXT,
    the command reads --data or standard input. Each line may be such a text, or JSON as for training.

    \b
    Example:
      ebert relations predict runs/concat "[[Jean Marais]] was born in [[Cherbourg]] ."
    """
    from ebert.finetuning.folder import check_trained

    check_trained(run, "classifier", vectors)
    if data and text:
        raise EbertError("give --data or TEXT, not both")
    faults: list[EbertError] = []
    samples: Iterable[Sample]
    if data:
        samples = _read(data, object_first)
    elif text:
        samples = [_sample(line, f"text {number}", object_first) for number, line in enumerate(text, 1)]
    else:
        samples = _standard_samples(object_first, faults)
    with waiting(f"loading {run}"):
        from ebert.relations.classifier import RelationClassifier

        classifier = RelationClassifier.from_pretrained(run, vectors=vectors, device=device)
    count = 0
    for count, prediction in enumerate(classifier.stream(samples, top=top), 1):  # noqa: B007
        if as_json:
            common.print_json(_as_json(prediction, classifier.names))
        else:
            _show(prediction, classifier.names)
    if faults:
        raise faults[0]
    if not count:
        raise EbertError("there is no text to classify; give it as an argument, by --data or on standard input")


def _sample(line: str, where: str, object_first: bool) -> "Sample":
    """Read a line of JSON, or a text with markup."""
    from ebert.relations.data import as_sample, read_line

    if line.lstrip().startswith("{"):
        return read_line(line, where)
    sample = as_sample(line, where)
    return replace(sample, subject=sample.object, object=sample.subject) if object_first else sample


def _read(path: Path, object_first: bool) -> "list[Sample]":
    """Read a file: samples as for training, or lines of which some have markup."""
    from ebert._io.records import read_text
    from ebert.relations.data import parse

    text = read_text(path)
    lines = [(n, line.rstrip("\r")) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if re.match(r"\s*\[(?!\[)", text) or all(line.lstrip().startswith("{") for _, line in lines):
        return parse(text, path.name)  # as a whole, as FewRel's starts are corrected by all of them
    return [_sample(line, f"{path.name}, line {n}", object_first) for n, line in lines]


def _standard_samples(object_first: bool, faults: list[EbertError]) -> "Iterator[Sample]":
    """Read lines as they come, up to one that is wrong; what is wrong is noted, so that answers are printed first."""
    try:
        for number, line in enumerate(common.standard_input(), 1):
            if line.strip():
                yield _sample(line.rstrip("\r\n"), f"line {number}", object_first)
    except EbertError as error:
        faults.append(error)


def _as_json(prediction: "RelationPrediction", names: Mapping[str, str]) -> dict[str, Any]:
    """Return a prediction for programs, with what the relations are called where that is known."""
    sample = prediction.sample
    value: dict[str, Any] = {"text": sample.text}
    roles = ("subject", sample.subject), ("object", sample.object)
    for (role, span), title in zip(roles, prediction.entities, strict=True):
        value[role] = {"start": span.start, "end": span.end, "text": sample.surface(span), "entity": title}
    value["relations"] = [
        {"relation": label, **({"name": names[label]} if label in names else {}), "probability": share}
        for label, share in prediction.relations
    ]
    return value


def _show(prediction: "RelationPrediction", names: Mapping[str, str]) -> None:
    """Print a prediction for people."""
    value = _as_json(prediction, names)
    click.secho(value["text"], bold=True)
    for role in ("subject", "object"):
        click.echo(f"  {role:<8}{value[role]['text']} ({value[role]['entity'] or 'no vector'})")
    for label, share in prediction.relations:
        click.echo(f"  {share:6.1%}  {label} {names.get(label, '')}".rstrip())


@group.command("search")
@click.argument("data", type=common.PATH)
@click.option("--learning-rate", type=float, multiple=True, default=RATES, show_default=True, help="May be repeated.")
@click.option("--epochs", type=int, multiple=True, default=EPOCHS, show_default=True, help="May be repeated.")
@click.option("--keep-all", is_flag=True, help="Keep all classifiers, not only the best.")
@training_options
@cli_options(RelationTrainingOptions, without=("learning_rate", "epochs"))
@common.json_option
def search(
    data: Path, learning_rate: tuple[float, ...], epochs: tuple[int, ...], model: str, mode: str, out: Path,
    ids: Path | None, vectors: str | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Train with every learning rate and number of epochs of a grid, and plot the expected maximum performance.

    \b
    Example:
      ebert relations search fewrel --model enwiki-ebert --mode concat --out searches/concat
    """
    known = _read_ids(ids)
    found = _check(model, mode, vectors, data)
    from ebert.finetuning.run import CURVE
    from ebert.model.ebert import load_model
    from ebert.relations.train import search as run
    from ebert.report.plots import draw_expected_maximum

    result = run(
        data, lambda: load_model(found), out, mode=mode, rates=learning_rate, epochs=epochs,
        ids=known, command=common.command_line(), say=_say, **how,
    )  # fmt: skip
    try:
        draw_expected_maximum({mode: result}, out / CURVE, score="macro F1")
        _say(f"the curve of the expected maximum is in {out / CURVE}")
    except EbertError as error:  # no matplotlib: the best classifier is there all the same
        _say(f"no plot of the search: {error}")
    common.print_result(result, as_json, lambda result: common.print_search(result, "epochs"))


@group.command("report")
@click.argument("runs", nargs=-1, required=True, type=common.PATH, metavar="RUN...")
@click.option(
    "--out", required=True, type=common.PATH, help="The folder: index.html, report.md, tables as CSV, plots as SVG."
)
@click.option(
    "--resamples", type=click.IntRange(min=100), default=1000, show_default=True, help="Resamples of the bootstrap."
)
@common.overwrite_option
@common.json_option
def report(runs: tuple[Path, ...], out: Path, resamples: int, overwrite: bool, as_json: bool) -> None:
    """Report on runs evaluated with --keep: each run against the first, with the published figures beside ours.

    \b
    Example:
      ebert relations report runs/bert runs/concat runs/replace --out report
    """
    from ebert.report.relations import make_report

    summary = make_report(runs, out, resamples=resamples, overwrite=overwrite)
    if as_json:
        common.print_json({"folder": str(out), **summary})
    else:
        common.print_report(out, summary)


def _check(model: str, mode: str, vectors: str | None, data: Path) -> "FoundModel":
    """Find the model to train, and raise `EbertError` for a model or data that is not there."""
    found = find_base(model, vectors, mode=mode)
    if not data.exists():
        raise EbertError(f"there is no folder {data}: it should have the files of FewRel, train and dev")
    return found


def _read_ids(path: Path | None) -> dict[int, str] | None:
    from ebert.vectors.wikidata_ids import read_ids

    return read_ids(path) if path else None


def _say(line: str) -> None:
    from ebert.finetuning.run import leads

    if leads():
        say(line)
