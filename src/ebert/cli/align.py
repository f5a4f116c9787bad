"""``ebert align``: fit W and write a model."""

from dataclasses import asdict
from pathlib import Path

import click

from ebert._options import cli_options
from ebert.cli.common import device_option, dtype_option, json_option, overwrite_option, print_facts, print_json
from ebert.errors import EbertError
from ebert.model.options import AlignmentOptions


@click.command("align")
@click.argument("store")
@click.option("--bert", default="bert-base-cased", show_default=True,
              help="The encoder: hub name, name@revision or local folder.")  # fmt: skip
@click.option("--out", required=True, help="The folder of the new model.")
@cli_options(AlignmentOptions)
@click.option("--include-vectors", is_flag=True, help="Copy the store into the model folder.")
@device_option
@dtype_option
@overwrite_option
@json_option
def command(
    store: str, bert: str, out: str, options: AlignmentOptions, include_vectors: bool, device: str | None,
    dtype: str | None, overwrite: bool, as_json: bool,
) -> None:  # fmt: skip
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
    import torch

    precision = getattr(torch, dtype) if dtype else None
    model = EBert.fit(bert, Vectors.open(store), options=options, device=device, dtype=precision)
    with files.replacing_folder(target, overwrite=overwrite, marker=INFO) as folder:
        model.save_pretrained(folder, include_vectors=include_vectors, include_encoder=False)
    assert model.alignment is not None
    report = asdict(model.alignment.report)
    if as_json:
        print_json({"model": out, "options": asdict(options), "report": report})
        return
    click.echo(f"wrote {out}")
    figures = (("R² on them", "r2", "{:.3f}"), ("words kept back", "held_out_pairs", "{:,}"),
               ("R² on words kept back", "held_out_r2", "{:.3f}"), ("own wordpiece nearest", "top1", "{:.1f} %"),
               ("own wordpiece among ten nearest", "top10", "{:.1f} %"))  # fmt: skip
    shown = {words: "-" if report[name] is None else form.format(report[name]) for words, name, form in figures}
    print_facts({"words that are wordpieces": report["pairs"], **shown})
