"""The starter model, unpacked into EBERT_HOME when it is first asked for.

It is for bert-base-cased and has a store, W and perhaps a linker. `experiments/starter.py` makes its data.
"""

import shutil
from pathlib import Path

from ebert._io import files
from ebert._io.home import STARTER, home, locked, remove_leftovers
from ebert.errors import EbertError
from ebert.model.folder import INFO, VECTORS

DATA = Path(__file__).parent / "data"


def get_starter() -> Path:
    """Return the folder of the starter model, for `EBert.from_pretrained`; its store is in ``vectors`` there.

    >>> model = EBert.from_pretrained(get_starter())                          # doctest: +SKIP

    Its files never change: added entities end with the object they are added to, or go into a store of your own
    (``ebert vectors copy starter my-entities``). A new version of ebert brings a new folder.
    """
    seal = DATA / "starter.json"  # which has hashes of all files
    if not seal.is_file():
        raise EbertError(f"the starter model is not in {DATA}; install ebert again")
    out = home() / STARTER / files.sha256(seal)[:12]
    if (out / INFO).is_file():
        return out
    with locked(out):  # other processes may be unpacking it too: the second one finds it there
        if (out / INFO).is_file():
            return out
        from ebert.starter import packing  # numpy

        remove_leftovers(out)
        if out.exists():
            raise EbertError(f"{out} has no {INFO}; move it away, then the starter model is unpacked again")
        with files.replacing_folder(out) as folder:
            packing.unpack(DATA, folder / VECTORS)
            for path in DATA.iterdir():
                if path.name not in (packing.MATRICES, packing.NAMES):
                    shutil.copyfile(path, folder / path.name)
    return out
