"""What a service does and how much it takes on."""

import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address

from ebert._options import Options, option
from ebert.errors import EbertError

TOKEN = "EBERT_TOKEN"  # noqa: S105 - the name of the variable
SHORTEST = 16  # letters of a token: guessing one of these takes longer than anyone has


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Options):
    """How much the service takes on; what is beyond is refused with a sentence."""

    waiting: int = option(256, "Maximum number of requests waiting for the model; more are refused (503).", low=1)
    seconds: float = option(30.0, "Time limit for an answer, in seconds; after it, the answer is 504.", low=0.1)
    characters: int = option(20_000, "Maximum characters in a text.", low=1)
    cost: int = option(60_000, "Maximum of characters times rounds of refinement, for a text to link.", low=1)
    body: int = option(256 * 1024, "Bytes of a request.", cli=False)
    top: int = option(100, "Answers, neighbours or suggestions that can be asked for.", cli=False)
    candidates: int = option(10_000, "Words to choose from that a request may give.", cli=False)
    rounds: int = option(10, "Rounds of refinement that can be asked for.", cli=False)
    client_seconds: float = option(10.0, "For a client to send its request, or to take its answer.", cli=False)
    # Twice as many connections; most systems allow a process 1024 open files.
    connections: int = option(400, "Requests open at the same time.", cli=False)
    added: int = option(10_000, "Entities that can be added.", cli=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(Options):
    """Where the service listens, how it batches, and its limits."""

    host: str = option("127.0.0.1", "The address to listen on.")
    port: int = option(8000, "The port to listen on; 0 takes any free one.", low=0, high=65535)
    batching: bool = option(True, "Send requests of several clients through the encoder together.")
    window: float = option(0.004, "Seconds that a request waits for others to join its batch.", low=0, high=1)
    budget: int | None = option(None, "Maximum tokens in a batch.  [default: suits the device]", low=1)
    # The token is for what changes something, and beyond loopback for everything.
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self.check()
        if len(self.token) < SHORTEST or not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise EbertError(
                f"{TOKEN} must be at least {SHORTEST} characters of ASCII without blanks; "
                "if you leave it unset, a token is made for you"
            )

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine can reach the service."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether a name or an address means this machine, seen from itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
