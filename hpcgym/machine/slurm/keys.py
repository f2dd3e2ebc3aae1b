"""The keys of slurm.conf: what is done with each, and settings that are not of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from hpcgym.errors import Remarks
from hpcgym.files import toml_of
from hpcgym.machine.slurm.lines import OBJECTS, SlurmSetting

# --- Which settings there are ---------------------------------------------------------------------


#: What is done with a key: lists of ``settings.toml``.
MACHINE, SCHEDULER, NAMED, IRRELEVANT = "machine", "scheduler", "named", "irrelevant"
GENERAL, PARAMETERS = "general", "schedulerparameters"
#: A kind of remark.
UNKNOWN = "keys that Slurm 22.05 to 25.05 does not have"
_USUAL = "usual"


@cache
def _tables() -> dict[str, dict[str, Any]]:
    """Return ``settings.toml``: kind of line in lower case -> its lists."""
    text = files("hpcgym.machine").joinpath("slurm", "settings.toml").read_text("utf-8")
    return {kind.casefold(): lists for kind, lists in toml_of(text, "settings.toml").items()}


@cache
def known(kind: str) -> dict[str, str]:
    """Return what is done with each key of a kind of line, all in lower case: one of the lists."""
    lists = {what: keys for what, keys in _tables().get(kind, {}).items() if what != _USUAL}
    return {key.casefold(): what for what, keys in lists.items() for key in keys}


@cache
def _usual(kind: str) -> dict[str, list[str]]:
    """Return the values with which keys change nothing, or are followed, by lower case key."""
    given = _tables().get(kind, {}).get(_USUAL, {})
    return {key.casefold(): values for key, values in given.items()}


# --- Settings that are not of the machine ---------------------------------------------------------


class OtherSetting(NamedTuple):
    """A setting that is not of the machine; the scheduler of the file may go by it.

    Attributes
    ----------
    where : file and line.
    of : the node or partition that it is of, "" of a general setting.
    key, value : as they are written.
    """

    where: str
    of: str
    key: str
    value: str

    @property
    def name(self) -> str:
        """What messages call it: ``debug: LLN``."""
        return f"{self.of}: {self.key}" if self.of else self.key

    def __str__(self) -> str:
        return f"{self.where}: {self.name}" + (f"={self.value}" if self.value else "")

    def is_called(self, *keys: str) -> bool:
        """Tell whether its key is one of some in lower case."""
        return self.key.casefold() in keys


def other_settings(settings: Sequence[SlurmSetting], remarks: Remarks) -> list[OtherSetting]:
    """Return the settings that say, or may say, how jobs are scheduled, beside the machine's own.

    Settings that say nothing of schedules, such as ports and log files, are left out; ``remarks``
    is told of those that Slurm does not have.
    """
    others: list[OtherSetting] = []
    last = {line.name.casefold(): line for line in settings}
    for line in settings:
        kind = line.name.casefold()
        if kind not in OBJECTS and last[kind] is not line:
            continue  # the later line counts
        if kind == PARAMETERS:
            others += _parameters_of(line, remarks)
            continue
        here = [(GENERAL, "", line.name, line.value)]
        if known(kind):
            here += [(kind, line.value, key, value) for key, value in line.told.values()]
        for of_kind, of, key, value in here:
            setting = OtherSetting(line.where, of, key, value)
            what = known(of_kind).get(key.casefold())
            if what is None:
                remarks[UNKNOWN].append(f"{line.where}: {setting.name}{meant(of_kind, key)}")
            usual = _usual(of_kind).get(key.casefold(), ())
            followed = what == IRRELEVANT or (what == MACHINE and not usual)
            if not followed and value.casefold() not in usual:
                others.append(setting)
    return others


def _parameters_of(line: SlurmSetting, remarks: Remarks) -> Iterator[OtherSetting]:
    """Yield each of the ``SchedulerParameters`` as a setting by itself."""
    for name, value in parameters(line.value).items():
        setting = OtherSetting(line.where, "", f"{line.name} {name}", value)
        if name not in known(PARAMETERS):
            remarks[UNKNOWN].append(f"{line.where}: {setting.name}{meant(PARAMETERS, name)}")
        yield setting


def parameters(text: str) -> dict[str, str]:
    """Return ``SchedulerParameters`` by name in lower case; of two Slurm looks up the first.

    Slurm looks for names anywhere in the text, whatever stands between them.
    """
    by_name: dict[str, str] = {}
    for name, _, value in (part.partition("=") for part in re.split(r"[,;\s]+", text) if part):
        by_name.setdefault(name.strip().casefold(), value.strip())
    return by_name


def meant(kind: str, key: str) -> str:
    """Return which key of a kind of line may have been meant; blank if none is like it."""
    near = get_close_matches(key.casefold(), known(kind), n=1, cutoff=0.8)
    return f"; did you mean {near[0]!r}?" if near else ""
