"""Results of steps on disk: what is there is not computed again, whatever interrupted the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.benchmarks.studies.sources import hash_of_modules
from hpcgym.errors import HpcgymError
from hpcgym.files import arrays_of
from hpcgym.files.writing import whole
from hpcgym.version import __version__

Arrays = dict[str, NDArray[Any]]

#: Where simulations come from.
_SIMULATIONS = ("hpcgym.simulation.run", "hpcgym.sweep.batch")


class Store:
    """A folder with a file for each step, named after the step and a hash of all its inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def step(
        self, name: str, inputs: Mapping[str, Any], compute: Callable[[], Mapping[str, ArrayLike]]
    ) -> Arrays:
        """Return what ``compute`` returns, from disk if the step was done with the same inputs."""
        path = self.path(name, inputs)
        kept = _read(path)
        if kept is not None:
            return kept
        arrays = {key: np.asarray(value) for key, value in compute().items()}
        with whole(path, folders=True) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return arrays

    def path(self, name: str, inputs: Mapping[str, Any]) -> Path:
        """Return the file of a step, which is there if the step was done with these inputs."""
        text = json.dumps({"hpcgym": __version__, **inputs}, sort_keys=True)
        return self.folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"


def _read(path: Path) -> Arrays | None:
    """Return the arrays of a file; None if there is no such file, or no readable one."""
    try:
        return arrays_of(path)
    except HpcgymError:
        return None


@cache
def code(*modules: str) -> str:
    """Return a hash of the sources of simulations, of some modules, and of all that they import.

    The version alone would let a step survive an edit of what computes it.
    """
    return hash_of_modules(*_SIMULATIONS, *modules)[:16]
