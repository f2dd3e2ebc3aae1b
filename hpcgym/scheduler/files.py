"""Schedulers in files: TOML with the rules that differ from EASY.

policy = "saf"
threshold = 288000
hold = { share = 0.1, by = "both" }
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError, unknown
from hpcgym.files import toml_file
from hpcgym.files.writing import whole_text
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.policies.networks import Network, network_of
from hpcgym.scheduler.rules import RULES, Scheduler

ENDING = ".toml"


def read_scheduler(path: str | Path) -> Scheduler:
    """Return the scheduler of a file.

    Raises
    ------
    HpcgymError : the file cannot be read, or has an unknown rule or a wrong value; the message
        names the file.
    """
    table = toml_file(path)
    known = [*RULES]
    for name in table:
        if name not in known:
            raise HpcgymError(f"{path}: {unknown('rule', name, known)}")
    try:
        return Scheduler(**table)
    except HpcgymError as error:
        raise HpcgymError(f"{path}: {error}") from None


def network_scheduler(network: Network | str, **rules: Any) -> Scheduler:
    """Return the scheduler of a network: it is the policy, beside its own rules.

    Parameters
    ----------
    network : or its file, as ``network:FILE``.
    **rules : in place of its own.

    Raises
    ------
    HpcgymError : no network, or an unknown rule or a wrong value; the message names the file.
    """
    own = network.rules if isinstance(network, Network) else network_of(network).rules
    try:
        return Scheduler(policy=network).but(**{**own, **rules})
    except HpcgymError as error:
        where = "rules" if isinstance(network, Network) else f"{network}: rules"
        raise HpcgymError(f"{where}: {error}") from None


def write_scheduler(path: str | Path, scheduler: Scheduler, note: str = "") -> None:
    """Write a scheduler to a file, whole or not at all; ``note`` stands above it.

    Raises
    ------
    HpcgymError : a rule that no file can hold, such as a function, or a file that cannot be
        written.
    """
    text = scheduler_text(scheduler, note)
    with whole_text(path, folders=True) as file:
        file.write(text)


def scheduler_text(scheduler: Scheduler, note: str = "") -> str:
    """Return the text of a scheduler's file; ``note`` stands above it.

    Raises
    ------
    HpcgymError : a rule that no file can hold, such as a function.
    """
    lines = [f"# {line}" for line in note.splitlines()]
    usual = Scheduler(policy=scheduler.policy).given() | {"policy": "fcfs"}
    for name, value in scheduler.given().items():
        if isinstance(value, np.ndarray) or value != usual[name]:
            lines.append(f"{name} = {_text(name, value)}")
    return "\n".join(lines) + "\n"


def _text(name: str, value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, Hold | FairShare):
        value = value.table()
    if isinstance(value, Mapping):
        named = {str(key): item for key, item in value.items() if item is not None}
        written = {_key(key): item for key, item in named.items()}
        entries = (f"{key} = {_text(name, item)}" for key, item in written.items())
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_text(name, item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise HpcgymError(f"{name}: {value!r} cannot be written to a file")
    return repr(value)


def _key(name: str) -> str:
    """Return a key as TOML has it."""
    return name if name.isascii() and name.isidentifier() else json.dumps(name)
