"""``ebert vectors``: stores of word and entity vectors."""

from pathlib import Path
from typing import Any, get_args

import click

from ebert._io.progress import say
from ebert.cli import common, teach
from ebert.cli.lazy import Group
from ebert.errors import EbertError
from ebert.vectors.layout import StorageDtype

FORMATS = ("auto", "text", "wikipedia2vec", "word2vec-binary", "numpy")
KINDS = ("prefix", "words", "entities")


@click.group("vectors", cls=Group, commands={"train": "train:command"})
def group() -> None:
    """Import, inspect and change stores of word and entity vectors.

    \b
    Example:
      ebert vectors import enwiki.txt --out enwiki-vectors
      ebert vectors find starter "Marie Curie"
      ebert vectors copy starter my-entities
    """


for command in (teach.copy, teach.add, teach.add_many, teach.remove, teach.list_, teach.check):
    group.add_command(command)


@group.command("import")
@click.argument("source", nargs=-1, required=True)
@click.option("--out", required=True, help="The folder of the new store.")
@click.option("--format", type=click.Choice(FORMATS), default="auto", show_default=True)
@click.option("--kind", type=click.Choice(KINDS), default="prefix", show_default=True,
              help="What the names are. prefix: entities if they begin with ENTITY/, else words; otherwise all words, "
              "or all entities.")  # fmt: skip
@click.option("--names", help="For numpy: the file with the names of the rows, one per line.")
@click.option("--dtype", type=click.Choice(get_args(StorageDtype)), default="float32", show_default=True)
@click.option("--licence", default="unknown", help="The licence to note in the store, e.g. 'CC BY-SA 4.0 (Wikipedia)'.")
@common.overwrite_option
@common.json_option
def import_(source: tuple[str, ...], out: str, as_json: bool, **how: Any) -> None:
    """Make a store from files of vectors: Wikipedia2Vec (text or model), word2vec (text or binary), GloVe, numpy.

    Files may be larger than memory. Text may be compressed (.gz, .bz2).

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
      ebert vectors info starter --verify
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store, verify=verify) as vectors:
        common.print_result(vectors.describe(), as_json, _show_store)


@group.command("find")
@click.argument("store")
@click.argument("name", nargs=-1, required=True)
@common.json_option
def find(store: str, name: tuple[str, ...], as_json: bool) -> int:
    """Look up entities by title, redirect, Wikipedia URL, Wikidata id or your own id.

    If a name is not found, show the closest titles.

    \b
    Example:
      ebert vectors find starter "marie_Curie" "Jean Sibelius"
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


@group.command("merged")
@click.argument("store")
@common.json_option
def merged(store: str, as_json: bool) -> None:
    """List the entities of a store that were merged into others, and why (see 'ebert link candidates').

    \b
    Example:
      ebert vectors merged linking-vectors > merged.txt
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        found = vectors.merged()
    if as_json:
        common.print_json([{"title": title, "into": into, "why": why} for title, into, why in found])
    elif found:
        common.print_table(found)
    else:
        say(f"no entities of {store} were merged")


@group.command("nearest")
@click.argument("store")
@click.argument("name")
@click.option("--word", is_flag=True, help="NAME is a word, not an entity.")
@click.option("--kind", type=click.Choice(["entities", "words", "both"]), default="entities", show_default=True)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--by", type=click.Choice(["csls", "cosine"]), default="csls", show_default=True,
              help="Sort by cosine, or by csls: cosine corrected for hubs (entities that are "
              "close to everything).")  # fmt: skip
@common.json_option
def nearest(store: str, name: str, as_json: bool, **how: Any) -> None:
    """Show the nearest entities or words: their score, their cosine and their names.

    \b
    Example:
      ebert vectors nearest starter "Marie Curie" --kind both --top 5
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        found = vectors.nearest(name, **how)
    if as_json:
        common.print_json([
            {"kind": n.kind, "name": n.name, "similarity": n.similarity, "score": n.score} for n in found
        ])  # fmt: skip
    else:
        rows = [(f"{n.score:.3f}", f"{n.similarity:.3f}", n.kind, n.name) for n in found]
        common.print_table([("score", "cosine", "kind", "name"), *rows])


@group.command("export")
@click.argument("store")
@click.argument("file")
@click.option("--decimals", type=click.IntRange(1, 9),
              help="Significant digits.  [default: as many as the numbers have]")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
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
    common.print_facts({**facts, **{f"made: {name}": _in_words(value) for name, value in made.items()}})


def _in_words(value: Any) -> str | int | float:
    """Write nested facts on one line: names and values, without the brackets and quotation marks of Python."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return "; ".join(str(_in_words(each)) for each in value)
    return "yes" if value is True else "no" if value is False else value
