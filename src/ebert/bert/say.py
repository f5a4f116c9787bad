"""Messages to the person at the terminal. They go to stderr: stdout is for results."""

import sys


def say(message: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
