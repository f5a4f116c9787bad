"""Make a small file of word and entity vectors in Wikipedia2Vec's text format, to try `ebert` without a Wikipedia dump.

    python examples/toy_vectors.py --out toy-vectors.txt

These are not trained vectors. A word's vector is its own wordpiece vector of the encoder, turned into another space by
a random rotation; an entity's vector is the mean over the words of its description in `entities.tsv`. So they know what
the descriptions say and nothing else.
"""

import argparse
import csv
import re
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
DIMENSION = 300
STOP = {"a", "an", "and", "born", "in", "later", "of", "the", "who", "wrote"}


def describe(path: Path = HERE / "entities.tsv") -> dict[str, str]:
    """Read titles and descriptions."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["title"]: row["description"] for row in csv.DictReader(file, delimiter="\t")}


def mean_of_words(description: str, words: dict[str, np.ndarray]) -> np.ndarray:
    """Give the mean vector of the words of a description that have one."""
    found = [words[word] for word in re.findall(r"\w+", description) if word in words and word not in STOP]
    return np.mean(found, axis=0)


def word_vectors(bert: str) -> dict[str, np.ndarray]:
    """Give the wordpiece vectors of all words that are one wordpiece, rotated and cut to fewer dimensions."""
    from ebert.model.encoder import Encoder
    from ebert.model.vocabulary import Vocabulary

    encoder = Encoder.load(bert)
    words = Vocabulary(encoder.tokenizer).words
    table = encoder.embedding.weight.detach().numpy()[list(words.values())]
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(encoder.width, DIMENSION)))[0]
    return dict(zip(words, table @ rotation, strict=True))


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("toy-vectors.txt"))
    parser.add_argument("--bert", default="bert-base-cased")
    options = parser.parse_args()
    words = word_vectors(options.bert)
    named = dict(words)
    named.update({f"ENTITY/{title}": mean_of_words(text, words) for title, text in describe().items()})
    with options.out.open("w", encoding="utf-8") as file:
        for name, vector in named.items():
            file.write(f"{name}\t{' '.join(f'{value:.4f}' for value in vector)}\n")
    print(f"wrote {len(words):,} words and {len(named) - len(words)} entities to {options.out}")


if __name__ == "__main__":
    main()
