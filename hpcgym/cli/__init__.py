"""The command line ``hpcgym``; its commands are modules of this package."""

from hpcgym.cli.program import app, main

__all__ = ["app", "main"]
