"""Results of steps on disk: what is there is not computed again, whatever interrupted the rest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym import compilation
from hpcgym.errors import HpcgymError
from hpcgym.version import __version__
from hpcgym.workload.model import Workload

Arrays = dict[str, NDArray[Any]]

#: The columns that a simulation depends on.
_COLUMNS = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")

#: Where simulations of weights come from, beside the compiled sources: as in
#: ``hpcgym.compilation.SOURCES``.
_PREPARING = (
    "cluster/*.py",
    "policy/*.py",
    "prediction/*.py",
    "scheduler.py",
    "simulation.py",
    "static_order.py",
    "sweep/batch.py",
    "sweep/coverage.py",
    "weighing.py",
)


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
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}.partial")
            with partial.open("wb") as file:
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            partial.replace(path)  # a file under its name is whole
        except OSError as error:
            raise HpcgymError(f"{path} cannot be written: {error.strerror or error}") from None
        return arrays

    def path(self, name: str, inputs: Mapping[str, Any]) -> Path:
        """Return the file of a step, which is there if the step was done with these inputs."""
        text = json.dumps({"hpcgym": __version__, **inputs}, sort_keys=True)
        return self.folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"


def _read(path: Path) -> Arrays | None:
    """Return the arrays of a file; None if there is no such file, or no readable one."""
    try:
        with np.load(path, allow_pickle=False) as held:
            return {key: held[key] for key in held.files}
    except (OSError, ValueError, BadZipFile, EOFError):
        return None


@cache
def code(*modules: str) -> str:
    """Return a hash of the sources of simulations, and of some modules.

    The version alone would let a step survive an edit of what computes it.
    """
    digest = hashlib.sha256()
    package = Path(compilation.__file__).parent
    for pattern in (*compilation.SOURCES, *_PREPARING):
        for source in sorted(package.glob(pattern)):
            digest.update(source.read_bytes())
    for module in modules:
        found = find_spec(module)
        assert found is not None
        assert found.origin is not None
        digest.update(Path(found.origin).read_bytes())
    return digest.hexdigest()[:16]


def fingerprint(parts: Iterable[Workload]) -> str:
    """Return a hash of all that simulations of these workloads depend on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part.processors} ".encode())
        for name in _COLUMNS:
            digest.update(np.ascontiguousarray(part.columns[name], np.int64).tobytes())
    return digest.hexdigest()
