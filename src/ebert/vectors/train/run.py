"""From a corpus to a store: train, with checkpoints, and write what was learned."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._io.progress import progress
from ebert.errors import EbertError
from ebert.vectors import writer
from ebert.vectors.catalogue import PAGE
from ebert.vectors.train import checkpoint, data, options, trainer
from ebert.vectors.train.trainer import State
from ebert.wikipedia.corpus import Corpus


def train(
    corpus: Corpus,
    out: Path,
    chosen: options.VectorTrainingOptions,
    *,
    threads: int = 1,
    keep: Collection[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    every: float = 600.0,
    dtype: str = "float32",
) -> dict[str, Any]:
    """Train vectors of a corpus and save them as a store at `out`; give what was done, for people and programs.

    A checkpoint is written beside the store every so many seconds; with `resume` a run goes on with the last one, if
    there is one. With one thread the result depends on the options alone, whether the run was interrupted or not.
    """
    started = time.monotonic()
    writer.refuse(out, overwrite=overwrite)
    folder = checkpoint.folder_of(out)
    if folder.exists() and not (resume or overwrite):
        raise EbertError(f"{folder} has an unfinished training; go on with it (--resume) or begin again (--overwrite)")
    work = data.make_task(corpus, chosen, keep=keep)
    state, run = trainer.initial(work, chosen), checkpoint.identity(corpus, chosen, list(keep))
    if resume and (folder / checkpoint.INFO).exists():
        state = checkpoint.load(folder, run, state)
        trainer.check(work, state)
    began = state.done
    trained = trainer.Trainer(work, chosen, state, threads=threads)

    def save(now: State) -> None:
        trainer.check(work, now)  # the last checkpoint is good, and stays if this one would not be
        checkpoint.save(folder, run, now)

    with _saved(save, state, KeyboardInterrupt), progress("train", total=trained.words_left(), unit="words") as advance:
        speed = trained.run(advance=advance, save=save, every=every)
    trainer.check(work, state)
    made = {
        "from": "training",
        "corpus": {
            "dumps": corpus.info.dumps,
            "words": corpus.info.words,
            "language": corpus.info.language,
            "lowercase": corpus.info.lowercase,
            "tokeniser": corpus.info.tokeniser,
        },
        "options": asdict(chosen),
        "threads": threads,
        "seconds": round(state.seconds, 1),
    }
    with _saved(save, state, BaseException):  # a full disk must not cost the training
        write(work, state, out, made=made, dtype=dtype, overwrite=overwrite)
    checkpoint.remove(folder)
    return {
        "store": str(out), "vocabulary": work.words, "entities": len(work.entities), "dimension": chosen.dim,
        "resumed": began > 0, "missing": work.missing, **speed.report(),
        "seconds": round(time.monotonic() - started, 3),
    }  # fmt: skip


def write(
    work: data.Task, state: State, out: Path, *, made: dict[str, Any], dtype: str = "float32", overwrite: bool = False
) -> None:
    """Write what was learned as a store, with redirects, Wikidata ids and surfaces of the corpus."""
    corpus = work.corpus
    with writer.writing(out, dimension=state.words_in.shape[1], dtype=dtype, overwrite=overwrite) as store:
        for start in range(0, work.words, PAGE):
            stop = min(start + PAGE, work.words)
            counts, learned = corpus.word_counts[start:stop], state.words_out[start:stop]
            store.add("words", corpus.words[start:stop], state.words_in[start:stop], counts=counts, outputs=learned)
        store.dropped.unseen = work.unseen
        titles, counts = corpus.entities, corpus.entity_counts
        for start in range(0, len(work.entities), PAGE):
            ids = work.entities[start : start + PAGE]
            names = [titles[number] for number in ids]
            store.add("entities", names, state.entities_in[start : start + PAGE], counts=counts[ids])
        store.redirects(corpus.redirects)
        store.wikidata(corpus.wikidata().items())
        store.surfaces(_surfaces(work))
        store.finish(licence=corpus.info.licence, made=made)


def _surfaces(work: data.Task) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """Give the surfaces that name an entity with a vector."""
    corpus = work.corpus
    rows: NDArray[np.int64] = np.full(len(corpus.entity_counts), -1, np.int64)
    rows[work.entities] = np.arange(len(work.entities))
    rows_of = rows[np.asarray(corpus.mention_entity)].tolist()
    counts, offsets = np.asarray(corpus.mention_count).tolist(), np.asarray(corpus.surface_mentions).tolist()
    occurrences = np.asarray(corpus.surface_occurrences).tolist()
    for number, surface in enumerate(corpus.surfaces):
        mentions = [(rows_of[m], counts[m]) for m in range(offsets[number], offsets[number + 1]) if rows_of[m] >= 0]
        if mentions:
            yield surface, occurrences[number], mentions


@contextmanager
def _saved(save: Callable[[State], None], state: State, reason: type[BaseException]) -> Iterator[None]:
    """Save a checkpoint when the block is interrupted, so that nothing is lost."""
    try:
        yield
    except reason:
        save(state)
        raise
