"""Batch scripts of Slurm: what their ``#SBATCH`` lines ask for.

sbatch reads these lines up to the first one that is neither empty nor a comment, splits them as a
shell does, and of an option that is there twice the last counts
(https://slurm.schedmd.com/sbatch.html; ``_opt_batch_script`` in ``sbatch/opt.c``).
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any, NamedTuple

from hpcgym.errors import WorkloadError
from hpcgym.files import text_of
from hpcgym.names import CORE, MEMORY, of_type
from hpcgym.units import (
    MEMORY_OF_SLURM,
    NO_LIMIT,
    NO_LIMIT_S,
    OF_SLURM,
    amount_in,
    count_in,
    seconds_in,
)
from hpcgym.workload.io.sacct_fields import generic_of_old
from hpcgym.workload.io.submit_lines import options_in

_MAGIC = "#SBATCH"
_MOST_BYTES = 4 << 20  # ``max_script_size`` of Slurm
#: Options on which no start depends.
_WITHOUT_EFFECT = (
    " J job-name o output e error i input D chdir mail-type mail-user comment export export-file"
    " get-user-env open-mode signal propagate hint wckey profile parsable Q quiet v verbose wait W"
    " requeue no-requeue kill-on-invalid-dep "
)
_COUNTS = ("ntasks", "cpus-per-task", "ntasks-per-node", "nodes")
#: Options that ask for generic resources -> what of, and what stands before their values.
_GENERIC = {
    **{"gres": ("node", ""), "gpus": ("job", "gpu:")},
    **{f"gpus-per-{of}": (of, "gpu:") for of in ("node", "task")},
}
_MEMORY = {"mem": "node", "mem-per-cpu": "core"}


class BatchJob(NamedTuple):
    """What a batch script asks for.

    Attributes
    ----------
    units : equal parts of the job, each on one node: its nodes, where they have equally many tasks,
        else its tasks.
    per_unit : what each asks for: ``core``, ``mem`` [MB], ``gpu``, ``gpu-a100``, ...
    requested : time limit [s], 365 days of no limit; None: the script has none.
    partition : that it asks for; None: none, or one that is not looked at.
    unread : options that are not looked at, as they stand there.
    """

    units: int
    per_unit: Mapping[str, int]
    requested: int | None
    partition: str | None
    unread: tuple[str, ...]


def read_batch_script(
    path: str | os.PathLike[str], resources: Container[str] = (), partitions: Container[str] = ()
) -> BatchJob:
    """Read the ``#SBATCH`` lines of a batch script.

    ``resources`` : that count; of none, only processors do, not which of them are on one node.
    ``partitions`` : that count.

    Raises
    ------
    WorkloadError : it is no script, or a line asks for what cannot be understood.
    """
    text = text_of(path, _MOST_BYTES, "a batch script", WorkloadError)
    if not text.startswith("#!"):
        raise WorkloadError(f"{path}, line 1: no batch script: sbatch asks for #!/bin/bash or so")
    options: dict[str, tuple[str | None, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}, line {number}"
        if line.startswith(_MAGIC):
            try:
                words = shlex.split(line.removeprefix(_MAGIC), comments=True)
            except ValueError:
                raise WorkloadError(f"{where}: a quote that does not end") from None
            for name, value in options_in(words):
                if not name:
                    raise WorkloadError(f"{where}: {value!r} is no option; hetjobs are not read")
                options[name] = value, where
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return _job(options, resources, partitions)


def _job(
    options: Mapping[str, tuple[str | None, str]],
    resources: Container[str],
    partitions: Container[str],
) -> BatchJob:
    def read(name: str, how: Callable[[str], Any], usual: Any = None) -> Any:
        if name not in options:
            return usual
        value, where = options[name]
        try:
            return how(value or "")
        except ValueError as error:
            raise WorkloadError(f"{where}: --{name}={value or ''}: {error}") from None

    tasks, cores, on_each, nodes = (read(name, _count) for name in _COUNTS)
    if tasks is None:
        tasks = (nodes or 1) * (on_each or 1)
    elif nodes is None and on_each is not None:
        nodes = -(-tasks // on_each)
    nodes = min(nodes or (1 if tasks == 1 else 0), tasks)
    even = nodes and tasks % nodes == 0
    units = nodes if even else tasks
    per_unit = {CORE: tasks // units * (cores or 1)}
    shares = {"node": int(even), "task": tasks // units, "core": per_unit[CORE], "job": 1}
    partition = read("partition", str)
    partition = partition if partition in partitions else None
    read_here = {*_COUNTS, *_MEMORY, *_GENERIC, "time", *["partition"] * (partition is not None)}
    unread = [x for x in options if x not in read_here and f" {x} " not in _WITHOUT_EFFECT]
    unread += ["nodes"] if "nodes" in options and not (even and CORE in resources) else []
    amounts = {name: {MEMORY: read(name, _memory)} for name in _MEMORY if name in options}
    for name, (_, prefix) in _GENERIC.items():
        amounts[name] = read(name, partial(_generic, prefix), {})
    for name, asked in amounts.items():
        of = _MEMORY.get(name) or _GENERIC[name][0]
        for resource, number in asked.items():
            amount, left = divmod(number * shares[of], units if of == "job" else 1)
            if amount and not left and resource in resources:
                per_unit[resource] = amount
            else:  # or all memory of a node, unlike units, or of nodes whose number is not told
                unread.append(name)
    requested = read("time", limit_of_sbatch)
    return BatchJob(units, per_unit, requested, partition, (*dict.fromkeys(unread),))


def _count(text: str) -> int:
    """Return a number from 1 on; of ``2-4`` nodes the least."""
    number = count_in(re.sub(r"(?<=\d)-\d+$", "", text))
    if number < 1:
        raise ValueError("no whole number from 1 on")
    return number


def limit_of_sbatch(text: str) -> int:
    """Return the seconds of ``--time``: of no limit 365 days, with which Slurm plans.

    A number alone is minutes. 0 and UNLIMITED are no limit.

    Raises
    ------
    ValueError : no time limit.
    """
    if text.strip().casefold() in (*NO_LIMIT, "0"):
        return NO_LIMIT_S
    seconds = seconds_in(text, OF_SLURM)
    if not 1 <= seconds < 2**31:
        raise ValueError("no time limit such as 90 (minutes), 4:00:00 or UNLIMITED")
    return int(seconds)


def _memory(text: str) -> int:
    return math.ceil(amount_in(text, MEMORY_OF_SLURM))


def _generic(prefix: str, text: str) -> dict[str, int]:
    """Return resources by what logs call them; those of a type are among all, too."""
    entries = ",".join(prefix + re.sub("^gres[/:]", "", part) for part in text.split(","))
    amounts = generic_of_old(entries)
    return {of_type(*name.split(":", 1)) if ":" in name else name: n for name, n in amounts.items()}
