"""``ebert probe``: what a masked language model knows, with and without entities."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert._io.progress import say, waiting
from ebert._io.records import read_list
from ebert._options import cli_options
from ebert.cli import common
from ebert.cli.lazy import Group
from ebert.errors import EbertError
from ebert.model.folder import find
from ebert.model.options import parse_modes
from ebert.probing.filters import FILTERS, NAME_BERT, check_filters, own_filters
from ebert.probing.options import ProbeOptions

if TYPE_CHECKING:
    from ebert.model.ebert import EBert
    from ebert.model.folder import FoundModel
    from ebert.probing.questions import Questions


@click.group("probe", cls=Group, commands={"corpus": "bulk:probe"})
def group() -> None:
    """Ask a model questions with a mask, and measure how often its answers are right.

    \b
    Example:
      ebert probe lama lama.tar.xz --model starter --relations P463,P103 --out runs/starter
      ebert probe questions own.jsonl --model starter --out runs/own
    """


def _options(*, filters: str, without: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Return the options that all probes have."""
    return common.options(
        click.option("--model", help="A model folder made by 'ebert align', or 'starter'."),
        click.option("--bert", help="Instead of a model: an encoder without entities."),
        common.vectors_option,
        click.option("--mode", help="Any of bert,concat,replace, or all.  [default: all with a model, bert without]"),
        click.option("--filter", "filters", default=filters, show_default=True, help="Which questions count."),
        click.option("--labels", type=common.PATH,
                     help="Wikidata ids and English labels: a table with the columns id and label."),
        cli_options(ProbeOptions, without=without),
        common.device_option,
        click.option("--out", type=common.PATH, required=True, help="The run folder."),
        click.option("--overwrite", is_flag=True, help="Start again, and replace a run at --out."),
        common.json_option,
    )  # fmt: skip


@group.command("lama")
@click.argument("data", type=common.PATH)
@click.option("--relations", help="Ask only these relations, such as P463,P36.")
@click.option("--vocabulary", type=common.PATH, help="The words to choose from, one per line.  [default: LAMA's own]")
@click.option("--name-bert", default=NAME_BERT, show_default=True, help="The encoder that the person-name filter asks.")
@_options(filters=",".join(FILTERS))
def lama(data: Path, relations: str | None, vocabulary: Path | None, **rest: Any) -> None:
    """Probe with LAMA (T-REx and Google-RE): DATA is its folder or archive.

    To continue a run that was stopped, run the same command again.

    \b
    Example:
      ebert probe lama lama.tar.xz --bert bert-base-cased --relations P463 --out runs/p463
      ebert probe lama lama.tar.xz --model enwiki-ebert --mode all --out runs/enwiki
    """
    from ebert.probing.lama import read_lama

    found = _check(rest)
    questions = read_lama(data, relations=_list(relations) if relations else None)
    if vocabulary is not None:
        questions.vocabulary = words_in(vocabulary)
    if questions.vocabulary is None:
        raise EbertError(f"{data} has no common_vocab_cased.txt; give the words to choose from with --vocabulary")
    _probe(questions, found, **rest)


@group.command("questions")
@click.argument("data", type=common.PATH)
@click.option("--vocabulary", type=common.PATH,
              help="The words to choose from, one per line, in addition to the answers.  "
              "[default: all words of the encoder]")  # fmt: skip
@_options(filters=",".join(own_filters()), without=("oracle",))
def questions(data: Path, vocabulary: Path | None, **rest: Any) -> None:
    """Probe with questions of your own: DATA has one JSON object per line.

    \b
    Lines:
      {"text": "The capital of [[France]] is [MASK].", "answers": ["Paris"], "relation": "capital"}
      {"template": "The capital of [X] is [Y].", "subject": "France", "answers": ["Paris"]}
    Example:
      ebert probe questions own.jsonl --model starter --out runs/own
    """
    from ebert.probing.questions import read_questions

    found = _check(rest)
    read = read_questions(data)
    read.vocabulary = words_in(vocabulary) if vocabulary else None
    _probe(read, found, name_bert=NAME_BERT, **rest)


def _check(given: dict[str, Any]) -> "FoundModel":
    """Find the model, and raise `EbertError` for what cannot be: before questions are read, which takes longer."""
    found = find(given.pop("model"), given.pop("bert"), given.pop("vectors"))
    parse_modes(given["mode"], with_entities=found.folder is not None)
    if (labels := given["labels"]) is not None and not labels.is_file():
        raise EbertError(f"there is no file {labels} (--labels)")
    return found


def _probe(
    read: "Questions", found: "FoundModel", *, options: ProbeOptions, name_bert: str, mode: str | None, filters: str,
    labels: Path | None, device: str | None, out: Path, overwrite: bool, as_json: bool,
) -> None:  # fmt: skip
    check_filters(_list(filters), lama=read.is_lama)
    modes = parse_modes(mode, with_entities=found.folder is not None)
    options = replace(options, modes=tuple(modes), filters=tuple(_list(filters)))

    with waiting(f"loading {found.name}"):
        from ebert._io.progress import progress
        from ebert.model.ebert import load_model
        from ebert.probing.ask import read_labels
        from ebert.probing.run import probe

        known = read_labels(labels) if labels else None
        loaded = load_model(found, device=device, precision=options.precision)
    scores = probe(
        loaded, read, out, options=options, labels=known, overwrite=overwrite, watch=progress,
        name_model=lambda: _name_model(name_bert, loaded, options.precision),
        command=common.command_line(),
    )  # fmt: skip
    common.print_result(scores, as_json, lambda scores: _show(scores, out))


def _name_model(name: str, loaded: "EBert", precision: str) -> "EBert":
    from ebert.model.ebert import EBert

    return loaded if loaded.name == name and precision == "float32" else EBert.plain(name)


def _list(given: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))


def words_in(path: Path) -> list[str]:
    """Read a file of words, one per line."""
    words = read_list(path)
    if not words:
        raise EbertError(f"{path} has no words")
    return words


def _show(scores: dict[str, Any], out: Path) -> None:
    """Print the means for people."""
    from ebert._io import files

    run = files.read_json(out / "run.json", "a run")
    if run.get("limit"):
        click.secho(f"at most {run['limit']} questions of each relation: a quick look, not a result", fg="yellow")
    print_scores(scores)
    say(f"{run['questions']:,} questions, {run['candidates']:,} candidates, {run['seconds']:,.0f} s")
    for reason, count in run["not asked"].items():
        say(f"not asked: {count:,} ({reason})")
    ways = ", ".join(f"{count:,} by {way}" for way, count in run["covered_by"].items())
    if run["model"]:
        say(f"subjects with a vector: {run['covered']:,} ({ways or 'none'})")
    say(f"everything is in {out} (ebert report {out} --out DIR)")


def print_scores(scores: dict[str, Any]) -> None:
    """Print the means of all modes and filters as a table."""
    rows = [("mode", "filter", "questions", "covered", "Hits@1", "Hits@10", "MRR", "micro Hits@1", "Hits@1 covered")]
    for mode, by_filter in scores["modes"].items():
        for name, found in by_filter.items():
            macro, covered = found["macro"], found["covered_only"]["macro"]
            rows.append((
                mode, name, f"{found['questions']:,}", f"{found['covered']:,}", _figure(macro, "hits@1"),
                _figure(macro, "hits@10"), _figure(macro, "mrr"), _figure(found["micro"], "hits@1"),
                _figure(covered, "hits@1"),
            ))  # fmt: skip
    common.print_table(rows)


def _figure(scores: dict[str, float], name: str) -> str:
    return f"{scores[name]:.2f}" if name in scores else "-"
