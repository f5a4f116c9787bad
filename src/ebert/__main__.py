"""``python -m ebert`` is the command line."""

from ebert.cli import main

main()
