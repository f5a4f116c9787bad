"""`make demo`: the real BERT answers questions with and without entity vectors.

Trained vectors do not ship yet, so the demo makes its own small set (see `toy_vectors.py`) and says so.
"""

import csv
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from toy_vectors import HERE, mean_of_words

import ebert
from ebert.model import MODES
from ebert.vectors.transfer import import_vectors


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def ask(model: ebert.EBert) -> None:
    """Ask all questions in all modes and count what changed against plain BERT."""
    with (HERE / "questions.tsv").open(encoding="utf-8", newline="") as file:
        questions = [
            (ebert.Passage.parse(row["question"]), row["answer"]) for row in csv.DictReader(file, delimiter="\t")
        ]
    passages = [passage for passage, _ in questions]
    answers = {mode: [filled.best for filled in model.fill(passages, mode=mode, top=1)] for mode in MODES}
    width = max(len(passage.text) for passage in passages)
    print(f"{'':<{width}}  {'fact':<11}{''.join(f'{mode:<13}' for mode in MODES)}")
    for index, (passage, fact) in enumerate(questions):
        given = [answers[mode][index] for mode in MODES]
        cells = "".join(f"{('* ' if answer == fact else '  ') + answer:<13}" for answer in given)
        print(f"{passage.text:<{width}}  {fact:<11}{cells}".rstrip())
    plain = [answer == fact for answer, (_, fact) in zip(answers["bert"], questions, strict=True)]
    print(f"\nbert answers {sum(plain)} of {len(questions)} questions as the fact has it (*).")
    for mode in MODES[1:]:
        right = [answer == fact for answer, (_, fact) in zip(answers[mode], questions, strict=True)]
        better = sum(new and not old for new, old in zip(right, plain, strict=True))
        worse = sum(old and not new for new, old in zip(right, plain, strict=True))
        print(
            f"{mode}: {sum(right)} right; {better} got better, {worse} worse, {len(questions) - better - worse} stayed."
        )


def teach(model: ebert.EBert) -> None:
    """Add an entity that nobody has heard of, and ask about it."""
    assert model.vectors is not None
    description = "German composer and pianist of Berlin, Germany"
    find, vector = model.vectors.find_word, model.vectors.word
    words = {word: vector(word) for word in re.findall(r"\w+", description) if find(word) is not None}
    question = "The native language of [[Quorl Bantrix]] is [MASK] ."
    print(f"before: {model.fill(question, mode='replace').best} (missing: {', '.join(model.missing(question))})")
    start = time.perf_counter()
    model.vectors.add("Quorl Bantrix", mean_of_words(description, words))
    print(f"added 'Quorl Bantrix: {description}' in {1000 * (time.perf_counter() - start):.0f} ms")
    print(f"after:  {model.fill(question, mode='replace').best}")


def main() -> None:
    """Run the demo in a temporary folder."""
    start = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="ebert-demo-"))
    try:
        heading("1. The real BERT (ebert bert get bert-base-cased)")
        print(ebert.get_bert("bert-base-cased"))
        heading("2. Vectors (ebert vectors import)")
        print("NOT trained vectors: this demo makes its own, from one-line descriptions.", flush=True)
        toy = folder / "toy-vectors.txt"
        subprocess.run([sys.executable, str(HERE / "toy_vectors.py"), "--out", str(toy)], check=True)
        vectors = import_vectors([toy], folder / "store")
        print(vectors)
        heading("3. Fit W (ebert align)")
        model = ebert.EBert.fit("bert-base-cased", vectors, options=ebert.AlignmentOptions(length=1.4))
        assert model.alignment is not None
        report = model.alignment.report
        found = "-" if report.top1 is None else f"{report.top1:.0f} %"
        print(f"{report.pairs:,} words are wordpieces; R² {report.r2:.2f}; held-out words found again: {found}")
        heading("4. Questions (ebert fill): plain BERT, E-BERT-concat, E-BERT-replace")
        ask(model)
        heading("5. Nearest neighbours (ebert vectors nearest)")
        for neighbour in vectors.nearest("Jean Marais", top=3) + vectors.nearest("Jean Marais", top=4, kind="words"):
            print(f"{neighbour.similarity:.2f}  {neighbour.kind:<6}  {neighbour.name}")
        heading("6. An entity that is new to everybody (ebert vectors add)")
        teach(model)
        print(f"\n{time.perf_counter() - start:.0f} seconds in all.")
        vectors.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
