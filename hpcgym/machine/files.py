"""Machines from and to TOML files, and those that are ready-made.

::

    name = "eurora"

    [[group]]
    name = "gpu"
    nodes = 32
    core = 16
    sockets = 2        # that share the cores; 1 unless told
    mem = "16 GB"      # or whole MB; 1 GB is 1,000 MB
    gpu = 2            # any other resource, a whole number, or "any": it limits no job

    [group.power]      # of each node; the attributes of a NodePower
    idle_w = 117
    busy_w = [193, 358]
    frequency_ghz = [1.2, 2.7]
    slowdown = 1.63

    [[level]]          # above the nodes
    name = "chassis"
    of = 18            # nodes; of a second level, how many of the first
    power_w = 248

    [[partition]]      # of which jobs may have nodes; partitions may overlap
    name = "debug"
    nodes = "gpu,0-3"  # groups, and numbers of nodes, which count from 0

    [[queue]]
    name = "debug"
    expected_wait_s = 3600

A pool has ``processors = 128`` instead of groups. The other attributes of a
:class:`~hpcgym.machine.pool.Cluster`, such as ``idle_power_w`` and ``io_bandwidth_gb_s``, stand
above the first group.

Of equal nodes with nothing but cores, ``NODESxSOCKETSxCORES`` says it all: ``100x2x24``. A site
that runs Slurm has its nodes in slurm.conf: :mod:`hpcgym.machine.slurm`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hpcgym.errors import HpcgymError, MachineOnlyWarning, unknown, warn_caller
from hpcgym.files import is_there, toml_file, toml_of
from hpcgym.machine.partitions import MOST_NODES, Partition, nodes_of_text, text_of_nodes
from hpcgym.machine.pool import ANY_NUMBER, Cluster, NodeGroup, Usual, with_counts
from hpcgym.machine.power import Level, NodePower
from hpcgym.machine.slurm import ENDING as SLURM
from hpcgym.names import CORE, MEMORY, near_name
from hpcgym.own_code import find, others, sources
from hpcgym.units import MEMORY_ALONE, amount_of, count_of, memory_text

# what tables are as attributes
_TABLES = {"group": "groups", "level": "levels", "partition": "partitions", "queue": "queues"}
_OF_JOBS = "constraints"  # which no file has
_POWER = "power"
_SOCKETS = "sockets"
_FEATURES = "features"
#: An amount of a resource that limits no job.
ANY = "any"
# nodes, sockets of each, cores of each: a number may be missing, to be told so
_EQUAL_NODES = re.compile(r"-?\d*(x-?\d*)+", re.IGNORECASE)
_MORE_NODES = re.compile(r"(.*[^+-])([+-]\d{1,18})", re.DOTALL)  # behind the name of a machine
_Made = TypeVar("_Made", "_Queue", NodePower, Level, Partition)


def read_cluster(path: str | os.PathLike[str]) -> Cluster:
    """Return the machine that a TOML file describes.

    Raises
    ------
    HpcgymError : a file that cannot be read or is no TOML, an unknown or missing key, a value that
        cannot be; the message names the file and the group or queue.
    """
    return _machine(toml_file(path), str(path))


@dataclass(frozen=True)
class _Queue:
    """A table ``[[queue]]``."""

    name: str
    expected_wait_s: float


def _machine(given: Mapping[str, Any], where: str) -> Cluster:
    """Return the machine of what a TOML text holds."""
    plain = [f.name for f in fields(Cluster) if f.name not in (*_TABLES.values(), _OF_JOBS)]
    _check_keys(where, given, [*plain, *_TABLES])
    groups = tuple(_group(*row) for row in _rows(where, given, "group"))
    queues: dict[str, Any] = {}
    for place, row in _rows(where, given, "queue"):
        queue = _made(_Queue, place, row)
        if not isinstance(queue.name, str) or queue.name in queues:
            raise HpcgymError(f"{place}: each queue needs a name of its own, a text")
        queues[queue.name] = queue.expected_wait_s
    levels = tuple(_made(Level, *row) for row in _rows(where, given, "level"))
    sizes = [(group.name, group.nodes) for group in groups]
    partitions = tuple(_partition(*row, sizes) for row in _rows(where, given, "partition"))
    if not groups and "processors" not in given:
        raise HpcgymError(f"{where} has neither groups of nodes, [[group]], nor processors")
    attributes = {key: value for key, value in given.items() if key not in _TABLES}
    more: dict[str, Any] = {
        "groups": groups,
        "queues": queues,
        "levels": levels,
        "partitions": partitions,
    }
    with _saying(where):
        return Cluster(**attributes, **more)


def cluster_toml(cluster: Cluster) -> str:
    """Return a machine as the text of a TOML file, which :func:`read_cluster` reads."""
    of_nodes = len(cluster.groups) > 0
    given = {
        field.name: getattr(cluster, field.name)
        for field in fields(cluster)
        if field.name not in (*_TABLES.values(), _OF_JOBS, "name", *["processors"] * of_nodes)
    }
    lines = _lines(Cluster(1), {"name": cluster.name, **given})
    for group in cluster.groups:
        named = {"name": group.name, "nodes": group.nodes}
        lines += ["", "[[group]]", *_lines(None, named)]
        lines += [f"{_SOCKETS} = {group.sockets}"] if group.sockets != 1 else []
        lines += [f"{_FEATURES} = {_toml(group.features)}"] if group.features else []
        lines += [f"{name} = {_amount(name, amount)}" for name, amount in group.resources.items()]
        if group.power is not None:
            lines += ["", f"[group.{_POWER}]", *_power_lines(group.power)]
    for level in cluster.levels:
        lines += ["", "[[level]]", *_lines(None, vars(level))]
    for part in cluster.partitions:
        usual = Partition(part.name, part.nodes)
        named = {"name": part.name, "nodes": text_of_nodes(part.nodes)}
        lines += ["", "[[partition]]", *_lines(None, named), *_lines(usual, vars(part))]
    for name, wait in cluster.queues.items():
        lines += ["", "[[queue]]", *_lines(None, {"name": name, "expected_wait_s": wait})]
    return "\n".join(lines).lstrip("\n") + "\n"


def _lines(usual: object, given: Mapping[str, Any]) -> list[str]:
    """Return values as lines of TOML, but for those that are as usual."""
    return [
        f"{name} = {_toml(value)}"
        for name, value in given.items()
        if usual is None or not _is_usual(getattr(usual, name), value)
    ]


def _is_usual(usual: Any, value: Any) -> bool:
    """Tell whether a value is the usual one; for a power, whether it was not given."""
    return isinstance(value, Usual) if isinstance(usual, Usual) else bool(value == usual)


def ready_made() -> list[str]:
    """Return the names of hpcgym's own ready-made machines."""
    names = (file.name for file in files("hpcgym.machine").joinpath("machines").iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def machine_names() -> list[str]:
    """Return the names of the ready-made machines: hpcgym's own, and those of other packages."""
    return [*(own := ready_made()), *sources("machines", own)]


def find_cluster(
    source: str | os.PathLike[str] | int | Cluster, *, rules_too: bool = False
) -> Cluster:
    """Return the machine that ``source`` names.

    Parameters
    ----------
    source : the name of a ready-made machine in any case (:func:`machine_names`), the path of a
        TOML file or of a slurm.conf (any file that ends in ``.conf``), equal nodes as
        ``NODESxSOCKETSxCORES``, of which the last are the cores of a socket (``100x2x24``: 100
        nodes of 48 cores), a number of processors, also as a text, for a pool of them, or a
        machine. A slurm.conf with settings that do not describe the machine gives a warning. Behind
        a machine of nodes ``+2`` adds two nodes to its largest group, and ``-2`` takes two away:
        ``slurm.conf+2``.
    rules_too : a slurm.conf is the scheduler as well, which warns of settings that are not
        followed.

    Raises
    ------
    HpcgymError : an unknown name, other than three numbers, or what :func:`read_cluster` and
        :func:`hpcgym.machine.slurm.read_slurm_conf` raise.
    """
    if isinstance(source, Cluster):
        return source
    if isinstance(source, int | np.integer) and not isinstance(source, bool):
        return Cluster(int(source))
    if not isinstance(source, str | os.PathLike):
        raise HpcgymError(
            "cluster must be a number of processors, the name of a machine, a TOML file or a"
            f" Cluster, not {source!r}"
        )
    path, name = Path(os.path.expanduser(source)), str(source).casefold()
    is_file = is_there(path)
    more = None if is_file else _MORE_NODES.fullmatch(str(source))
    if more is not None and not _called_by_others(str(source)):  # which may end in -2
        return _with_more(find_cluster(more[1], rules_too=rules_too), int(more[2]), str(source))
    if not is_file and "," in path.name:
        first, *_ = str(source).split(",")
        raise HpcgymError(
            f"machine {str(source)!r}: machines are given one by one, as in --cluster {first}"
        )
    if path.suffix == SLURM:
        return _of_slurm(path, rules_too)
    if is_file or path.suffix == ".toml" or len(path.parts) > 1:
        return read_cluster(path)
    if name in ready_made():
        called = f"the ready-made machine {name}"
        return _machine(toml_of(machine_text(name), called), called)
    if name.isdecimal():
        number = count_of(name)
        processors: Any = name if number is None else number  # Cluster refuses one of many digits
        return Cluster(processors)
    if _EQUAL_NODES.fullmatch(name):
        return _equal_nodes(name)
    if theirs := _called_by_others(str(source)):
        return _of_other(theirs)
    such = "a TOML file, a number of processors, or such as 100x2x24"
    packages = sources("machines")
    raise HpcgymError(unknown("machine", str(source), ready_made(), such, packages))


def _called_by_others(text: str) -> str:
    """Return the name of a machine of another package that is written so, in any case; or ""."""
    names = others("machines")
    same = (name for name in names if name.casefold() == text.casefold())
    return text if text in names else next(same, "")


def _of_other(name: str) -> Cluster:
    """Return a machine of another package."""
    machine = find("machines", name, {})
    if not isinstance(machine, Cluster):
        raise others("machines")[name].error(f"it is no Cluster, but {machine!r}")
    return machine if machine.name else replace(machine, name=name)


def _with_more(cluster: Cluster, nodes: int, text: str) -> Cluster:
    """Return a machine with so many more nodes in its largest group, fewer if below 0."""
    if not cluster.groups:
        raise HpcgymError(f"{text}: a pool of processors has no nodes to add to, or to take away")
    counts = [group.nodes for group in cluster.groups]
    largest = counts.index(max(counts))
    if sum(counts) + nodes > MOST_NODES:
        raise HpcgymError(f"{text}: a machine has at most {MOST_NODES:,} nodes")
    if counts[largest] + nodes < 0:
        raise HpcgymError(f"{text}: its largest group has {counts[largest]} nodes")
    counts[largest] += nodes
    return replace(with_counts(cluster, counts), name=f"{cluster.name}{nodes:+d}")


def _of_slurm(path: Path, rules_too: bool) -> Cluster:
    """Return the machine of a slurm.conf; warn of settings that do not describe the machine.

    There is no warning if the file is the scheduler, too.
    """
    from hpcgym.machine.slurm import read_slurm_conf

    conf = read_slurm_conf(path)
    if conf.others and not rules_too:
        warn_caller(
            f"{path}: settings that do not describe the machine: {len(conf.others)}; hpcgym"
            f" machines {path} lists them; --scheduler {path} warns of those that it does not"
            " follow",
            MachineOnlyWarning,
            [str(setting) for setting in conf.others],
        )
    return conf.cluster


def _equal_nodes(text: str) -> Cluster:
    """Return the machine of ``NODESxSOCKETSxCORES``, checked."""
    numbers = [int(part) for part in text.split("x") if part.isdigit()]
    if len(numbers) != text.count("x") + 1 or len(numbers) != 3 or not all(numbers):
        raise HpcgymError(
            f"a machine of equal nodes is NODESxSOCKETSxCORES, three numbers of at least 1 such as"
            f" 100x2x24, not {text!r}"
        )
    nodes, sockets, cores = numbers
    with _saying(f"machine {text}"):
        group = NodeGroup("node", nodes, {CORE: sockets * cores}, sockets=sockets)
        return Cluster(groups=(group,), name=text)


def machine_text(name: str) -> str:
    """Return the TOML of a ready-made machine, with the comments that tell its sources."""
    return files("hpcgym.machine").joinpath("machines", f"{name}.toml").read_text("utf-8")


def _rows(where: str, given: Mapping[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tables ``[[key]]``, each with its name in messages."""
    rows = given.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise HpcgymError(f"{where}: {key!r} must be tables, each under [[{key}]]")
    for number, row in enumerate(rows, 1):
        yield f"{where}, {key} {row.get('name', number)!r}", row


@contextmanager
def _saying(where: str, known: str = "") -> Iterator[None]:
    """Put the place before an error's message, in place of its own beginning ``known``."""
    try:
        yield
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {str(error).removeprefix(known)}") from None


def _group(where: str, given: dict[str, Any]) -> NodeGroup:
    """Return a group of nodes; any key that is not near a known one is a resource."""
    for key in given:
        _check_key(where, key, ("name", "nodes", _SOCKETS, _FEATURES, CORE, MEMORY, _POWER))
    _need(where, given, ("name", "nodes", CORE))
    amounts = dict(given)
    name, nodes = amounts.pop("name"), amounts.pop("nodes")
    power, sockets = amounts.pop(_POWER, None), amounts.pop(_SOCKETS, 1)
    features = amounts.pop(_FEATURES, ())
    if power is not None and not isinstance(power, dict):
        raise HpcgymError(f"{where}: {_POWER!r} must be a table, [group.{_POWER}]")
    if power is not None:
        power = _made(NodePower, f"{where}, {_POWER}", power)
    amounts |= {name: ANY_NUMBER for name, amount in amounts.items() if amount == ANY}
    memory = amounts.get(MEMORY)
    if isinstance(memory, str):
        amount = amount_of(memory, MEMORY_ALONE)
        if amount is None or amount.denominator > 1:
            raise HpcgymError(
                f"{where}: {MEMORY} must be whole MB or such as '16 GB', not {memory!r}"
            )
        amounts[MEMORY] = int(amount)
    with _saying(where, f"group {name!r}: "):
        return NodeGroup(name, nodes, amounts, power, sockets, features)


def _made(kind: type[_Made], where: str, given: Mapping[str, Any]) -> _Made:
    """Return an object of a kind from a table whose keys are its attributes."""
    attributes = fields(kind)
    _check_keys(where, given, [field.name for field in attributes])
    _need(where, given, [field.name for field in attributes if field.default is MISSING])
    with _saying(where):
        return kind(**given)


def _partition(where: str, given: dict[str, Any], sizes: list[tuple[str, int]]) -> Partition:
    """Return a partition from a table whose keys are its attributes; nodes are a text."""
    _need(where, given, ("name", "nodes"))
    if not isinstance(given["nodes"], str):
        raise HpcgymError(f"{where}: nodes must be a text such as '0-3,7', not {given['nodes']!r}")
    listed = {key: tuple(item) if isinstance(item, list) else item for key, item in given.items()}
    return _made(Partition, where, {**listed, "nodes": nodes_of_text(given["nodes"], sizes, where)})


def _power_lines(power: NodePower) -> list[str]:
    """Return the power of nodes as lines of TOML, without defaults."""
    plain = NodePower(power.idle_w, power.busy_w, frequency_ghz=power.frequency_ghz)
    needed = ["idle_w", "busy_w", *(["frequency_ghz"] if power.frequency_ghz else [])]
    # a tuple of one number is written as the number
    given = {
        name: value[0] if isinstance(value, tuple) and len(value) == 1 else value
        for name, value in vars(power).items()
        if name in needed or value != getattr(plain, name)
    }
    return _lines(None, given)


def _check_keys(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Say so if a key is not one of the known ones."""
    names = list(known)
    for key in given:
        if key not in names:
            near = get_close_matches(key.casefold(), names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
            raise HpcgymError(f"{where}: unknown key {key!r}; {hint}")


def _check_key(where: str, key: str, known: tuple[str, ...]) -> None:
    """Say so if a key is almost a known one: it would be taken for a resource."""
    near = near_name(key, known)
    if key not in known and near:
        raise HpcgymError(f"{where}: unknown key {key!r}; did you mean {near!r}?")


def _need(where: str, given: Mapping[str, Any], needed: Iterable[str]) -> None:
    """Say so if a key is missing."""
    for key in needed:
        if key not in given:
            raise HpcgymError(f"{where}: {key!r} is missing")


def _toml(value: Any) -> str:
    """Return a value as TOML has it: as JSON, but that whole numbers have no point."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    whole = isinstance(value, float) and value.is_integer()
    # JSON leaves one character as it is that TOML has no room for
    return json.dumps(int(value) if whole else value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _amount(name: str, amount: int) -> str:
    """Return an amount of a resource as TOML, memory in the largest unit that divides it."""
    if amount == ANY_NUMBER:
        return f'"{ANY}"'
    if name != MEMORY or amount == 0:
        return str(amount)
    return f'"{memory_text(amount)}"'
