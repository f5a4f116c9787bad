"""``ebert relations``: classify the relation between two entities in a sentence."""

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert._options import cli_options
from ebert.cli.common import Command, json_option, overwrite_option, print_facts, print_json, print_search
from ebert.errors import EbertError
from ebert.finetuning.options import RATES
from ebert.relations.options import VARIANTS, RelationTrainingOptions, ResolvingOptions

if TYPE_CHECKING:
    from ebert.relations.classifier import RelationPrediction
    from ebert.relations.data import Sample

EPOCHS = (3, 4, 5, 6, 7, 8, 9, 10)  # of the paper's grid, which is that of ERNIE
FILE = click.Path(path_type=Path)


@click.group("relations")
def group() -> None:
    """Classify the relation between two entities in a sentence."""


def training_options(command: Command) -> Command:
    """Add what `train` and `search` have in common, beside the options of the training itself."""
    for option in reversed(
        (
            click.option("--model", required=True,
                         help="A model made by 'ebert align', or 'starter'; with --mode bert also an encoder."),
            click.option("--mode", type=click.Choice(list(VARIANTS)), required=True, help="How entities are fed."),
            click.option("--out", required=True, type=FILE, help="The folder of the run; run again to go on."),
            click.option("--ids", type=FILE, help="A table of Wikidata ids and titles, for stores that know no ids."),
            cli_options(ResolvingOptions, into="resolving"),
            click.option("--vectors", help="Where the model's store is now, if not where it was."),
            click.option("--device", type=click.Choice(["cpu"]), help="Keep to the CPU.  [default: a GPU if there is]"),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@group.command("train")
@click.argument("data", type=FILE)
@training_options
@cli_options(RelationTrainingOptions)
@json_option
def train(
    data: Path, model: str, mode: str, out: Path, options: RelationTrainingOptions, ids: Path | None,
    vectors: str | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Fine-tune a classifier on DATA, a folder with train and dev: FewRel's .json, or .jsonl of your own.

    \b
    Example:
      ebert relations train fewrel --model enwiki-ebert --mode concat --epochs 3 --out runs/concat
    """
    from ebert.finetuning.run import leads
    from ebert.relations.classifier import load_model
    from ebert.relations.train import train as run

    how["ids"] = _read_ids(ids)
    loaded = load_model(model, mode, vectors)
    metrics = run(data, loaded, out, mode=mode, options=options, command=_command(), say=_say, **how)
    if not leads():
        return
    if as_json:
        print_json(metrics)
    else:
        print_facts({"best epoch": metrics["best epoch"], **{f"dev {k}": f"{v:.2f}" for k, v in metrics["dev"].items()},
                     "written to": out})  # fmt: skip


@group.command("evaluate")
@click.argument("run")
@click.argument("data", type=FILE)
@click.option("--samples", type=click.IntRange(min=1), help="How many, evenly over the relations.  [default: all]")
@click.option("--keep", is_flag=True, help="Also write the figures and all answers into RUN, for 'relations report'.")
@click.option("--vectors", help="Where the store is now, if not where it was.")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@json_option
def evaluate(
    run: str, data: Path, samples: int | None, keep: bool, vectors: str | None, device: str | None, as_json: bool
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
        evaluating.check_complete(Path(run))
    chosen = read(data)  # an error of the file comes before the classifier is loaded
    if samples is not None:
        chosen = fixed_subset(chosen, samples)
    classifier = RelationClassifier.from_pretrained(run, vectors=vectors, device=device)
    evaluation = evaluating.evaluate(classifier, chosen)
    value = evaluation.as_json()
    if keep:
        evaluation.keep(Path(run), data)
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
@click.argument("run")
@click.argument("text", nargs=-1)
@click.option("--data", type=FILE, help="A file instead of TEXT: FewRel's JSON, or lines.")
@click.option("--object-first", is_flag=True, help="In a marked text, the first mention is the object.")
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="Relations to show.")
@click.option("--vectors", help="Where the store is now, if not where it was.")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@json_option
def predict(
    run: str, text: tuple[str, ...], data: Path | None, object_first: bool, top: int, vectors: str | None,
    device: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Find the relation between the two mentions of texts, with the best classifier of RUN.

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
    for count, prediction in enumerate(classifier.stream(samples, top=top), 1):  # noqa: B007
        if as_json:
            print_json(_as_json(prediction, classifier.names))
        else:
            _show(prediction, classifier.names)
    if given.fault:
        raise given.fault
    if not count:
        raise EbertError("there is no text to classify; give it as an argument, by --data or on standard input")


@dataclass
class Given:
    """What `predict` is asked about: lines of JSON, or texts with markup."""

    object_first: bool
    fault: EbertError | None = None
    """What is wrong with a stream; it ends there, so that the answers before it are printed first."""

    def sample(self, line: str, where: str) -> "Sample":
        """Read a line."""
        from ebert.relations.data import as_sample, read_line

        if line.lstrip().startswith("{"):
            return read_line(line, where)
        sample = as_sample(line, where)
        return replace(sample, subject=sample.object, object=sample.subject) if self.object_first else sample

    def texts(self, texts: Iterable[str]) -> "list[Sample]":
        """Read the arguments."""
        return [self.sample(text, f"text {number}") for number, text in enumerate(texts, 1)]

    def all_of(self, path: Path) -> "list[Sample]":
        """Read a file: samples as for training, or lines of which some have markup."""
        from ebert._io.records import read_text
        from ebert.relations.data import parse

        text = read_text(path)
        lines = [(n, line.rstrip("\r")) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        if re.match(r"\s*\[(?!\[)", text) or all(line.lstrip().startswith("{") for _, line in lines):
            return parse(text, path.name)  # as a whole, as FewRel's starts are corrected by all of them
        return [self.sample(line, f"{path.name}, line {n}") for n, line in lines]

    def stream(self, lines: Iterable[str]) -> "Iterator[Sample]":
        """Read lines as they come."""
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield self.sample(line.rstrip("\r\n"), f"line {number}")
        except UnicodeDecodeError as error:
            self.fault = EbertError(f"standard input is not UTF-8 ({error})")
        except EbertError as error:
            self.fault = error


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
@click.argument("data", type=FILE)
@click.option("--learning-rate", type=float, multiple=True, default=RATES, show_default=True, help="May be repeated.")
@click.option("--epochs", type=int, multiple=True, default=EPOCHS, show_default=True, help="May be repeated.")
@click.option("--keep-all", is_flag=True, help="Keep all classifiers, not only the best.")
@training_options
@cli_options(RelationTrainingOptions, without=("learning_rate", "epochs"))
@json_option
def search(
    data: Path, learning_rate: tuple[float, ...], epochs: tuple[int, ...], model: str, mode: str, out: Path,
    ids: Path | None, vectors: str | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Train with every learning rate and number of epochs of a grid, and draw the expected maximum performance.

    \b
    Example:
      ebert relations search fewrel --model enwiki-ebert --mode concat --out searches/concat
    """
    from ebert.finetuning.run import CURVE
    from ebert.relations.classifier import load_model
    from ebert.relations.train import search as run
    from ebert.report.training_curves import draw_expected_maximum

    result = run(
        data, lambda: load_model(model, mode, vectors), out, mode=mode, rates=learning_rate, epochs=epochs,
        ids=_read_ids(ids), command=_command(), say=_say, **how,
    )  # fmt: skip
    drawn = f"the curve of the expected maximum is in {out / CURVE}"
    try:
        draw_expected_maximum({mode: result}, out / CURVE, score="macro F1")
    except EbertError as error:  # no matplotlib: the best classifier is there all the same
        drawn = f"no plot of the search: {error}"
    _say(drawn)
    if as_json:
        print_json(result)
    else:
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


def _read_ids(path: Path | None) -> dict[int, str] | None:
    from ebert.vectors.wikidata_ids import read_ids

    return read_ids(path) if path else None


def _command() -> str:
    return shlex.join(["ebert", *sys.argv[1:]])


def _say(line: str) -> None:
    from ebert.finetuning.run import leads

    if leads():
        click.echo(line, err=True)
