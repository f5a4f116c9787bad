"""``ebert vectors``: stores of word and entity vectors."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ebert._io.progress import say
from ebert.cli import common
from ebert.errors import EbertError
from ebert.vectors.layout import StorageDtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMATS = ("auto", "text", "wikipedia2vec", "word2vec-binary", "numpy")
KINDS = ("prefix", "words", "entities")
SHOWN = 20  # rows that were left out


@click.group("vectors")
def group() -> None:
    """Import, look at and change stores of word and entity vectors.

    \b
    Example:
      ebert vectors import enwiki.txt --out enwiki-vectors
      ebert vectors find enwiki-vectors "Jean Marais"
    """


@group.command("add")
@click.argument("store")
@click.argument("title")
@click.option("--description", help="A paragraph about it, from which its vector is made.")
@click.option("--vector", help="Instead: a file with the numbers, .npy or text ('-': standard input).")
@click.option("--alias", "aliases", multiple=True, help="Another name to find it by; may be given several times.")
@click.option("--wikidata", help="Its Wikidata id, e.g. Q42.")
@click.option("--id", help="An id of your own to find it by.")
@click.option("--replace", is_flag=True, help="Give an entity that is there another vector.")
@common.json_option
def add(
    store: str, title: str, description: str | None, vector: str | None, wikidata: str | None, as_json: bool, **how: Any
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
        given = None if vector is None else _read_vector(vector)
        entity = vectors.add(title, given, description=description, wikidata=number, **how)
        size = len(vectors)
    if as_json:
        common.print_json({"title": entity.title, "oddity": entity.oddity, "entities": size})
    else:
        click.echo(f"added {entity.title}{remark(entity.title)}; {store} now has {size:,} entities")


@group.command("add-many")
@click.argument("store")
@click.argument("file")
@click.option("--replace", is_flag=True, help="Give entities that are there other vectors.")
@click.option("--strict", is_flag=True, help="Exit with 2 if any row was left out.")
@click.option("--rejected", type=click.Path(), help="Write all rows that were left out, with reasons, as JSON lines.")
@common.json_option
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
    from ebert._io.records import write_lines
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        before = len(vectors)
        try:
            with progress("add", total=common.size_of(file), unit="B") as advance:
                report = vectors.add_many(file, replace=replace, advance=advance)
        except (KeyboardInterrupt, EbertError, OSError):
            if more := len(vectors) - before:
                say(f"{more:,} entities were added before this")
            raise
        entities = len(vectors)
    if rejected is not None:
        rows = ({"line": row.number, "title": row.title, "reason": row.reason} for row in report.bad)
        write_lines(Path(rejected), rows)
    for row in report.bad[:SHOWN]:
        say(f"line {row.number}{f', {row.title!r}' if row.title else ''}: {row.reason}")
    if len(report.bad) > SHOWN:
        say(f"... and {len(report.bad) - SHOWN:,} more{'' if rejected else ' (--rejected FILE)'}")
    facts = {
        "added": report.added, "replaced": report.replaced, "left out": len(report.bad),
        "shared names": report.shared_names, "odd titles": report.odd, "unused": sorted(report.unused),
        "entities": entities,
    }  # fmt: skip
    common.print_result(facts, as_json, lambda facts: _show_added(facts, store))
    return 2 if not report.added or (strict and report.bad) else 0


def _show_added(facts: dict[str, Any], store: str) -> None:
    replaced = f" ({facts['replaced']:,} of them in place of others)" if facts["replaced"] else ""
    left_out = f"left {facts['left out']:,} rows out"
    click.echo(
        f"added {facts['added']:,} entities{replaced}, {left_out}; {store} now has {facts['entities']:,} entities"
    )
    if facts["shared names"]:
        names = f"{facts['shared names']:,} other names mean something else too"
        click.echo(f"{names}: they name entities in texts, but do not find them")
    if facts["odd titles"]:
        click.echo(
            f"titles that mix letters of two scripts in a word, and may look like others: {facts['odd titles']:,}"
        )
    if facts["unused"]:
        click.echo(f"not used: {', '.join(facts['unused'])}")


@group.command("remove")
@click.argument("store")
@click.argument("title", nargs=-1, required=True)
@common.json_option
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
        common.print_json({"removed": removed, "entities": size})
    else:
        click.echo(f"removed {', '.join(removed)}; {store} now has {size:,} entities")


@group.command("import")
@click.argument("source", nargs=-1, required=True)
@click.option("--out", required=True, help="The folder of the new store.")
@click.option("--format", type=click.Choice(FORMATS), default="auto", show_default=True)
@click.option("--kind", type=click.Choice(KINDS), default="prefix", show_default=True,
              help="What the names are: entities where they begin with ENTITY/ and words elsewhere, or all of one "
              "kind.")  # fmt: skip
@click.option("--names", help="For numpy: the file with the names of the rows, one a line.")
@click.option("--dtype", type=click.Choice(get_args(StorageDtype)), default="float32", show_default=True)
@click.option("--licence", default="unknown", help="Noted in the store, e.g. 'CC BY-SA 4.0 (Wikipedia)'.")
@common.overwrite_option
@common.json_option
def import_(source: tuple[str, ...], out: str, as_json: bool, **how: Any) -> None:
    """Make a store of files of vectors: Wikipedia2Vec (text or model), word2vec (text or binary), GloVe, numpy.

    Memory stays small however large the files are. Text may be compressed (.gz, .bz2).

    \b
    Example:
      ebert vectors import enwiki_20180420_300d.txt.bz2 --out enwiki-vectors
    """
    from ebert._io.progress import progress
    from ebert.vectors.formats.importer import import_vectors

    with progress("import", total=common.size_of(*source) or 0, unit="B") as advance:
        store = import_vectors(source, out, advance=advance, **how)
    common.print_result(store.describe(), as_json, _show_store)
    store.close()


@group.command("info")
@click.argument("store")
@click.option("--verify", is_flag=True, help="Read all files and compare them with their hashes.")
@common.json_option
def info(store: str, verify: bool, as_json: bool) -> None:
    """Print what is in a store.

    \b
    Example:
      ebert vectors info enwiki-vectors --verify
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store, verify=verify) as vectors:
        common.print_result(vectors.describe(), as_json, _show_store)


@group.command("find")
@click.argument("store")
@click.argument("name", nargs=-1, required=True)
@common.json_option
def find(store: str, name: tuple[str, ...], as_json: bool) -> int:
    """Look entities up by title, redirect, Wikipedia URL, Wikidata or own id; for a miss, show the closest titles.

    \b
    Example:
      ebert vectors find enwiki-vectors "jean_Marais" Q168359
    """
    from ebert.text.letters import listed
    from ebert.vectors.store import Vectors

    missed = False
    with Vectors.open(store) as vectors:
        for query in name:
            entity = vectors.find(query)
            missed = missed or entity is None
            close = vectors.suggest(query) if entity is None else []
            own = vectors.id_of(entity) if entity is not None else None
            if as_json:
                common.print_json({"name": query, "title": entity and entity.title, "row": entity and entity.row,
                            "count": entity and entity.count, "wikidata": entity and entity.qid,
                            "id": own, "oddity": entity and entity.oddity,
                            "added": bool(entity and entity.added), "nearest": close})  # fmt: skip
            elif entity is None:
                click.echo(f"{query}: no such entity; nearest titles: {listed(close) or 'none'}")
            else:
                linked = None if entity.count is None else f"linked {entity.count:,} times"
                row = f"row {entity.row}" + (" (added)" if entity.added else "")
                facts = row, linked, entity.qid, own and f"id {own}", entity.oddity
                click.echo(f"{query}: {entity.title} ({', '.join(filter(None, facts))})")
    return 2 if missed else 0


@group.command("nearest")
@click.argument("store")
@click.argument("name")
@click.option("--word", is_flag=True, help="NAME is a word, not an entity.")
@click.option("--kind", type=click.Choice(["entities", "words", "both"]), default="entities", show_default=True)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True)
@common.json_option
def nearest(store: str, name: str, as_json: bool, **how: Any) -> None:
    """Show the nearest entities or words, by cosine.

    \b
    Example:
      ebert vectors nearest enwiki-vectors "Jean Marais" --kind both --top 5
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        found = vectors.nearest(name, **how)
    if as_json:
        common.print_json([{"kind": n.kind, "name": n.name, "similarity": n.similarity} for n in found])
    else:
        common.print_table((f"{n.similarity:.3f}", n.kind, n.name) for n in found)


@group.command("export")
@click.argument("store")
@click.argument("file")
@click.option("--decimals", type=click.IntRange(1, 9),
              help="Significant digits.  [default: as many as give the same numbers again]")  # fmt: skip
@common.overwrite_option
@common.json_option
def export(store: str, file: str, decimals: int | None, overwrite: bool, as_json: bool) -> None:
    """Write a store in Wikipedia2Vec's text format.

    \b
    Example:
      ebert vectors export enwiki-vectors enwiki.txt
    """
    from ebert._io.progress import progress
    from ebert.vectors.formats.exporter import export_text
    from ebert.vectors.store import Vectors

    if file.endswith((".gz", ".bz2")):
        raise EbertError(f"{file} would not be compressed; write plain text and compress it afterwards")
    if Path(file).is_dir() or (Path(file).exists() and not overwrite):
        raise EbertError(f"{file} exists; choose another place or allow it to be overwritten (--overwrite)")
    with Vectors.open(store) as vectors, progress("export", total=vectors.info.words + len(vectors)) as advance:
        lines = export_text(vectors, file, decimals=decimals, advance=advance)
    if as_json:
        common.print_json({"file": file, "lines": lines})
    else:
        click.echo(f"wrote {lines:,} vectors to {file}")


def _show_store(facts: dict[str, Any]) -> None:
    made = facts.pop("made")
    common.print_facts({**facts, **{f"made: {name}": value for name, value in made.items()}})


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
