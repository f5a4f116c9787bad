"""What a service does and how much it takes on."""

from dataclasses import dataclass, field
from ipaddress import ip_address

from ebert.errors import EbertError

TOKEN = "EBERT_TOKEN"  # noqa: S105 - the name of the variable
SHORTEST = 16  # letters of a token: guessing one of these takes longer than anyone has


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much the service takes on; what is beyond is refused in words."""

    characters: int = 20_000
    """Of a text."""
    body: int = 256 * 1024
    """Bytes of a request."""
    top: int = 100
    """Answers, neighbours or suggestions that can be asked for."""
    candidates: int = 10_000
    """Words to choose from that a request may give."""
    rounds: int = 10
    """Rounds of refinement that can be asked for."""
    cost: int = 60_000
    """Characters of texts to link, times rounds of refinement: the longest text in the three rounds of most linkers."""
    waiting: int = 256
    """Requests that wait for the model; one more is answered 503."""
    seconds: float = 30.0
    """Until an answer must be there; a request that takes longer is answered 504."""
    client_seconds: float = 10.0
    """For a client to send its request, or to take its answer; a slower one is cut off."""
    connections: int = 400
    """Requests open at the same time; twice as many connections. Most systems allow a process 1024 open files."""
    added: int = 10_000
    """Entities that can be added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Where the service listens, how it batches, and its limits."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    """For what changes something, and beyond loopback for everything."""
    batching: bool = True
    """Whether requests of several clients go through the encoder together."""
    window: float = 0.004
    """Seconds that the first request of a batch waits for others."""
    budget: int | None = None
    """Tokens of a batch; what suits the device if not given."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise EbertError(f"port is {self.port}; it must be between 0 (any free one) and 65535")
        if not 0 <= self.window <= 1:
            raise EbertError(f"window is {self.window}; it is in seconds, from 0 to 1")
        if self.budget is not None and self.budget < 1:
            raise EbertError(f"budget is {self.budget}; a batch needs at least one token")
        if len(self.token) < SHORTEST or not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise EbertError(
                f"{TOKEN} must be at least {SHORTEST} characters of ASCII without blanks; "
                "leave it unset, and one is made for you"
            )

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine can reach the service."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address means this machine, seen from itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
