"""`make demo`: the real BERT answers questions with and without the entity vectors that come with ebert."""

import csv
import shutil
import sys
import tempfile
import time
from pathlib import Path

import ebert
from ebert.model.options import MODES

HERE = Path(__file__).parent
NEW = "Quorl Bantrix"
DESCRIPTION = (
    "Quorl Bantrix is a German composer and pianist from Berlin. He studied music at the conservatory of Leipzig and "
    "wrote operas, symphonies and songs to German poems."
)


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
    print(f"{'':<{width}}  {'fact':<13}{''.join(f'{mode:<14}' for mode in MODES)}")
    for index, (passage, fact) in enumerate(questions):
        given = [answers[mode][index] for mode in MODES]
        cells = "".join(f"{('* ' if answer == fact else '  ') + answer:<14}" for answer in given)
        print(f"{passage.text:<{width}}  {fact:<13}{cells}".rstrip())
    plain = [answer == fact for answer, (_, fact) in zip(answers["bert"], questions, strict=True)]
    print(f"\nbert answers {sum(plain)} of {len(questions)} questions as the fact has it (*).")
    for mode in MODES[1:]:
        right = [answer == fact for answer, (_, fact) in zip(answers[mode], questions, strict=True)]
        better = sum(new and not old for new, old in zip(right, plain, strict=True))
        worse = sum(old and not new for new, old in zip(right, plain, strict=True))
        print(
            f"{mode}: {sum(right)} right; {better} got better, {worse} worse, {len(questions) - better - worse} stayed."
        )
    if missing := model.missing(passages):
        print(f"without a vector: {', '.join(missing)}")


def teach(model: ebert.EBert) -> None:
    """Add an entity that nobody has heard of, and ask about it."""
    assert model.vectors is not None
    questions = [f"The native language of [[{NEW}]] is [MASK] .", f"[[{NEW}]] is a [MASK] by profession ."]
    before = [filled.best for filled in model.fill(questions, mode="concat", top=1)]
    start = time.perf_counter()
    model.vectors.add(NEW, description=DESCRIPTION)
    print(f"added in {1000 * (time.perf_counter() - start):.0f} ms: {DESCRIPTION}")
    after = [filled.best for filled in model.fill(questions, mode="concat", top=1)]
    for question, old, new in zip(questions, before, after, strict=True):
        print(f"{ebert.Passage.parse(question).text}  before: {old}, after: {new}")


def main() -> None:
    """Run the demo. The entity that it adds goes into a copy of the store."""
    start = time.perf_counter()
    heading("1. The real BERT (ebert bert get bert-base-cased)")
    print(ebert.get_bert("bert-base-cased"))
    heading("2. The vectors that come with ebert, and W (ebert starter)")
    folder = Path(tempfile.mkdtemp(prefix="ebert-demo-"))
    try:
        model = ebert.EBert.from_pretrained(shutil.copytree(ebert.get_starter(), folder / "starter"))
        assert model.vectors is not None
        assert model.alignment is not None
        print(model.vectors)
        print(f"R² of W {model.alignment.report.r2:.2f}; licence: {model.vectors.info.licence}")
        heading("3. Questions (ebert fill): plain BERT, E-BERT-concat, E-BERT-replace")
        ask(model)
        heading("4. Nearest neighbours (ebert vectors nearest)")
        near = model.vectors.nearest
        for neighbour in near("Jean Sibelius", top=5) + near("Jean Sibelius", top=5, kind="words"):
            print(f"{neighbour.similarity:.2f}  {neighbour.kind:<6}  {neighbour.name}")
        heading("5. An entity that is new to everybody (ebert vectors add)")
        teach(model)
        print(f"\n{time.perf_counter() - start:.0f} seconds in all.")
        model.vectors.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
