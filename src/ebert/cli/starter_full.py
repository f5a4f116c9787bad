"""``ebert starter --build full``: the commands of `ebert.starter.recipe`, one after the other, in one folder.

They run in this process, by the same way as the shell's, so that Ctrl-C and a kill stop the step that runs, and the
error of a step is that of the command. A step whose last file is there is not done again. The others begin again, or
continue from their own checkpoints.
"""

import gc
import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import click

from ebert import _names
from ebert._io import files, staging
from ebert._io.progress import say, waiting
from ebert._runs import alone_in, key_of, refuse_other, saying_where
from ebert.cli import cli
from ebert.cli.align import is_lama, titles_left_out
from ebert.errors import EbertError
from ebert.model.folder import INFO as MODEL
from ebert.model.folder import VECTORS, FoundModel, find
from ebert.starter import recipe
from ebert.starter.recipe import FullOptions, Step
from ebert.wikipedia.build import look_at

BUILD = "build.json"
LINKER = _names.MARKERS["linker"][0]
NEEDED = ("numba", "scipy", "threadpoolctl", "accelerate")


def build_full(
    dumps: Sequence[str], out: str, options: FullOptions, *, leave_out: Sequence[str] = (),
    threads: int | None = None, device: str | None = None, overwrite: bool = False,
) -> Path:  # fmt: skip
    """Make the full set in the folder `out`, or go on making it; return the folder of its model and linker."""
    if missing := next((name for name in NEEDED if find_spec(name) is None), None):
        raise EbertError(f"building the full set needs {missing}: pip install 'ebert[train,linking]'")
    folder = Path(out).absolute()
    looked = [dump for dump, _ in look_at(dumps)]
    everywhere, lama = ([str(Path(p).absolute()) for p in leave_out if is_lama(p) == own] for own in (False, True))
    titles = {"left out": titles_left_out(everywhere), "not learned": titles_left_out(lama)}
    if Path(options.bert).is_dir():
        options = replace(options, bert=str(Path(options.bert).absolute()))
    encoder = find(None, options.bert)
    identity = {
        **asdict(options), "dumps": [f"{dump.path.name} ({dump.size:,} bytes)" for dump in looked],
        **{name: key_of({"titles": sorted(found)}) if found else None for name, found in titles.items()},
        "recipe": key_of({"steps": [recipe.VECTORS, recipe.LEARNED, recipe.LINKER]}),
    }  # fmt: skip
    steps = recipe.steps(
        folder, [str(dump.path.absolute()) for dump in looked], options, left_out=everywhere, not_learned=lama,
        threads=threads or os.cpu_count() or 1, device=device,
    )  # fmt: skip
    result = folder / recipe.RESULT
    with saying_where(folder), alone_in(folder, marker=BUILD) as known:
        before = files.read_json(folder / BUILD, "a full set") if known else {}
        other = not known or refuse_other(folder, before, identity, what="a full set", overwrite=overwrite)
        if other or not (result / LINKER).is_file():
            _check_encoder(encoder, device)
        if other:
            _clear(folder, steps)
            files.write_json(folder / BUILD, identity)
        if not (result / LINKER).is_file():
            _run(folder, steps)
            _finish(folder, result)
    return result


def _check_encoder(found: FoundModel, device: str | None) -> None:
    """Raise `EbertError` for an encoder that cannot be trained as a linker, which is the last step of all."""
    with waiting(f"loading {found.encoder}"):
        from ebert.model.encoder import Encoder

        encoder = Encoder.load(found.encoder, folder=found.encoder_folder, device=device)
    if not encoder.only_absolute_positions:
        raise EbertError(
            f"{found.encoder} does not go by absolute positions alone, which the linker of the full set needs; give an "
            "encoder like BERT, RoBERTa, DistilBERT, ELECTRA or ALBERT (--bert)"
        )


def _clear(folder: Path, steps: Sequence[Step]) -> None:
    """Remove what another build has left: the folders of its steps, and those for checkpoints beside them."""
    ours = {recipe.RESULT, *(step.folder for step in steps)}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name.partition(".")[0] in ours:
            staging.discard(path)


def _run(folder: Path, steps: Sequence[Step]) -> None:
    """Run the steps that are not complete. What they print is progress here, and goes to stderr."""
    for number, step in enumerate(steps, 1):
        begin = f"step {number} of {len(steps)}, {step.folder}"
        if (folder / step.folder / step.done).is_file():
            say(f"{begin}: complete")
            continue
        say(f"{begin}: {shlex.join(['ebert', *step.command])}")
        start = time.monotonic()
        try:
            with redirect_stdout(sys.stderr):
                cli.main(step.command, prog_name="ebert", standalone_mode=False)
        except (click.Abort, KeyboardInterrupt):
            say("stopped; give the same command again to continue")
            raise
        gc.collect()  # before the next step, which may need much memory itself
        say(f"{begin}: {time.monotonic() - start:,.0f} s")


def _finish(folder: Path, result: Path) -> None:
    """Make a folder of the trained linker that can be moved: its store is linked into it, which takes no room."""
    from ebert.finetuning.folder import MODEL as TRAINED
    from ebert.vectors.store import Vectors

    with files.replacing_folder(result) as new:
        shutil.copytree(folder / recipe.RUN / TRAINED, new, dirs_exist_ok=True)
        Vectors.open(folder / recipe.STORE).copy(new / VECTORS).close()
        for name in (MODEL, LINKER):
            info = files.read_json(new / name, "a linker")
            here = {"vectors": {**info["vectors"], "name": VECTORS}, "saved_here": ""}  # no path of this machine
            files.write_json(new / name, {**info, **here})
