"""``ebert export``: a plain transformers checkpoint with entities as added tokens."""

import click

from ebert._io.progress import waiting
from ebert.cli.common import json_option, overwrite_option, print_json, vectors_option
from ebert.model.folder import find


@click.command("export")
@click.argument("model")
@click.option("--entities", required=True, help="A file of titles, one per line.")
@click.option("--out", required=True, help="The folder of the new checkpoint.")
@vectors_option
@click.option("--predict-entities", is_flag=True, help="Let entities be answers too, not only inputs.")
@overwrite_option
@json_option
def command(
    model: str, entities: str, out: str, vectors: str | None, predict_entities: bool, overwrite: bool, as_json: bool
) -> None:
    """Write a checkpoint for plain transformers in which chosen entities are tokens, written [[Title]].

    \b
    Example:
      ebert export enwiki-ebert --entities titles.txt --out bert-with-my-entities
    """
    from pathlib import Path

    from ebert._io import files
    from ebert.text.titles import read_titles

    files.refuse_existing(Path(out), overwrite=overwrite)
    titles = read_titles(entities)
    find(model, None, vectors)
    with waiting(f"loading {model}"):
        from ebert.model.ebert import EBert

        loaded = EBert.from_pretrained(model, vectors=vectors)
    tokens = loaded.export(titles, out, predict_entities=predict_entities, overwrite=overwrite)
    if as_json:
        print_json({"folder": out, "tokens": tokens})
        return
    some = next(iter(tokens.values()))
    click.echo(f"wrote {out}: {len(tokens):,} entities as tokens, such as {some}")
    click.echo(f"Write '{some} / name' for E-BERT-concat and '{some}' alone for E-BERT-replace.")
