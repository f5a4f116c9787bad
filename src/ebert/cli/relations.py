"""``ebert relations``: classify the relation between two entities in a sentence."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert.cli.common import json_option, model_folder, print_facts, print_json
from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.model import EBert

MODES = ("bert", "concat", "replace", "wikipedia2vec-concat", "wikipedia2vec-replace")


@click.group("relations")
def group() -> None:
    """Classify the relation between two entities in a sentence."""


@group.command("train")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--model", required=True, help="A model made by 'ebert align', or 'starter'; for --mode bert an encoder.")
@click.option("--mode", type=click.Choice(MODES), required=True, help="How entities are fed.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the run; run again to go on.")
@click.option("--epochs", type=int, default=10, show_default=True, help="Passes over the training set.")
@click.option("--learning-rate", type=float, default=5e-5, show_default=True, help="Highest rate of the schedule.")
@click.option("--batch", type=int, default=32, show_default=True, help="Samples in a step.")
@click.option(
    "--warmup", type=float, default=0.1, show_default=True, help="Share of the steps in which the rate rises."
)
@click.option("--weight-decay", type=float, default=0.01, show_default=True, help="AdamW's weight decay.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the new layer, dropout and order.")
@click.option("--samples", type=int, help="Training samples to use, evenly over the relations.  [default: all]")
@click.option("--dev-samples", type=int, help="Dev samples to choose the best epoch by.  [default: all]")
@click.option("--checkpoint-steps", type=int, default=125, show_default=True, help="Steps between checkpoints.")
@click.option("--precision", type=click.Choice(["fp32", "bf16", "fp16"]), default="fp32", show_default=True,
              help="Mixed precision is for GPUs.")  # fmt: skip
@click.option("--ids", type=click.Path(path_type=Path), help="JSON with Wikidata ids and titles, for stores without.")
@click.option("--ids-only", is_flag=True, help="Keep to the entities that the data names.")
@click.option("--threshold", type=float, default=0.5, show_default=True,
              help="Share that the commonest entity of a surface must have.")  # fmt: skip
@click.option("--vectors", help="Where the model's store is now, if not where it was.")
@click.option("--device", help="cpu, or whatever the Trainer finds.  [default: a GPU if there is one]")
@json_option
def train(
    data: Path, model: str, mode: str, out: Path, ids: Path | None, ids_only: bool, threshold: float,
    vectors: str | None, device: str | None, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Fine-tune a classifier on DATA, a folder with train and dev (.json of FewRel, or .jsonl).

    \b
    Example:
      ebert relations train fewrel --model enwiki-ebert --mode concat --epochs 3 --out runs/concat
    """
    _need_accelerate()
    from ebert.relations.options import TrainingOptions
    from ebert.relations.resolving import ResolvingOptions, read_ids
    from ebert.relations.run import train as run

    metrics = run(
        data, _load(model, mode, vectors), out, mode=mode, options=TrainingOptions(**options),
        resolving=ResolvingOptions(ids_only=ids_only, threshold=threshold), ids=read_ids(ids) if ids else None,
        device=device, command=" ".join(["ebert", *sys.argv[1:]]), say=lambda line: click.echo(line, err=True),
    )  # fmt: skip
    if as_json:
        print_json(metrics)
    else:
        print_facts(
            {"best epoch": metrics["best epoch"], **{f"dev {k}": f"{v:.2f}" for k, v in metrics["dev"].items()}}
        )


@group.command("evaluate")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--samples", type=click.IntRange(min=1), help="How many, evenly over the relations.  [default: all]")
@click.option("--keep", is_flag=True, help="Also write the figures and all answers into RUN.")
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
    from ebert.relations.classifier import RelationClassifier
    from ebert.relations.evaluating import evaluate_file

    classifier = RelationClassifier.from_pretrained(run, vectors=vectors, device=device)
    evaluation = evaluate_file(classifier, data, most=samples)
    value = evaluation.as_json()
    if keep:
        evaluation.write(run, data.stem)
    if as_json:
        print_json(value)
    else:
        print_facts({**{f"macro {k}": f"{v:.2f}" for k, v in value["macro"].items()}, "samples": value["samples"],
                     "covered": value["covered"]})  # fmt: skip


def _load(model: str, mode: str, vectors: str | None) -> "EBert":
    from ebert.model import EBert

    folder = Path(model_folder(model)).expanduser()
    if (folder / "ebert.json").is_file() or mode != "bert":
        return EBert.from_pretrained(folder, vectors=vectors)
    return EBert.plain(model)


def _need_accelerate() -> None:
    from importlib.util import find_spec

    if find_spec("accelerate") is None:
        raise EbertError("training needs accelerate: pip install 'ebert[relations]'")
