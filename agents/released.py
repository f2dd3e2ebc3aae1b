"""Agents that the suite has trained: files of a release of this project, found by name.

``suite:kth-order/job-ppo/0`` is what ``job-ppo`` learned in the task ``kth-order`` with seed 0. The
file is looked for in the folders that the environment variable ``HPCGYM_WEIGHTS`` names, then in
the user's cache, where it is put when it is first asked for. Whatever the place, its SHA-256 must
be that of ``released.json`` beside this file, which ``python -m hpcgym.suite.submissions`` writes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.files import json_file
from hpcgym.files.fetching import downloaded, user_cache

#: Where the files of the release are; the project's own page.
RELEASE = "https://github.com/hpcgym/hpcgym/releases/download/hpcgym-suite-v1"

PREFIX = "suite:"
REGISTRY = Path(__file__).with_name("released.json")


def is_released(name: Any) -> bool:
    """Tell whether a name is meant to be that of an agent of the release."""
    return isinstance(name, str) and name.startswith(PREFIX)


@cache
def registry() -> Mapping[str, Mapping[str, str]]:
    """Return what is known of each agent: name without its prefix -> ``file`` and ``sha256``."""
    found: dict[str, dict[str, str]] = json_file(REGISTRY)
    return found


def find_released(name: str) -> Path:
    """Return the file of an agent by its name, downloaded if it is not on this machine.

    Raises
    ------
    HpcgymError : an unknown name; a file that is not the one that was released, or that is neither
        here nor can be downloaded.
    """
    from hpcgym.workload.io.files import sha256_of  # slow, and help needs none of it

    known = registry()
    told = name.removeprefix(PREFIX)
    if told not in known:
        near = get_close_matches(told, known, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "names are suite:TASK/AGENT/SEED"
        raise HpcgymError(f"{name}: the suite has released no such agent; {hint}")
    file, sha256 = known[told]["file"], known[told]["sha256"]
    for folder in _folders():
        if (folder / file).is_file():
            if sha256_of(folder / file) != sha256:
                raise HpcgymError(f"{folder / file} is not the file of {name}: its SHA-256 differs")
            return folder / file
    url = f"{RELEASE}/{file}"
    try:
        return downloaded(url, user_cache() / "weights", sha256=sha256)
    except HpcgymError as error:
        raise HpcgymError(
            f"cannot download {name} from {url}: {error}; get {file} another way, put it into a"
            " folder and set HPCGYM_WEIGHTS to that folder"
        ) from None


def _folders() -> list[Path]:
    """Return the folders that ``HPCGYM_WEIGHTS`` names, several being joined as in ``PATH``."""
    named = os.environ.get("HPCGYM_WEIGHTS", "").split(os.pathsep)
    return [Path(os.path.expanduser(one)) for one in named if one]
