"""Results of steps on disk: what is there is not computed again, whatever interrupted the rest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.errors import HpcgymError
from hpcgym.version import __version__
from hpcgym.workload.model import Workload

Arrays = dict[str, NDArray[Any]]

#: The columns that a simulation depends on.
_COLUMNS = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")


class Store:
    """A folder with a file for each step, named after the step and a hash of all its inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def step(
        self, name: str, inputs: Mapping[str, Any], compute: Callable[[], Mapping[str, ArrayLike]]
    ) -> Arrays:
        """Return what ``compute`` returns, from disk if the step was done with the same inputs."""
        path = self._path(name, inputs)
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

    def has(self, name: str, inputs: Mapping[str, Any]) -> bool:
        """Return whether the step was done with these inputs."""
        return self._path(name, inputs).is_file()

    def _path(self, name: str, inputs: Mapping[str, Any]) -> Path:
        text = json.dumps({"hpcgym": __version__, **inputs}, sort_keys=True)
        return self.folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"


def _read(path: Path) -> Arrays | None:
    """Return the arrays of a file; None if there is no such file, or no readable one."""
    try:
        with np.load(path, allow_pickle=False) as held:
            return {key: held[key] for key in held.files}
    except (OSError, ValueError, BadZipFile, EOFError):
        return None


def fingerprint(parts: Iterable[Workload]) -> str:
    """Return a hash of all that simulations of these workloads depend on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part.processors} ".encode())
        for name in _COLUMNS:
            digest.update(np.ascontiguousarray(part.columns[name], np.int64).tobytes())
    return digest.hexdigest()
