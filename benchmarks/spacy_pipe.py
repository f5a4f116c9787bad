"""What the spaCy pipe costs, compared with calling the linker directly, with the same linker and the same texts.

    python benchmarks/spacy_pipe.py [--linker LINKER] [--texts N] [--rounds N]

`ebert.Linker` on all texts and ``nlp.pipe`` of a blank English pipeline with the pipe in it take turns, and the fastest
round of each counts, in CPU time, which other programs affect least. The third row is the work that the pipe adds, by
itself: making tokens, and setting links that were found before as entities. The links of both ways are compared. The
last line is the linker's time divided by the pipeline's: 1.00 means that the pipe costs nothing.

(The file is not called spacy.py, because Python would then import it as spaCy.)
"""

import argparse
import os
import time
from collections.abc import Callable

import spacy
import torch
from spacy.about import __version__
from spacy.language import Language

import ebert
from ebert.spacy import EbertLinker

SENTENCES = (
    "Jean Sibelius was born in Finland and studied music in Berlin and Vienna.",
    "Albert Einstein played the violin in Princeton, New Jersey, where he met Kurt Gödel.",
    "NATO met in London; Angela Merkel came from Germany, and others from France, Italy and Japan.",
    "Paris Saint-Germain beat Real Madrid in the Champions League, and Lionel Messi scored twice.",
    "The report said on Monday that the talks would go on before the end of the year.",
)


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linker", default="starter")
    parser.add_argument("--texts", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    texts = [" ".join(SENTENCES[n % 5 :] + SENTENCES[: n % 5]) for n in range(options.texts)]
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("ebert_linker", config={"linker": options.linker})
    assert isinstance(pipe, EbertLinker)
    ways: dict[str, Callable[[], object]] = {
        "Linker": lambda: _linked(pipe.linker, texts),
        "nlp.pipe": lambda: _piped(nlp, texts),
        "added": lambda: pipe.set_annotations([nlp.make_doc(text) for text in texts], found),
    }
    found = pipe.predict([nlp.make_doc(text) for text in texts])
    piped = _piped(nlp, texts)
    same = _linked(pipe.linker, texts) == piped
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(options.rounds):
        for name, run in ways.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    words = sum(len(text.split()) for text in texts)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"{len(texts)} texts of {words / len(texts):.0f} words, {options.linker}, {cores} cores, "
        f"{torch.get_num_threads()} threads, spaCy {__version__}, torch {torch.__version__}"
    )
    for name, seconds in best.items():
        print(f"  {name:<12} {1000 * seconds / len(texts):8.2f} ms a text  {words / seconds:10,.0f} words/s")
    print(f"  {sum(map(len, piped))} links, {'the same' if same else 'NOT THE SAME'} both ways")
    print(f"ratio linker to pipe: {best['Linker'] / best['nlp.pipe']:.2f}")


def _linked(linker: ebert.Linker, texts: list[str]) -> list[list[tuple[int, int, str]]]:
    return [[(m.start, m.end, m.entity) for m in one.mentions] for one in linker(texts)]


def _piped(nlp: Language, texts: list[str]) -> list[list[tuple[int, int, str]]]:
    return [[(e.start_char, e.end_char, e.kb_id_) for e in doc.ents] for doc in nlp.pipe(texts)]


if __name__ == "__main__":
    main()
