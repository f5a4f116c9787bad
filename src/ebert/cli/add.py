"""``ebert vectors add``, ``add-many`` and ``remove``: entities that nobody trained on, or nobody wants."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert.cli.common import json_option, print_json
from ebert.errors import EbertError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ebert.vectors.add import AddReport, RejectedRow

SHOWN = 20  # rows that were left out


@click.command("add")
@click.argument("store")
@click.argument("title")
@click.option("--description", help="A paragraph about it, from which its vector is made.")
@click.option("--vector", help="Instead: a file with the numbers, .npy or text ('-': standard input).")
@click.option("--alias", multiple=True, help="Another name to find it by; may be given several times.")
@click.option("--wikidata", help="Its Wikidata id, e.g. Q42.")
@click.option("--id", "id_", help="An id of your own to find it by.")
@click.option("--replace", is_flag=True, help="Give an entity that is there another vector.")
@json_option
def add(
    store: str,
    title: str,
    description: str | None,
    vector: str | None,
    alias: tuple[str, ...],
    wikidata: str | None,
    id_: str | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Add an entity to a store, at once and for all who have it open.

    \b
    Example:
      ebert vectors add enwiki-vectors "Zorblax Inc." --alias Zorblax \\
        --description "Zorblax Inc. is a Danish maker of wind turbines, founded in Aarhus in 1987."
    """
    from ebert.text.letters import remark
    from ebert.text.titles import wikidata_id
    from ebert.vectors.store import Vectors

    number = wikidata_id(wikidata) if wikidata else None
    if wikidata and number is None:
        raise EbertError(f"{wikidata!r} is not a Wikidata id such as Q42")
    if (vector is None) == (description is None):
        raise EbertError(f"{title!r} needs a description or a vector: give one of --description and --vector")
    with Vectors.open(store) as vectors:
        entity = vectors.add(
            title, None if vector is None else _read_vector(vector), description=description, aliases=alias,
            wikidata=number, id=id_, replace=replace,
        )  # fmt: skip
        size = len(vectors)
    if as_json:
        print_json({"title": entity.title, "oddity": entity.oddity, "entities": size})
    else:
        click.echo(f"added {entity.title}{remark(entity.title)}; {store} now has {size:,} entities")


@click.command("add-many")
@click.argument("store")
@click.argument("file")
@click.option("--replace", is_flag=True, help="Give entities that are there other vectors.")
@click.option("--strict", is_flag=True, help="Exit with 2 if any row was left out.")
@click.option("--rejected", type=click.Path(), help="Write all rows that were left out, with reasons, as JSON lines.")
@json_option
def add_many(store: str, file: str, replace: bool, strict: bool, rejected: str | None, as_json: bool) -> int:
    """Add a whole knowledge base to a store: .csv, .tsv or .jsonl (and .gz or .bz2).

    Columns (fields): title, description, and if you like aliases (a list, or names with | between them), id (your
    own) and wikidata. Rows that cannot be added are left out and listed; the exit code is 2 if none could be.
    After Ctrl-C, what was added so far stays.

    \b
    Example:
      ebert vectors add-many enwiki-vectors products.csv
    """
    from ebert._io.progress import progress
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        before = len(vectors)
        size = Path(file).stat().st_size if Path(file).is_file() else None
        try:
            with progress("add", total=size, unit="B") as advance:
                report = vectors.add_many(file, replace=replace, advance=advance)
        except (KeyboardInterrupt, EbertError, OSError):
            if more := len(vectors) - before:
                click.echo(f"{more:,} entities were added before this", err=True)
            raise
        entities = len(vectors)
    if rejected is not None:
        _write_rejected(Path(rejected), report.bad)
    for row in report.bad[:SHOWN]:
        click.echo(f"line {row.number}{f', {row.title!r}' if row.title else ''}: {row.reason}", err=True)
    if len(report.bad) > SHOWN:
        click.echo(f"... and {len(report.bad) - SHOWN:,} more{'' if rejected else ' (--rejected FILE)'}", err=True)
    if as_json:
        unused = sorted(report.unused)
        print_json({"added": report.added, "replaced": report.replaced, "left out": len(report.bad),
                    "shared names": report.shared_names, "odd titles": report.odd, "unused": unused,
                    "entities": entities})  # fmt: skip
    else:
        _show(report, store, entities)
    return 2 if not report.added or (strict and report.bad) else 0


@click.command("remove")
@click.argument("store")
@click.argument("title", nargs=-1, required=True)
@json_option
def remove(store: str, title: tuple[str, ...], as_json: bool) -> None:
    """Remove entities from a store, at once and for all who have it open.

    Those that were added are gone; those that the store was made with are hidden until they are added again.

    \b
    Example:
      ebert vectors remove enwiki-vectors "Zorblax Inc."
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        entities = {name: vectors.known(name) for name in title}  # none is removed if one is unknown
        removed = [vectors.remove(name).title for name in dict.fromkeys(one.title for one in entities.values())]
        size = len(vectors)
    if as_json:
        print_json({"removed": removed, "entities": size})
    else:
        click.echo(f"removed {', '.join(removed)}; {store} now has {size:,} entities")


def _show(report: "AddReport", store: str, entities: int) -> None:
    replaced = f" ({report.replaced:,} of them in place of others)" if report.replaced else ""
    left_out = f"left {len(report.bad):,} rows out"
    click.echo(f"added {report.added:,} entities{replaced}, {left_out}; {store} now has {entities:,} entities")
    if report.shared_names:
        names = f"{report.shared_names:,} other names mean something else too"
        click.echo(f"{names}: they name entities in texts, but do not find them")
    if report.odd:
        click.echo(f"titles that mix letters of two scripts in a word, and may look like others: {report.odd:,}")
    if report.unused:
        click.echo(f"not used: {', '.join(sorted(report.unused))}")


def _write_rejected(path: Path, rows: "Sequence[RejectedRow]") -> None:
    import json

    from ebert._io import files

    with files.replacing(path, "w") as file:
        for row in rows:
            fields = {"line": row.number, "title": row.title, "reason": row.reason}
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")


def _read_vector(path: str) -> "NDArray[Any]":
    import numpy as np

    try:
        if path.endswith(".npy"):
            array: NDArray[Any] = np.load(path, allow_pickle=False)
            if not isinstance(array, np.ndarray):
                raise ValueError("it is an archive of arrays")
            return array
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        return np.asarray([float(number) for number in text.replace(",", " ").strip("[] \n").split()])
    except FileNotFoundError:
        raise EbertError(f"there is no file {path}") from None
    except (OSError, ValueError, EOFError) as error:
        raise EbertError(f"{path} is not a vector: {error}") from None
