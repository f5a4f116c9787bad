"""Turn a probing run into a result for the repository: ids, ranks and answers, without LAMA's text, which is CC BY-NC.

    python experiments/publish.py RUN... --out results/lama [--top 1]

Of every run it keeps `run.json`, and, compressed, `metrics.json`, `names.jsonl` and `predictions.jsonl` with the --top
best answers. `ebert report` and `ebert report --check` read such a folder like any other run.
"""

import argparse
import json
import lzma
import shlex
import sys
from pathlib import Path

from ebert import EbertError
from ebert._io import files
from ebert.report.runs import read_run


def publish(run: Path, out: Path, top: int) -> None:
    """Write the shipped form of a run."""
    if not read_run(run).complete:
        raise EbertError(f"{run} is not complete; give the command that made it again")
    with files.replacing_folder(out, overwrite=True, marker="run.json") as folder:
        info = files.read_json(run / "run.json", "a run")
        del info["identity"]
        info["command"] = shlex.join(Path(word).name for word in shlex.split(info["command"]))
        files.write_json(folder / "run.json", info)
        with lzma.open(folder / "predictions.jsonl.xz", "wt", encoding="utf-8") as file:
            for line in (run / "predictions.jsonl").open(encoding="utf-8"):
                row = json.loads(line)
                for found in row["modes"].values():
                    found["top"] = found["top"][:top]
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
        for name in ("metrics.json", "names.jsonl"):
            if (run / name).exists():
                (folder / f"{name}.xz").write_bytes(lzma.compress((run / name).read_bytes()))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--top", type=int, default=1)
    options = parser.parse_args()
    try:
        for run in options.runs:
            publish(run, options.out / run.absolute().name, options.top)
    except EbertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
