"""Errors as clients get them: a status and a sentence."""

import math


class Problem(Exception):  # noqa: N818 - an answer, not a failure of ours
    """An answer other than the one that was asked for."""

    def __init__(self, status: int, error: str, *, retry_after: float | None = None, reason: str | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.reason = status, error, reason
        self.headers: dict[str, str] = {}
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
        if status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"
