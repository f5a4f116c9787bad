"""``ebert align``: fit W and write a model."""

from dataclasses import asdict
from pathlib import Path

import click

from ebert._options import cli_options
from ebert.cli.common import device_options, json_option, overwrite_option, print_facts, print_json, torch_dtype
from ebert.errors import EbertError
from ebert.model.options import AlignmentOptions


@click.command("align")
@click.argument("store")
@click.option(
    "--bert", default="bert-base-cased", show_default=True, help="The encoder: hub name, name@revision or local folder."
)
@click.option("--out", required=True, help="The folder of the new model.")
@cli_options(AlignmentOptions)
@click.option("--include-vectors", is_flag=True, help="Copy the store into the model folder.")
@device_options
@overwrite_option
@json_option
def command(
    store: str,
    bert: str,
    out: str,
    include_vectors: bool,
    device: str | None,
    dtype: str | None,
    overwrite: bool,
    as_json: bool,
    options: AlignmentOptions,
) -> None:
    """Fit the map W between a store's vectors and an encoder's wordpieces, and write the model.

    The defaults are the paper's: least squares, all words alike.

    \b
    Example:
      ebert align enwiki-vectors --bert bert-base-cased --out enwiki-ebert
    """
    from ebert._io import files
    from ebert.model.ebert import EBert
    from ebert.model.folder import INFO
    from ebert.vectors.store import Vectors

    target = Path(out).absolute()
    if Path(store).resolve().is_relative_to(target.resolve()):
        raise EbertError(f"the store {store} lies in {out}, which the model would replace; choose another place")
    files.refuse_existing(target, overwrite=overwrite, marker=INFO)
    model = EBert.fit(bert, Vectors.open(store), options=options, device=device, dtype=torch_dtype(dtype))
    with files.replacing_folder(target, overwrite=overwrite, marker=INFO) as folder:
        model.save_pretrained(folder, include_vectors=include_vectors, include_encoder=False)
    assert model.alignment is not None
    report = asdict(model.alignment.report)
    if as_json:
        print_json({"model": out, "options": asdict(options), "report": report})
        return
    click.echo(f"wrote {out}")
    print_facts(
        {
            "words that are wordpieces": report["pairs"],
            "R² on them": _figure(report["r2"]),
            "words kept back": report["held_out_pairs"],
            "R² on words kept back": _figure(report["held_out_r2"]),
            "own wordpiece nearest": _figure(report["top1"], "%"),
            "own wordpiece among ten nearest": _figure(report["top10"], "%"),
        }
    )


def _figure(value: float | None, unit: str = "") -> str:
    if value is None:
        return "-"
    return f"{value:.1f} %" if unit else f"{value:.3f}"
