"""``ebert lama``: the benchmark itself."""

from pathlib import Path

import click

from ebert._io.progress import waiting
from ebert.cli.common import PATH, device_option, json_option, overwrite_option, print_json, print_table
from ebert.cli.lazy import Group
from ebert.errors import EbertError
from ebert.model.folder import find
from ebert.probing.filters import DROPPED, FILTERS, NAME_BERT, UHN


@click.group("lama", cls=Group)
def group() -> None:
    """Make LAMA-UHN from LAMA.

    \b
    Example:
      ebert lama uhn lama.tar.xz --out lama-uhn
    """


@group.command("uhn")
@click.argument("data", type=PATH)
@click.option("--out", type=PATH, required=True, help="The folder to write.")
@click.option("--bert", default=NAME_BERT, show_default=True, help="The encoder to ask about names.")
@device_option
@overwrite_option
@json_option
def uhn(data: Path, out: Path, bert: str, device: str | None, overwrite: bool, as_json: bool) -> None:
    """Write LAMA-UHN: LAMA without questions whose subject's name gives the answer away.

    DATA is LAMA's folder or archive. The new folder has LAMA's own format. Its file dropped.jsonl says which rule
    removed which question.

    \b
    Example:
      ebert lama uhn lama.tar.xz --out lama-uhn
    """
    from ebert._io import files
    from ebert._io.progress import progress
    from ebert.probing.filters import write_uhn

    files.refuse_existing(out, overwrite=overwrite, marker=DROPPED)  # before the encoder is loaded
    if not data.exists():
        raise EbertError(f"there is no LAMA at {data}: give its folder or archive")
    find(None, bert)
    with waiting(f"loading {bert}"):
        from ebert.model.ebert import EBert

        model = EBert.plain(bert, device=device)
    with progress("names", unit="names") as advance:
        deleted, unjudged = write_uhn(data, out, model, overwrite=overwrite, advance=advance)
    for reason, count in unjudged.items():
        click.echo(f"copied as they are: {count:,} lines ({reason})", err=True)
    if as_json:
        for row in deleted:
            print_json({"relation": row.relation, "questions": row.questions, **row.by_rule})
        return
    rules = [str(FILTERS[name].rule) for name in UHN]
    rows: list[tuple[str, ...]] = [("relation", "questions", *(rule.replace("-", " ") for rule in rules), "left")]
    for row in deleted:
        gone = [row.by_rule[rule] for rule in rules]
        rows.append((row.relation, *(f"{count:,}" for count in (row.questions, *gone, row.questions - sum(gone)))))
    print_table(rows)
