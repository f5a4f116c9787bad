"""Train vectors of a corpus, with checkpoints, and write them as a store."""

import importlib
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ebert._io import staging
from ebert._io.progress import progress
from ebert.errors import EbertError
from ebert.vectors import writer
from ebert.vectors.catalogue import PAGE
from ebert.vectors.train import checkpoint, data, trainer
from ebert.vectors.train.data import TrainingData
from ebert.vectors.train.options import VectorTrainingOptions
from ebert.vectors.train.options import preset as with_preset
from ebert.vectors.train.trainer import TrainingState
from ebert.wikipedia.corpus import Corpus


def train(
    corpus: Corpus | str | Path,
    out: str | Path,
    options: VectorTrainingOptions | None = None,
    *,
    preset: str = "default",
    threads: int | None = None,
    keep: Collection[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_seconds: float = 600.0,
    dtype: str = "float32",
    **changes: Any,
) -> dict[str, Any]:
    """Train vectors of a corpus and save them as a store at `out`; return what was done.

    Options that are not given are those of the `preset`, with `changes` such as ``dim=100``. Entities in `keep` have a
    vector whatever their count. A checkpoint is written beside the store every so many seconds; with `resume` a run
    goes on with the last one, if there is one. With one thread the result depends on the options alone, whether the
    run was interrupted or not; by default all cores are used.
    """
    started, out, threads = time.monotonic(), Path(out), threads or os.cpu_count() or 1
    options = replace(options, **changes) if options else with_preset(preset, **changes)
    try:
        for needed in ("numba", "scipy", "threadpoolctl"):
            importlib.import_module(needed)
    except ImportError as error:
        raise EbertError(f"training needs {error.name}: pip install 'ebert[train]'") from None
    if not checkpoint_seconds > 0:
        raise EbertError(f"--checkpoint is {checkpoint_seconds:g}; it is a number of seconds above 0")
    corpus = corpus if isinstance(corpus, Corpus) else Corpus.open(corpus)
    writer.refuse(out, overwrite=overwrite)
    folder = checkpoint.folder_of(out)
    if folder.exists() and not (resume or overwrite):
        raise EbertError(f"{folder} has an unfinished training; continue it (--resume) or start again (--overwrite)")
    prepared = data.prepare(corpus, options, keep=keep)
    state, run = trainer.initial(prepared, options), checkpoint.identity(corpus, options, keep)
    if resume and (folder / checkpoint.INFO).exists():
        state = checkpoint.load(folder, run, state)
        trainer.check(prepared, state)
    began = state.done
    training = trainer.Trainer(prepared, options, state, threads=threads)

    def save(now: TrainingState) -> None:
        trainer.check(prepared, now)  # the last checkpoint is good, and is kept if this one is not
        checkpoint.save(folder, run, now)

    left = training.words_left()
    with _saved(save, state, KeyboardInterrupt), progress("train", total=left, unit="words") as advance:
        speed = training.run(advance=advance, save=save, every=checkpoint_seconds)
    trainer.check(prepared, state)
    made = {"options": asdict(options), "threads": threads, "seconds": round(state.seconds, 1)}
    with _saved(save, state, BaseException):  # the training must survive a full disk
        write(prepared, state, out, made=made, dtype=dtype, overwrite=overwrite)
    if folder.is_dir():
        staging.discard(folder)
    return {
        "store": str(out), "vocabulary": prepared.words, "entities": len(prepared.entities), "dimension": options.dim,
        "resumed": began > 0, "missing": prepared.missing, **speed.report(),
        "seconds": round(time.monotonic() - started, 3),
    }  # fmt: skip


def write(
    prepared: TrainingData, state: TrainingState, out: Path, *, made: dict[str, Any], dtype: str, overwrite: bool
) -> None:
    """Write what was learned as a store, with redirects, Wikidata ids and surfaces of the corpus."""
    corpus = prepared.corpus
    source = {name: getattr(corpus.info, name) for name in ("dumps", "words", "language", "lowercase", "tokeniser")}
    with writer.writing(out, dimension=state.words_in.shape[1], dtype=dtype, overwrite=overwrite) as store:
        for start in range(0, prepared.words, PAGE):
            rows = slice(start, min(start + PAGE, prepared.words))
            counts, outputs = corpus.word_counts[rows], state.words_out[rows]
            store.add("words", corpus.words[rows], state.words_in[rows], counts=counts, outputs=outputs)
        store.dropped.unseen = prepared.unseen
        for start in range(0, len(prepared.entities), PAGE):
            ids = prepared.entities[start : start + PAGE]
            titles = [corpus.entities[number] for number in ids]
            vectors = state.entities_in[start : start + PAGE]
            store.add("entities", titles, vectors, counts=corpus.entity_counts[ids])
        store.redirects(corpus.redirects)
        store.wikidata(corpus.wikidata().items())
        store.surfaces(_surfaces(prepared))
        store.finish(licence=corpus.info.licence, made={"from": "training", "corpus": source, **made})


def _surfaces(prepared: TrainingData) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """Yield the surfaces that name an entity with a vector."""
    corpus = prepared.corpus
    rows, counts = prepared.rows[corpus.mention_entity].tolist(), corpus.mention_count.tolist()
    offsets, occurrences = corpus.surface_mentions.tolist(), corpus.surface_occurrences.tolist()
    for number, surface in enumerate(corpus.surfaces):
        mentions = [(rows[m], counts[m]) for m in range(offsets[number], offsets[number + 1]) if rows[m] >= 0]
        if mentions:
            yield surface, occurrences[number], mentions


@contextmanager
def _saved(save: Callable[[TrainingState], None], state: TrainingState, reason: type[BaseException]) -> Iterator[None]:
    """Save a checkpoint when the block is interrupted, so that nothing is lost."""
    try:
        yield
    except reason:
        save(state)
        raise
