"""``ebert probe``: what a masked language model knows, with and without entities."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert.cli.common import json_option, print_json, print_table, torch_dtype
from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.model.ebert import EBert
    from ebert.probing.questions import Questions

MODES = ("bert", "concat", "replace")
FILTERS = ("all", "string-match", "uhn")
NAME_BERT = "bert-base-cased"


@click.group("probe")
def group() -> None:
    """Ask a model questions with a mask, and count how often it is right."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all probes have."""
    for option in reversed([
        click.option("--model", help="A model folder made by 'ebert align', or 'starter'."),
        click.option("--bert", help="Instead of a model: an encoder without entities."),
        click.option("--vectors", help="Where the model's store is now, if not where it was."),
        click.option("--mode", help="Any of bert,concat,replace, or all.  [default: all with a model, bert without]"),
        click.option("--out", type=click.Path(path_type=Path), required=True, help="The run folder."),
        click.option("--limit", type=click.IntRange(min=1), help="Questions of each relation, for a quick look."),
        click.option("--labels", type=click.Path(path_type=Path), help="Wikidata ids and English labels: a table with the columns id and label."),  # noqa: E501
        click.option("--precision", type=click.Choice(["float32", "float16", "bfloat16", "int8"]), default="float32", show_default=True, help="What the encoder computes in."),  # noqa: E501
        click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ..."),
        click.option("--budget", type=click.IntRange(min=1), help="Tokens in a batch.  [default: suits the device]"),
        click.option("--overwrite", is_flag=True, help="Begin anew, whatever run is at --out."),
        json_option,
    ]):  # fmt: skip
        command = option(command)
    return command


@group.command("lama")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--filter", "filters", default=",".join(FILTERS), show_default=True, help="Which questions count.")
@click.option("--relations", help="Only these, such as P463,P36.")
@click.option(
    "--vocabulary",
    type=click.Path(path_type=Path),
    help="The words to choose from, one a line; LAMA's own if not given.",
)
@click.option("--oracle", is_flag=True, help="Take LAMA's Wikidata ids for subjects, where the store has them.")
@click.option("--name-bert", default=NAME_BERT, show_default=True, help="Whom the person-name filter asks.")
@_options
def lama(
    data: Path, filters: str, relations: str | None, vocabulary: Path | None, oracle: bool, name_bert: str, **rest: Any
) -> None:
    """Probe with LAMA (T-REx and Google-RE): DATA is its folder or archive.

    Run the same command again to go on with a run that was stopped.

    \b
    Example:
      ebert probe lama lama.tar.xz --bert bert-base-cased --relations P463 --out runs/p463
      ebert probe lama lama.tar.xz --model enwiki-ebert --mode all --out runs/enwiki
    """
    from ebert.probing.lama import read_lama

    questions = read_lama(data, relations=_list(relations) if relations else None)
    if vocabulary is not None:
        questions.vocabulary = words_in(vocabulary)
    if questions.vocabulary is None:
        raise EbertError(f"{data} has no common_vocab_cased.txt; give the words to choose from with --vocabulary")
    _probe(questions, _list(filters), oracle=oracle, name_bert=name_bert, **rest)


@group.command("questions")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--filter", "filters", default="all,string-match", show_default=True, help="Which questions count.")
@click.option(
    "--vocabulary",
    type=click.Path(path_type=Path),
    help="The words to choose from, one a line, beside the answers.  [default: all words of the encoder]",
)
@_options
def questions(data: Path, filters: str, vocabulary: Path | None, **rest: Any) -> None:
    """Probe with questions of your own: DATA has one JSON object a line.

    \b
    Lines:
      {"text": "The capital of [[France]] is [MASK].", "answers": ["Paris"], "relation": "capital"}
      {"template": "The capital of [X] is [Y].", "subject": "France", "answers": ["Paris"]}
    Example:
      ebert probe questions own.jsonl --model starter --out runs/own
    """
    from ebert.probing.own import read_questions

    read = read_questions(data)
    read.vocabulary = words_in(vocabulary) if vocabulary else None
    chosen = _list(filters)
    if "uhn" in chosen:
        raise EbertError("the filter uhn is for LAMA's relations between persons and places; choose all,string-match")
    _probe(read, chosen, oracle=False, name_bert=NAME_BERT, **rest)


def _probe(
    read: "Questions",
    filters: list[str],
    *,
    oracle: bool,
    name_bert: str,
    model: str | None,
    bert: str | None,
    vectors: str | None,
    mode: str | None,
    out: Path,
    limit: int | None,
    labels: Path | None,
    precision: str,
    device: str | None,
    budget: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    from ebert._io.progress import progress
    from ebert.probing.options import ProbeOptions
    from ebert.probing.run import probe
    from ebert.probing.subjects import read_labels

    if bool(model) == bool(bert):
        raise EbertError("give --model (with entities) or --bert (without)")
    if vectors and not model:
        raise EbertError("--vectors goes with --model")
    options: Any = ProbeOptions(
        modes=tuple(modes_of(mode, with_model=model is not None)), filters=tuple(filters),  # type: ignore[arg-type]
        limit=limit, oracle=oracle, precision=precision, budget=budget,
    )  # fmt: skip
    known = read_labels(labels) if labels else None
    loaded = _load(model, bert, vectors, device, precision)
    scores = probe(
        loaded, read, out, options=options, labels=known, name_model=lambda: _name_model(name_bert, loaded, precision),
        overwrite=overwrite, command=f"ebert {shlex.join(sys.argv[1:])}", watch=progress,
    )  # fmt: skip
    if as_json:
        print_json(scores)
    else:
        _show(scores, out)


def _load(model: str | None, bert: str | None, vectors: str | None, device: str | None, precision: str) -> "EBert":
    from ebert.model.ebert import EBert

    dtype = torch_dtype(precision) if precision != "int8" else None
    if model:
        loaded = EBert.from_pretrained(model, vectors=vectors, device=device, dtype=dtype)
    else:
        loaded = EBert.plain(bert or "", device=device, dtype=dtype)
    if precision == "int8":
        from ebert.model.int8 import quantize

        quantize(loaded)
    return loaded


def _name_model(name: str, loaded: "EBert", precision: str) -> "EBert":
    from ebert.model.ebert import EBert

    return loaded if loaded.name == name and precision == "float32" else EBert.plain(name)


def modes_of(given: str | None, *, with_model: bool) -> list[str]:
    """Give the modes that a ``--mode`` names."""
    if given is None or given == "all":
        return list(MODES if with_model else MODES[:1])
    modes = _list(given)
    if not with_model and any(name in MODES[1:] for name in modes):
        raise EbertError("the modes concat and replace need entity vectors: give a --model made by 'ebert align'")
    return modes


def _list(given: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))


def words_in(path: Path) -> list[str]:
    """Read a file of words, one a line."""
    try:
        words = [word for line in path.read_text(encoding="utf-8").splitlines() if (word := line.strip())]
    except (OSError, UnicodeDecodeError) as error:
        raise EbertError(f"{path} cannot be read ({error}); it should be a text file with one word a line") from None
    if not words:
        raise EbertError(f"{path} has no words")
    return words


def _show(scores: dict[str, Any], out: Path) -> None:
    """Print the means for people."""
    import json

    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    if run.get("limit"):
        click.secho(f"at most {run['limit']} questions of each relation: a quick look, not a result", fg="yellow")
    print_scores(scores)
    click.echo(f"{run['questions']:,} questions, {run['candidates']:,} candidates, {run['seconds']:,.0f} s", err=True)
    for reason, count in run["not asked"].items():
        click.echo(f"not asked: {count:,} ({reason})", err=True)
    ways = ", ".join(f"{count:,} by {way}" for way, count in run["covered_by"].items())
    if run["model"]:
        click.echo(f"subjects with a vector: {run['covered']:,} ({ways or 'none'})", err=True)
    click.echo(f"everything is in {out} (ebert report {out} --out DIR)", err=True)


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
    print_table(rows)


def _figure(scores: dict[str, float], name: str) -> str:
    return f"{scores[name]:.2f}" if name in scores else "-"
