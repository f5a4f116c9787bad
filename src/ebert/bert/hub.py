"""Fetches an encoder from the Hugging Face hub, its files as they are.

Into a folder of our own rather than the cache of the hub's client: there a download that was killed looks like a whole
one, a changed file is not noticed without the network, and there is no place for safetensors made of a pickle. What
that cache has is used when the hub cannot be reached.
"""

import re
import shutil
from pathlib import Path

from ebert._io.progress import say
from ebert.bert.load import convert_pickle, only_pickle
from ebert.errors import EbertError

SECONDS = 5.0  # to wait for the hub's first answer: it answers in one, and without a network Maven should have its turn

# What loading needs, in the repository's top folder; a model's repository may also hold weights for other frameworks,
# training logs and copies of all of it in folders. Sentencepiece's models have many names: spiece.model,
# sentencepiece.bpe.model, tokenizer.model.
FILES = re.compile(
    r"config\.json|vocab\.(txt|json)|merges\.txt|tokenizer(_config)?\.json|special_tokens_map\.json"
    r"|added_tokens\.json|bpe\.codes|LICENSE(\.txt)?|[^/]*\.model"
)
SAFE = re.compile(r"model(-0[^/]*)?\.safetensors|model\.safetensors\.index\.json")
PICKLED = re.compile(r"pytorch_model(-0[^/]*)?\.bin|pytorch_model\.bin\.index\.json")


def fetch_hub(name: str, into: Path, *, allow_pickle: bool = False) -> dict[str, str]:
    """Fetch the encoder `name`, or `name@revision`, from the hub `into` a folder; return where it came from."""
    from huggingface_hub import HfApi, snapshot_download

    repository, _, revision = name.partition("@")
    say(f"asking the Hugging Face hub for {name}")
    # The hub's client raises the errors of its HTTP library, another one in each of its major versions: all of them
    # mean that the hub has no answer for us, and the message says which.
    try:
        info = HfApi().model_info(repository, revision=revision or None, timeout=SECONDS)
    except Exception as error:
        commit = _copy_cached(repository, revision, into, allow_pickle=allow_pickle)
        if commit is None:
            raise EbertError(_brief(error)) from error
        artifact, licence = f"{repository}@{commit}", "not stated by the cache"
    else:
        wanted = choose([file.rfilename for file in info.siblings or []], allow_pickle=allow_pickle)
        say(f"fetching {len(wanted)} files of {info.id} from the hub")
        try:
            # One revision for all files, even if the repository changes meanwhile.
            snapshot_download(info.id, revision=info.sha, local_dir=into, allow_patterns=wanted)
        except Exception as error:
            raise EbertError(f"the download broke off ({_brief(error)}); try again") from error
        shutil.rmtree(into / ".cache", ignore_errors=True)  # the client's notes about the download
        stated = info.card_data.get("license") if info.card_data else None
        artifact, licence = f"{info.id}@{info.sha}", str(stated or "not stated by the repository")
    if only_pickle(into):
        convert_pickle(into)
        for pickle in into.glob("pytorch_model*"):
            pickle.unlink()
    return {"artifact": artifact, "licence": licence}


def _copy_cached(repository: str, revision: str, into: Path, *, allow_pickle: bool) -> str | None:
    """Copy the encoder from the hub client's cache, where transformers may have put it; return its commit, or None."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(repository, revision=revision or None, local_files_only=True))
        wanted = choose([file.name for file in folder.iterdir()], allow_pickle=allow_pickle)
    except Exception:  # not there or not whole: the hub's own error says more
        return None
    say(f"the hub cannot be reached; taking {repository} from its cache at {folder}")
    for file in wanted:
        shutil.copyfile(folder / file, into / file)
    return folder.name


def choose(files: list[str], *, allow_pickle: bool = False) -> list[str]:
    """Choose the files to fetch: what the tokeniser needs and one kind of weights, safetensors if there are any.

    A pickle can hold a program in the place of weights, so it is fetched only if it is asked for.
    """
    if "config.json" not in files:
        raise EbertError("the repository has no config.json, so it is not a transformers model")
    safe, pickled = list(filter(SAFE.fullmatch, files)), list(filter(PICKLED.fullmatch, files))
    if not safe and not pickled:
        raise EbertError("the repository has neither model.safetensors nor pytorch_model.bin")
    if not safe and not allow_pickle:
        raise EbertError(
            "the repository has no safetensors, only pytorch_model.bin, which is a pickle; if you trust it, "
            "convert it to safetensors: ebert bert get NAME --allow-pickle"
        )
    return [*filter(FILES.fullmatch, files), *(safe or pickled)]


def _brief(error: Exception) -> str:
    """Return the kind of an error and its first line: the hub's messages go on for a paragraph."""
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
