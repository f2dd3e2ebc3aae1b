"""The command line ``hpcgym``; its commands are modules of this package.

Nothing slow is imported here: Ctrl-C and SIGTERM may come before the commands are imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcgym.cli.interrupts import interruptible

if TYPE_CHECKING:
    from hpcgym.cli.program import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; the entry of the program ``hpcgym``.

    The commands are imported only here, so that Ctrl-C and SIGTERM end in one line meanwhile, too.
    """
    with interruptible():
        from hpcgym.cli.program import run

        run()


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'hpcgym.cli' has no attribute {name!r}")
    from hpcgym.cli.program import app

    return app
