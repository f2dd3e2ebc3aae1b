"""Two functions that compile fast and share a third, and a log of what is compiled."""

from __future__ import annotations

import os
from typing import Any

from numba.core import event

from hpcgym.compilation import jit, jit_entry


@jit
def doubled(number):
    return 2 * number


@jit_entry
def plus_one(number):
    return doubled(number) + 1


@jit_entry
def plus_two(number):
    return doubled(number) + 2


class Log(event.Listener):
    """Appends the names of functions that are compiled to the file ``TINY_LOG``."""

    def on_start(self, happened: Any) -> None:
        name = happened.data["dispatcher"].py_func.__name__
        with open(os.environ["TINY_LOG"], "a") as file:
            file.write(f"{name}\n")

    def on_end(self, happened: Any) -> None:
        pass


event.register("numba:compile", Log())
