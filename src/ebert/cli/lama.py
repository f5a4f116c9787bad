"""``ebert lama``: the benchmark itself."""

from pathlib import Path

import click

from ebert.cli.common import json_option, overwrite_option, print_json, print_table


@click.group("lama")
def group() -> None:
    """Make LAMA-UHN from LAMA."""


@group.command("uhn")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write.")
@click.option("--bert", default="bert-base-cased", show_default=True, help="Whom to ask about names.")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@overwrite_option
@json_option
def uhn(data: Path, out: Path, bert: str, device: str | None, overwrite: bool, as_json: bool) -> None:
    """Write LAMA-UHN: LAMA without questions whose subject's name gives the answer away.

    DATA is LAMA's folder or archive. The new folder has LAMA's own format, and a dropped.jsonl that says which rule
    took out which question.

    \b
    Example:
      ebert lama uhn lama.tar.xz --out lama-uhn
    """
    from ebert._io import files
    from ebert._io.progress import progress
    from ebert.model.ebert import EBert
    from ebert.probing.uhn import DROPPED, write_uhn

    files.refuse_existing(out, overwrite=overwrite, marker=DROPPED)  # before the encoder is loaded
    with progress("names", unit="names") as advance:
        deleted, unjudged = write_uhn(data, out, EBert.plain(bert, device=device), overwrite=overwrite, advance=advance)
    for reason, count in unjudged.items():
        click.echo(f"copied as they are: {count:,} lines ({reason})", err=True)
    if as_json:
        for row in deleted:
            print_json({"relation": row.relation, "questions": row.questions, "string-match": row.string_match, "name": row.name})  # fmt: skip # noqa: E501
        return
    rows = [("relation", "questions", "string match", "name", "left")]
    for row in deleted:
        left = row.questions - row.string_match - row.name
        rows.append((row.relation, f"{row.questions:,}", f"{row.string_match:,}", f"{row.name:,}", f"{left:,}"))
    print_table(rows)
