"""Results of steps on disk, named after all that they follow from, the sources included.

What is there is not computed again, whatever interrupted the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym import HpcgymError, __version__, _engine
from hpcgym.files.tables import arrays_of
from hpcgym.files.writing import whole_file

# --- What results follow from ---------------------------------------------------------------------

#: Folders of hpcgym that only show what others have computed; the studies have their own place.
_SHOW = ("benchmarks", "cli", "explore", "report")
#: How the names of such modules of studies end.
_SHOWN_BY = ("documents", "figures", "harness", "items", "notes", "run", "tables")


@cache
def code() -> str:
    """Return a hash of all sources that results may follow from, and of what solves models.

    The version alone would let a result survive an edit of what computes it.
    """
    digest = hashlib.sha256(f"{_engine.SOURCES} {_solver()}".encode())
    for file in sources():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def sources() -> list[Path]:
    """Return the files that results may follow from, machines too, but those of the engine."""
    files_of_all: set[Path] = set()
    for package in ("hpcgym", "hpcgym.agents", "hpcgym.baselines"):
        spec = find_spec(package)
        assert spec is not None
        folder = Path(str(spec.origin)).parent
        files = [file for kind in ("*.py", "*.toml") for file in folder.rglob(kind)]
        files_of_all |= {file for file in files if file.relative_to(folder).parts[0] not in _SHOW}
    of_studies = [Path(__file__).parents[1].glob(f"*/{kind}") for kind in ("*.py", "*.toml")]
    files_of_all |= {file for file in chain(*of_studies) if not file.stem.endswith(_SHOWN_BY)}
    return sorted(files_of_all)


def _solver() -> str:
    """Return the version of OR-Tools, whose next one may find other schedules."""
    with suppress(PackageNotFoundError):
        return version("ortools")
    return "none"


# --- Results of steps on disk ---------------------------------------------------------------------

Arrays = dict[str, NDArray[Any]]


class Store:
    """A folder with a file for each step, named after the step and a hash of all its inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def step(
        self, name: str, inputs: Mapping[str, Any], compute: Callable[[], Mapping[str, ArrayLike]]
    ) -> Arrays:
        """Return what ``compute`` returns, from disk if the step was done with the same inputs.

        The version and the :func:`code` are inputs of every step.
        """
        text = json.dumps({"hpcgym": __version__, "code": code(), **inputs}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = self.folder / f"{name.replace('/', '-')}-{digest}.npz"
        with suppress(HpcgymError):  # there is no such file, or no readable one
            return arrays_of(path)
        arrays = {key: np.asarray(value) for key, value in compute().items()}
        with whole_file(path, folders=True) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return arrays
