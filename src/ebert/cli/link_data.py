"""The commands of ``ebert link`` about data: candidates, training documents from Wikipedia, evaluation."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ebert._io.progress import say, waiting
from ebert._options import cli_options
from ebert.cli import common
from ebert.errors import EbertError
from ebert.linking.options import CandidateOptions, LinkPrecision, Mask, PriorOptions, Variant, WikipediaOptions

if TYPE_CHECKING:
    from ebert.linking.candidates.dictionary import Dictionary
    from ebert.linking.candidates.generator import CandidateGenerator
    from ebert.linking.evaluate import Links
    from ebert.linking.linker import Linker
    from ebert.vectors.store import Vectors
    from ebert.wikipedia.corpus import Corpus

LAYOUT_HELP = "The layout of the data: jsonl, zelda, kilt, elevant, aida, knowbert or nif; detected by default."
IDS_HELP = (
    "A file with the titles of Wikidata ids, if the gold has ids: JSON {'Q42': 'Title'}, or lines 'Title TAB Q42'."
)
given_option = click.option(
    "--given", help="A file with your own candidates, to use instead of the store's mention table."
)


@click.command("candidates")
@click.argument("vectors")
@click.option("--out", required=True, help="The folder of the new store; the vectors themselves are shared.")
@click.option("--corpus", help="Count the mention table again from this corpus.")
@click.option("--table", help="Instead: use a table in KnowBert's format, 'mention TAB freq TAB id,prob,Title ...'.")
@click.option(
    "--dictionary",
    help="With --corpus: merge a dictionary of names into the table: 'corenlp', which is "
    "fetched from Maven once (227 MB), or a file of lines 'mention TAB Title_with_underscores TAB score'.",
)
@click.option("--leave-out", multiple=True, help="Articles to leave out of the counts: test data, or a list of titles.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Number of threads for counting.")
@click.option("--merge/--no-merge", default=True, show_default=True,
              help="Merge entities whose redirects or spelling show that they are the same.")  # fmt: skip
@click.option("--keep-apart", help="A file of titles, one per line, that must not be merged.")
@common.overwrite_option
@common.json_option
def candidates(
    vectors: str, out: str, corpus: str | None, table: str | None, dictionary: str | None, leave_out: tuple[str, ...],
    threads: int, merge: bool, keep_apart: str | None, overwrite: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make a store for linking: the same VECTORS with another mention table.

    With --leave-out, test articles are left out of the counts. Link probabilities are counted in pages that have links.
    A dictionary adds names that the corpus does not link; the command also counts how often they occur in its text.
    Without --corpus and --table the mention table stays as it is. Entities that are the same, such as Apple Inc. and
    Apple Inc, are merged: 'ebert vectors merged' lists them, and --no-merge undoes it.

    \b
    Example:
      ebert link candidates enwiki-vectors --corpus enwiki --leave-out test_wned-wiki.jsonl --out linking-vectors
      ebert link candidates enwiki-vectors --corpus enwiki --dictionary corenlp --out linking-vectors
      ebert link candidates enwiki-vectors --table prob_yago_crosswikis_wikipedia_p_e_m.txt --out linking-vectors
    """
    from ebert.linking.candidates.merging import SURE, merges
    from ebert.linking.candidates.same_page import Openings
    from ebert.text.titles import read_titles
    from ebert.vectors.copies import with_surfaces
    from ebert.vectors.store import Vectors
    from ebert.vectors.writer import refuse
    from ebert.wikipedia.corpus import Corpus

    if corpus and table:
        raise click.UsageError("give --corpus or --table, not both")
    if leave_out and not corpus:
        raise click.UsageError("--leave-out needs --corpus: it leaves articles out of the counts")
    if dictionary and not corpus:
        raise click.UsageError("--dictionary needs --corpus: the names are counted in the text of the corpus")
    if keep_apart and not merge:
        raise click.UsageError("with --no-merge nothing is merged: leave out --keep-apart")
    refuse(Path(out).absolute(), overwrite=overwrite)
    store, opened = Vectors.open(vectors), Corpus.open(corpus) if corpus else None
    apart = read_titles(keep_apart) if keep_apart else ()
    made: dict[str, Any] = {}
    names = _read_dictionary(dictionary, opened, store, made) if dictionary and opened else None
    redirects = opened.redirects if opened else ()
    sure = names.sure(SURE, but=opened.page_titles) if names and opened else ()
    openings = Openings(opened) if opened and merge else None
    merged = merges(store, redirects=redirects, dictionary=sure, openings=openings, apart=apart) if merge else []
    how: dict[str, Any] = {"merged": merged, "overwrite": overwrite}
    if table:
        new, made = _with_table(store, out, table, **how)
    elif opened is None:
        new = with_surfaces(store, out, None, made=made, **how)
    else:
        new, made = _with_counts(store, out, opened, names, made, leave_out, threads, **how)
    facts = {"store": out, "surfaces": new.describe()["surfaces"], "merged": len(merged), **made}
    common.print_result(facts, as_json, _show)


def _with_table(store: "Vectors", out: str, table: str, **how: Any) -> tuple["Vectors", dict[str, Any]]:
    """Write a store with a table in KnowBert's format; return it, and what the table had."""
    from ebert._io import files
    from ebert._io.progress import progress
    from ebert.linking.candidates import knowbert
    from ebert.vectors.copies import with_surfaces

    report = knowbert.TableReport()
    made: dict[str, Any] = {"from": Path(table).name}
    if Path(table).is_file():
        made["sha256"] = files.sha256(Path(table))
    with progress("table", total=common.size_of(table), unit="B") as advance:
        found = knowbert.surfaces(table, store, report, advance=advance)
        new = with_surfaces(store, out, found, made=made, **how)
    made |= {"mentions": report.mentions, "candidates": report.candidates, **report.dropped}
    if report.examples:
        made["not in the store"] = ", ".join(report.examples)
    return new, made


def _with_counts(
    store: "Vectors", out: str, corpus: "Corpus", names: "Dictionary | None", made: dict[str, Any],
    leave_out: tuple[str, ...], threads: int, **how: Any,
) -> tuple["Vectors", dict[str, Any]]:  # fmt: skip
    """Write a store with a table that is counted in a corpus; return it, and what was counted."""
    from ebert._io.progress import progress
    from ebert.linking.candidates import recount
    from ebert.vectors.copies import with_surfaces

    choice = recount.choose_pages(corpus, recount.titles_of(leave_out, say))
    made = {
        "from": [dump["name"] for dump in corpus.info.dumps], "pages with links": int(choice.linked.sum()),
        "left out": sorted(choice.left_out), **made,
    }  # fmt: skip
    with progress("count", unit="words") as advance:
        if names:
            dropped = made.pop("dropped")
            found = recount.recount_with(corpus, store, choice, names, dropped, threads=threads, advance=advance)
            made |= {reason: count for reason, count in dropped.items() if count}
        else:
            found = recount.recount(corpus, store, choice, threads=threads, advance=advance)
        return with_surfaces(store, out, found, made=made, **how), made


def _read_dictionary(given: str, corpus: "Corpus", store: "Vectors", made: dict[str, Any]) -> "Dictionary":
    """Read a dictionary, fetched first if it is the one by name; say in `made` what became of its lines."""
    from ebert._io import files
    from ebert._io.progress import progress
    from ebert.linking.candidates import corenlp
    from ebert.linking.candidates.dictionary import DictionaryReport, read
    from ebert.wikipedia.corpus import WORDS
    from ebert.wikipedia.names import NameList

    if given != corenlp.NAME:
        check_files(given)
    path = corenlp.get_dictionary() if given == corenlp.NAME else Path(given)
    report = DictionaryReport()
    with progress("dictionary", total=path.stat().st_size, unit="B") as advance:
        found = read(path, store, NameList.of((corpus.path / WORDS).read_bytes()), report, advance=advance)
    made["dictionary"] = corenlp.JAR.coordinates if given == corenlp.NAME else path.name
    made["sha256"] = files.sha256(path)
    made |= {
        "lines": report.lines, "mentions": report.mentions,
        "titles": report.titles, "titles in the store": report.known, "dropped": report.dropped,
    }  # fmt: skip
    if report.examples:
        made["not in the store"] = ", ".join(report.examples)
    return found


@click.command("wikipedia")
@click.argument("corpus")
@click.option("--vectors", required=True, help="The store to link to; its mention table finds the spans.")
@click.option("--out", required=True, help="The folder of the documents: train.jsonl and held-out.jsonl.")
@click.option(
    "--dump", multiple=True, help="A dump of the corpus, for text with punctuation. The corpus itself has words only."
)
@click.option("--leave-out", multiple=True, help="Articles not to use: test data, or a file of titles, one per line.")
@cli_options(WikipediaOptions)
@common.overwrite_option
@common.json_option
def wikipedia(
    corpus: str, vectors: str, out: str, dump: tuple[str, ...], leave_out: tuple[str, ...], options: WikipediaOptions,
    overwrite: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make training documents for a linker from the links in the articles of CORPUS.

    \b
    Example:
      ebert link wikipedia enwiki --dump enwiki.xml.bz2 --vectors linking-vectors --out documents
    """
    from ebert._io.progress import progress
    from ebert.linking.candidates.recount import titles_of
    from ebert.linking.wikipedia import prepare
    from ebert.vectors.store import Vectors
    from ebert.wikipedia.corpus import Corpus

    with progress("dumps", total=common.size_of(*dump), unit="B") as advance:
        made = prepare(
            Corpus.open(corpus), Vectors.open(vectors), out, options=options, dumps=dump,
            leave_out=titles_of(leave_out, say), overwrite=overwrite, advance=advance,
        )  # fmt: skip
    found = made["files"]["train.jsonl"]["documents"]
    if found < options.documents:
        say(f"only {found:,} articles of the corpus have enough linked prose")
    common.print_result({"out": out, **made["files"], "left out": made["left_out"]}, as_json, _show)


@click.command("evaluate")
@click.argument("linker")
@click.argument("data")
@click.option("--given-mentions", is_flag=True, help="Give the linker the gold spans, so that it only disambiguates.")
@click.option("--prior-only", is_flag=True, help="Link by priors alone. LINKER may then also be a store.")
@click.option("--tune", help="With --prior-only: data for tuning the threshold and the rule for overlaps.")
@click.option("--threshold", type=click.FloatRange(0, 1),
              help="Leave out mentions below this probability; with --prior-only, "
              "below this link probability.")  # fmt: skip
@click.option("--layout", help=LAYOUT_HELP)
@click.option("--ids", help=IDS_HELP)
@given_option
@click.option("--vectors", help="The new path of the linker's store, if it has moved.")
@click.option("--rounds", type=click.IntRange(1), help="Rounds of refinement; 1 means no refinement.")
@click.option("--variant", type=click.Choice(get_args(Variant)),
              help="For a model without a trained linker: E-BERT-MLM, or a baseline.")  # fmt: skip
@click.option("--mask", type=click.Choice(get_args(Mask)), help="The mask, for a model without a trained linker.")
@click.option("--out", type=common.PATH, help="Write all figures, also those of each document, to a JSON file.")
@click.option("--against", help="An --out file of another linker: show the difference and its interval.")
@common.precision_option
@common.device_option
@common.json_option
def evaluate(
    linker: str, data: str, given_mentions: bool, prior_only: bool, tune: str | None, threshold: float | None,
    layout: str | None, ids: str | None, given: str | None, vectors: str | None, rounds: int | None,
    variant: Variant | None, mask: Mask | None, out: Path | None, against: str | None, precision: Any,
    device: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Evaluate a linker on labelled DATA by strong match: same start, end and entity. All figures are in percent.

    \b
    Example:
      ebert link evaluate linker test_wned-wiki.jsonl --out results/ebert.json
      ebert link evaluate linker test_wned-wiki.jsonl --prior-only --tune documents/held-out.jsonl
      ebert link evaluate model test_wned-wiki.jsonl --mask standard
    """
    from dataclasses import asdict

    from ebert._io import files
    from ebert._io.progress import progress
    from ebert.linking.evaluate import difference, judge, load_scores
    from ebert.linking.readers.layouts import read
    from ebert.linking.resolve import TitleResolver
    from ebert.vectors.wikidata_ids import read_ids

    _check_tool(linker, vectors, prior_only=prior_only)
    check_files(tune, given)
    if given_mentions and threshold is not None:
        raise click.UsageError("with --given-mentions every mention is linked: leave out --threshold")
    if prior_only and (rounds or variant or mask):
        raise click.UsageError("--rounds, --variant and --mask are for linkers; --prior-only uses no encoder")
    if out is not None:
        files.refuse_unwritable(out)
    other = load_scores(against) if against else None
    reading = read(data, layout)
    known = read_ids(ids) if ids else None
    tool, store, options = _tool(
        linker, prior_only, tune, known, threshold, given, vectors, rounds, variant, mask, precision, device
    )
    resolver = TitleResolver(store, known)
    resolved = resolver.documents(reading.documents)
    with progress("evaluate", total=len(resolved.documents), unit="documents") as advance:
        found = judge(
            tool, resolved.documents, resolver, given_mentions=given_mentions, threshold=threshold, advance=advance
        )
    value = {
        **found.value(), "unresolved": resolved.missing, "dropped": dict(reading.dropped), "layout": reading.layout,
        "given_mentions": given_mentions, "prior_only": prior_only, **options,
        "left_out": {what: count for what, count in getattr(tool, "dropped", {}).items() if count},
    }  # fmt: skip
    if given_mentions:
        value["threshold"] = None  # all are linked
    if other is not None:
        value["difference"] = asdict(difference(found, other))
    if out:
        files.write_json(out, {**value, "per_document": found.value(per_document=True)["per_document"]})
    common.print_result(value, as_json, _show_figures)


def check_files(*paths: str | Path | None) -> None:
    """Raise `EbertError` for a file that is not there, before torch is loaded to read it."""
    for path in paths:
        if path is not None and not Path(path).exists():
            raise EbertError(f"there is no file {path}")


def _check_tool(linker: str, vectors: str | None, *, prior_only: bool) -> None:
    from ebert.finetuning.folder import check_trained
    from ebert.vectors import layout

    if not (prior_only and (Path(linker) / layout.INFO).is_file()):
        check_trained(linker, "linker", vectors)


def read_given(path: str, vectors: "Vectors", candidates: int) -> "CandidateGenerator":
    """Read candidates from a file, at most `candidates` for a span; say how many of them cannot be used."""
    from ebert.linking.candidates.given import read_candidates

    generator = read_candidates(path, vectors, candidates=candidates)
    for what, count in generator.dropped.items():
        say(f"{path}: {count:,} {what}")
    return generator


def use_candidates(linker: "Linker", given: str | None) -> None:
    """Let a linker use the candidates of a file, or say that it was trained with other candidates than it uses now."""
    if given:
        most = (linker.trained_with or {}).get("candidates", CandidateOptions().candidates)
        linker.generator = read_given(given, linker.vectors, most)
    elif linker.trained_with:
        name = linker.trained_with.get("file", "somebody")
        say(
            f"the linker was trained with the candidates of {name}; it now uses those of the mention table "
            f"(--given gives others)"
        )


def _tool(
    linker: str, prior_only: bool, tune: str | None, ids: Mapping[int, str] | None, threshold: float | None,
    given: str | None, vectors: str | None, rounds: int | None, variant: Variant | None, mask: Mask | None,
    precision: LinkPrecision, device: str | None,
) -> "tuple[Links, Vectors, dict[str, Any]]":  # fmt: skip
    """Return the linker to evaluate, its store, and the options to report."""
    from ebert.vectors import layout
    from ebert.vectors.store import Vectors

    if tune and not prior_only:
        raise click.UsageError("--tune is for --prior-only; a linker is tuned when it is trained")
    if prior_only:
        from ebert.linking.candidates.generator import generator_of
        from ebert.linking.prior import PriorLinker
        from ebert.linking.prior import tune as tuned
        from ebert.linking.resolve import TitleResolver
        from ebert.linking.train import read_documents

        if (Path(linker) / layout.INFO).is_file():
            store = Vectors.open(vectors or linker)
            most = CandidateOptions().candidates
            generator = read_given(given, store, most) if given else generator_of(None, store)
        else:
            from ebert.linking.linker import Linker

            loaded = Linker.from_pretrained(linker, vectors=vectors, device=device)
            use_candidates(loaded, given)
            store, generator = loaded.vectors, loaded.generator
        options = PriorOptions() if threshold is None else PriorOptions(threshold=threshold)
        if tune:
            resolver = TitleResolver(store, ids)
            best = tuned(generator, read_documents(Path(tune), None, resolver, say), same=resolver.same)
            options = best.options if threshold is None else PriorOptions(threshold=threshold, rule=best.options.rule)
        return PriorLinker(generator, options), store, {"threshold": options.threshold, "rule": options.rule}
    with waiting(f"loading {linker}"):
        from ebert.linking.linker import Linker

        how: dict[str, Any] = {
            "rounds": rounds, "variant": variant, "mask": mask, "precision": precision, "device": device,
        }  # fmt: skip
        loaded = Linker.from_pretrained(linker, vectors=vectors, **how)
    use_candidates(loaded, given)
    return loaded, loaded.vectors, {"threshold": loaded.threshold if threshold is None else threshold}


def _show(facts: dict[str, Any]) -> None:
    common.print_facts(
        {name: f"{len(value):,} articles" if name == "left out" else value for name, value in facts.items()}
    )


def _show_figures(value: dict[str, Any]) -> None:
    rows: list[tuple[str, ...]] = [("", "precision", "recall", "F1")]
    named = (
        ("micro", value["micro"]),
        ("macro", value["macro"]),
        ("micro, in vocabulary", value["in_vocabulary"]["micro"]),
    )
    rows += [(name, *(f"{part[key]:.1f}" for key in ("precision", "recall", "f1"))) for name, part in named]
    if not value["in_vocabulary"]["gold"]:
        rows[-1] = (rows[-1][0], "-", "-", "-")  # of nothing
    common.print_table(rows)
    recall = value["candidate_recall"]
    facts = {
        "documents": value["documents"], "gold": value["gold"], "not in the store": value["unresolved"],
        "candidate recall": "-" if recall is None else f"{recall:.1f} %",
        "threshold": "-" if value["threshold"] is None else value["threshold"],
    }  # fmt: skip
    if change := value.get("difference"):
        facts["difference in micro F1"] = f"{change['value']:+.2f} [{change['low']:+.2f}, {change['high']:+.2f}]"
    common.print_facts(facts)
    for reason, count in (*value["dropped"].items(), *value["left_out"].items()):
        click.echo(f"left out: {count:,} {reason}")
