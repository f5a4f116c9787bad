"""``ebert align``: fit W and write a model."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from ebert._io.progress import progress, say, waiting
from ebert._options import cli_options
from ebert.cli.common import device_option, dtype_option, json_option, overwrite_option, print_facts, print_json
from ebert.errors import EbertError
from ebert.model.folder import find
from ebert.model.options import AlignmentOptions, LearningOptions


@click.command("align")
@click.argument("store")
@click.option("--bert", default="bert-base-cased", show_default=True,
              help="The encoder: hub name, name@revision or local folder.")  # fmt: skip
@click.option("--out", required=True, help="The folder of the new model.")
@cli_options(AlignmentOptions)
@click.option(
    "--learn", metavar="CORPUS", help="After the fit, train W on passages: a corpus, or a file of JSON lines."
)
@click.option("--leave-out", multiple=True, metavar="FILE",
              help="Do not use passages of these titles: a list, LAMA, or test data for entity linking.")  # fmt: skip
@cli_options(LearningOptions, into="learning", without=("seed",))
@click.option("--include-vectors", is_flag=True, help="Copy the store into the model folder.")
@device_option
@dtype_option
@overwrite_option
@json_option
def command(
    store: str, bert: str, out: str, options: AlignmentOptions, learn: str | None, leave_out: tuple[str, ...],
    learning: LearningOptions, include_vectors: bool, device: str | None, dtype: str | None, overwrite: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Fit the map W between a store's vectors and an encoder's wordpieces, and write the model.

    The defaults are the paper's: least squares, with equal weights for all words. With --learn, W is then trained
    through the frozen encoder, to predict masked words of passages from the entities in them. If it is stopped, give
    the same command again: it continues from the checkpoint in OUT.learning.

    \b
    Example:
      ebert align enwiki-vectors --bert bert-base-cased --out enwiki-ebert
      ebert align enwiki-vectors --weight-power 0.4 --learn enwiki --leave-out lama.tar.xz --out enwiki-learned
    """
    from ebert._io import files
    from ebert.model.folder import INFO
    from ebert.model.passages import Passages
    from ebert.vectors.store import Vectors

    target = Path(out).absolute()
    if Path(store).resolve().is_relative_to(target.resolve()):
        raise EbertError(f"the store {store} lies in {out}, which the model would replace; choose another place")
    files.refuse_existing(target, overwrite=overwrite, marker=INFO)
    if leave_out and not learn:
        raise EbertError("--leave-out goes with --learn")
    passages = Passages.of(learn, titles_left_out(leave_out)) if learn else None
    opened = Vectors.open(store)
    find(None, bert)
    with waiting(f"loading {bert}"):
        import torch

        from ebert.model.ebert import EBert
        from ebert.model.encoder import Encoder

        precision = getattr(torch, dtype) if dtype else None
        encoder = Encoder.load(bert, device=device, dtype=precision)
    model = EBert.fit(
        encoder, opened, options=options, learn=passages, learning=replace(learning, seed=options.seed),
        work=f"{target}.learning", say=say, watch=progress,
    )  # fmt: skip
    with files.replacing_folder(target, overwrite=overwrite, marker=INFO) as folder:
        model.save_pretrained(folder, include_vectors=include_vectors, include_encoder=False)
    assert model.alignment is not None
    report = asdict(model.alignment.report)
    if as_json:
        print_json({"model": out, "options": asdict(options), "report": report, **model.alignment.learning()})
        return
    click.echo(f"wrote {out}")
    figures = (("R² on them", "r2", "{:.3f}"), ("words kept back", "held_out_pairs", "{:,}"),
               ("R² on words kept back", "held_out_r2", "{:.3f}"), ("own wordpiece nearest", "top1", "{:.1f} %"),
               ("own wordpiece among ten nearest", "top10", "{:.1f} %"))  # fmt: skip
    shown = {words: "-" if report[name] is None else form.format(report[name]) for words, name, form in figures}
    print_facts({"words that are wordpieces": report["pairs"], **shown})
    if learned := model.alignment.learned:
        print_facts({
            f"held-out loss, {mode}": f"{learned.learned[mode]:.3f} (least squares {learned.least_squares[mode]:.3f}, "
            f"no entities {learned.without[mode]:.3f})" for mode in learned.learned
        })  # fmt: skip


def is_lama(source: str) -> bool:
    """Return whether a source of titles is LAMA: a folder or an archive."""
    return Path(source).is_dir() or ".tar" in Path(source).name or source.endswith((".zip", ".tgz"))


def titles_left_out(sources: Sequence[str]) -> set[str]:
    """Return the titles that files name: LAMA's subjects, articles of test data, or lists of titles."""
    from ebert.linking.candidates.recount import titles_of
    from ebert.probing.lama import read_lama

    titles: set[str] = set()
    for source in sources:
        if is_lama(source):
            titles.update(question.subject for question in read_lama(source).questions)
        else:
            titles.update(titles_of([source], say))
    return titles
