"""Write data/v0.1 or data/v0.2: folders of old code, which later code must open. Done once for each:

git worktree add OLD c782f51
PYTHONPATH=OLD/src python tests/golden/golden_old_write.py

v0.1 is of commit c782f51, the last of 0.1; v0.2 of dda9d0d, before the package was written anew.
"""

import os
import shutil
import tempfile
from pathlib import Path

from golden_tools import DATA, run
from golden_world import QUESTION, TEXT, write_world

LINKING = ["linking.jsonl", "--dev", "linking.jsonl", "--model", "model", "--epochs", 1, "--chunk", 64]


def main() -> None:
    """Make a model with its store, to which an entity is added, a linker and runs."""
    import ebert

    version = "v" + ".".join(ebert.__version__.split(".")[:2])
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.chdir(root)
        write_world(root)
        run("vectors", "import", "vectors.txt", "--out", "plain", "--licence", "none")
        run("link", "candidates", "plain", "--table", "table.tsv", "--out", "store")
        run("align", "store", "--bert", "bert", "--out", "model", "--include-vectors")
        run("link", "train", *LINKING, "--out", "linker")
        run("relations", "train", "relations", "--model", "model", "--mode", "concat", "--epochs", 1, "--batch", 4,
            "--out", "relations-run")  # fmt: skip
        run("relations", "evaluate", "relations-run", "relations/test.json", "--keep")
        run("probe", "questions", "questions.jsonl", "--model", "model", "--mode", "concat", "--filter", "all",
            "--out", "probe-run")  # fmt: skip
        run("vectors", "add", "model/vectors", "Zork", "--vector", "vector.txt", "--alias", "Zo", "--wikidata", "Q4242",
            "--id", "z")  # fmt: skip
        answers = {
            "fill": run("fill", "--model", "model", "--top", 3, "--json", QUESTION).json,
            "find": run("vectors", "find", "model/vectors", "--json", "Zo", "Q4242", "z", "Zork", "jean_Marais").json,
            "nearest": run("vectors", "nearest", "model/vectors", "Zork", "--top", 3, "--json").json,
            "link": run("link", "run", "linker", "--json", "--text", TEXT).json,
            "predict": run(
                "relations", "predict", "relations-run", "--json", "[[Jean Marais]] was born in [[Paris]] ."
            ).json,
        }
        shutil.rmtree(DATA / version, ignore_errors=True)
        for folder in ("bert", "model", "linker", "relations-run", "probe-run"):
            shutil.copytree(folder, DATA / version / folder, ignore=shutil.ignore_patterns("*.lock", "*.svg"))
    import golden_tools

    golden_tools.WRITING = True
    golden_tools.check_json(f"{version}/answers.json", answers)


if __name__ == "__main__":
    main()
