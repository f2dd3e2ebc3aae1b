"""Ports on loopback, kept for a private Slurm from when they are chosen."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hpcgym.errors import HpcgymError

_PORTS = range(12_000, 30_000)  # below those that systems give to clients
_TRIES = 100


@contextmanager
def kept_ports(number: int) -> Iterator[int]:
    """Keep so many ports in a row on loopback, and yield the first, while the block lasts.

    A server that sets ``SO_REUSEADDR``, as Slurm's daemons do, may listen there; who looks for
    ports as this does finds them taken.

    Raises
    ------
    HpcgymError : so many ports in a row are not free, or a process may not open so many.
    """
    for _ in range(_TRIES if number < len(_PORTS) else 0):
        first = random.randrange(_PORTS.start, _PORTS.stop - number)
        with ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    _keep(stack.enter_context(socket.socket()), port)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise HpcgymError(f"{number} ports on loopback: {error.strerror}") from None
            kept = stack.pop_all()
            break
    else:
        raise HpcgymError(f"there are no {number} free ports in a row on loopback")
    with kept:
        yield first


def _keep(one: socket.socket, port: int) -> None:
    """Take a port that nobody has; from then on those who listen may share it."""
    one.bind(("127.0.0.1", port))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
