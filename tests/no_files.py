"""What is put in the place of a file and is none, and a process that does not wait for it."""

from __future__ import annotations

import os
import resource
import signal
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError

LIMIT_S = 20  # within which even a slow machine says so; what waits for a pipe waits for ever
MEMORY = 512 << 20  # that may be taken beside what is there


def said_apart(read: Callable[[], Any]) -> str:
    """What a reader raises, in a process that ends when it waits, or takes memory without end."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads, of which none is used
        child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_S)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            read()
            text = "nothing"
        except HpcgymError as error:
            text = str(error)
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(into, text.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"ended by signal {status}"


@contextmanager
def in_place_of(kind: str, path: Path) -> Iterator[None]:
    """Put something that is no file in the place of one."""
    if path.exists() or path.is_symlink():
        path.unlink()
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a folder":
        path.mkdir()
    else:
        here = os.open(".", os.O_RDONLY)
        os.chdir(path.parent)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
        os.fchdir(here)
        os.close(here)
    yield
    if kind == "a folder":
        path.rmdir()
    else:
        path.unlink()
