"""Where commands do their tasks: options, and how a command becomes one of many MPI ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from hpcgym.errors import HpcgymError, installing


def names() -> Iterable[tuple[str, str]]:
    """Return the executors with what they are, for help."""
    from hpcgym.sweep import EXECUTORS

    return EXECUTORS.items()


@dataclass(frozen=True)
class ExecutorOptions:
    """Where tasks are done."""

    panel: ClassVar[str] = "Running"

    executor: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Where tasks run; see the list below. Results are the same."
        ),
    ] = "processes"
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of workers to start on this machine, for processes, dask and ray.",
            show_default="as many as processors",
        ),
    ] = None

    def become_mpi(self) -> None:
        """Begin again under ``python -m mpi4py.futures``, which has other ranks wait for tasks.

        Raises
        ------
        HpcgymError : an unknown executor, or a number of workers for one that starts none.
        """
        from hpcgym.sweep.executors import check_executor, leads_mpi

        check_executor(self.executor, self.workers)
        if self.executor != "mpi" or leads_mpi():
            return
        try:
            import mpi4py  # noqa: F401
        except ImportError:
            raise HpcgymError(f"MPI is not installed: {installing('distributed')}") from None
        python = [sys.executable, "-m", "mpi4py.futures", "-m", "hpcgym"]
        os.execv(sys.executable, [*python, *sys.argv[1:]])
