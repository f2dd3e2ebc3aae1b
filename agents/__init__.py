"""Things that learn to schedule or plan ahead; imported as ``hpcgym.agents``.

Each is one readable file, but for ``xnes``: where it searches is in ``search``, and how searches go
side by side in ``lockstep``.

An agent stands on the library (``hpcgym``), which imports it only where a command trains one or a
file of one is named. Networks need PyTorch and Stable-Baselines3, ``runtime_regression`` and
``refitted`` need river, all in the extra ``agents``: they are imported with those modules, not
with this one. ``xnes``, ``controls``, ``coschedule`` and ``lookahead`` need none of them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, installing
from hpcgym.reading import json_file, shaped

#: Name of an agent, as in its file -> module that loads it.
AGENTS = {"maskable-ppo": "maskable_ppo", "clone": "maskable_ppo", "ppo": "ppo"}

#: The same of those whose files are JSON.
_TEXTS = {"controls": "controls", "pairs": "coschedule", "xnes": "xnes"}

_MODULES = (
    "behaviour_cloning",
    "common",
    "controls",
    "coschedule",
    "lockstep",
    "lookahead",
    "losses",
    "maskable_ppo",
    "ppo",
    "progress",
    "refitted",
    "runtime_regression",
    "search",
    "xnes",
)


def load(path: str | Path) -> Any:
    """Return a saved agent: ``name``, ``env_id``, ``env_options``, ``begin(env)``, ``act``.

    Raises
    ------
    HpcgymError : there is no such file, it holds no agent, or PyTorch is missing.
    """
    kind = "the file of an agent of this version"
    if _is_text(path):
        contents = json_file(path, finite=False)
        with shaped(path, kind):
            return import_agent(_TEXTS.get(contents.get("agent"), "xnes")).load(contents)
    contents = import_agent("common").read(path)
    if contents.get("agent") not in AGENTS:
        raise HpcgymError(f"{path} holds an agent that this version does not know")
    module = import_agent(AGENTS[contents["agent"]])
    with shaped(path, kind):
        return module.load(contents)


def _is_text(path: str | Path) -> bool:
    """Tell whether a file is JSON: those of networks are archives."""
    try:
        with Path(path).open("rb") as file:
            return file.read(1) == b"{"
    except OSError:
        return False  # said by who reads it


def import_agent(module: str) -> Any:
    """Return a module of this package.

    Raises
    ------
    HpcgymError : what agents need is not installed.
    """
    try:
        return import_module(f"hpcgym.agents.{module}")
    except ImportError as error:
        raise HpcgymError(
            f"agents need PyTorch, Stable-Baselines3, river: {installing('agents')} ({error})"
        ) from None


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hpcgym.agents' has no attribute {name!r}")
    return import_agent(name)
