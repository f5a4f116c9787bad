"""Errors as clients get them: a status and a sentence."""

import math


class Problem(Exception):  # noqa: N818 - it is an answer, not a failure of ours
    """An answer other than the one that was asked for."""

    def __init__(self, status: int, error: str, *, retry_after: float | None = None) -> None:
        """Say what was wrong and what to do."""
        super().__init__(error)
        self.status, self.error = status, error
        self.headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
        if status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"
