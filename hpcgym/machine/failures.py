"""When nodes fail, and when they are repaired."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_whole, real, whole_column
from hpcgym.files.tables import csv_rows
from hpcgym.files.writing import whole_text
from hpcgym.machine.files import find_cluster
from hpcgym.machine.partitions import check_node

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster

COLUMNS = ("node", "time", "repaired")
_LATEST = 2**53  # [s] as of all times in a workload
_MOST = 10_000_000  # failures that are drawn


@dataclass(frozen=True, eq=False)
class Failures:
    """Failures of nodes: each is down from ``time`` up to ``repaired``, exclusive. Read-only.

    They are sorted by time, then by node. A node may fail again in the second of its repair, but
    not before.

    Attributes
    ----------
    node : (n,) int64, from 0.
    time : (n,) int64 [s] on the workload's clock.
    repaired : (n,) int64 [s], after ``time``.

    Raises
    ------
    HpcgymError : arrays of other shapes, or of no whole numbers; a node below 0, times outside 0 to
        2^53 s, a repair that is not after its failure, or a failure of a node that is down.
    """

    node: NDArray[np.int64]
    time: NDArray[np.int64]
    repaired: NDArray[np.int64]

    def __post_init__(self) -> None:
        given = {name: whole_column(f"failures: {name}", getattr(self, name)) for name in COLUMNS}
        shapes = {column.shape for column in given.values()}
        if len(shapes) > 1 or len(shapes.pop()) != 1:
            shown = ", ".join(f"{name} {column.shape}" for name, column in given.items())
            raise HpcgymError(f"failures are three arrays of one length, not of {shown}")
        for row, problem in _problems(*given.values()):
            raise HpcgymError(f"failures: row {row}: {problem}")
        order = np.lexsort((given["node"], given["time"]))
        for name, column in given.items():
            kept = column[order]
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    def __len__(self) -> int:
        return len(self.node)

    def __repr__(self) -> str:
        return f"Failures({len(self):,} of {len(np.unique(self.node)):,} nodes)"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Failures:
        """Return the failures in a CSV file with the columns node, time and repaired.

        Nodes are counted from 0, times in whole seconds of the workload's clock. The order of rows
        and columns is free.

        Raises
        ------
        HpcgymError : a file that cannot be read, has other columns, or holds what cannot be; the
            message names the file and the line.
        """
        rows = csv_rows(Path(path), "a CSV file of failures")
        if not rows:
            raise HpcgymError(f"{path} is empty: its first line must be node,time,repaired")
        line, head = rows[0]
        names = [name.strip().casefold() for name in head]
        if sorted(names) != sorted(COLUMNS):
            raise HpcgymError(f"{path}, line {line}: the columns must be node,time,repaired")
        table = np.zeros((len(COLUMNS), len(rows) - 1), np.int64)
        for place, (line, cells) in enumerate(rows[1:]):
            if len(cells) != len(names):
                raise HpcgymError(f"{path}, line {line}: {len(cells)} values instead of 3")
            for name, cell in zip(names, cells, strict=True):
                table[COLUMNS.index(name), place] = _whole(cell, f"{path}, line {line}: {name}")
        for row, problem in _problems(*table):
            raise HpcgymError(f"{path}, line {rows[1 + row][0]}: {problem}")
        return cls(*table)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :meth:`read` reads.

        Raises
        ------
        HpcgymError : the file cannot be written; what was there before is still there.
        """
        rows = zip(self.node.tolist(), self.time.tolist(), self.repaired.tolist(), strict=True)
        lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
        with whole_text(path) as file:
            file.write("\n".join(lines) + "\n")


def find_failures(source: Any, cluster: Cluster) -> Failures:
    """Return failures, or those of a CSV file, of the nodes of a machine.

    Raises
    ------
    HpcgymError : no failures, a file that cannot be read, or a node that there is not.
    """
    failures = Failures.read(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(failures, Failures):
        raise HpcgymError(
            f"failures must be Failures or a CSV file of them, not a {type(failures).__name__}"
        )
    if cluster.groups:  # else the machine is refused, whatever the nodes
        check_node("failures", int(failures.node.max(initial=-1)), cluster.nodes)
    return failures


def failures_of(
    cluster: Cluster | str | int | os.PathLike[str],
    until: int,
    *,
    mtbf: float,
    repair: float,
    shape: float = 0.7,
    repair_sigma: float = 1.0,
    begin: int = 0,
    seed: int = 0,
) -> Failures:
    """Draw failures of the nodes of a machine, each node by itself.

    From its repair, or from ``begin``, to its next failure a node is up for a time that has a
    Weibull distribution; its repair takes one that is lognormal. Both are what Schroeder and
    Gibson, "A large-scale study of failures in high-performance computing systems", DSN 2006, find
    in nine years of failures at Los Alamos: a Weibull shape of 0.7 to 0.8, so that a failure is
    likelier the shorter ago the last one was, and mean times to repair from less than an hour to
    more than a day. That nodes fail independently, that each is as after a repair at ``begin``, and
    ``repair_sigma`` are assumptions.

    Parameters
    ----------
    cluster : a machine with nodes, or what :func:`find_cluster` takes.
    until : [s] no failure begins then or later; the last repairs may end later.
    mtbf : [s] mean time from a repair of one node to its next failure.
    repair : [s] mean time that a repair takes.
    shape : of the Weibull distribution, 0.1 to 100.
    repair_sigma : standard deviation of the logarithm of the times of repair; 0: all the same.
    begin : [s] when the first node may fail.
    seed : of the random numbers.

    Returns
    -------
    failures : in whole seconds, rounded up, so that each time lasts at least a second.

    Raises
    ------
    HpcgymError : a pool of processors, a number that cannot be, or more than ten million failures.
    """
    cluster = find_cluster(cluster)
    if not cluster.groups:
        raise HpcgymError("failures are of nodes, and a pool of processors has none")
    begin = check_whole("begin", begin, 0, _LATEST)
    until = check_whole("until", until, begin, _LATEST)
    for name, value in (("mtbf", mtbf), ("repair", repair), ("shape", shape)):
        if not (math.isfinite(real(value)) and value > 0):
            raise HpcgymError(f"{name} must be a number above 0, not {value!r}")
    if not (math.isfinite(real(repair_sigma)) and repair_sigma >= 0):
        raise HpcgymError(f"repair_sigma must be a number of at least 0, not {repair_sigma!r}")
    if not 0.1 <= shape <= 100:
        raise HpcgymError(f"shape must be a number from 0.1 to 100, not {shape!r}")
    too_many = HpcgymError(f"mtbf: {mtbf:g} s makes more than {_MOST:,} failures of this machine")
    if cluster.nodes * ((until - begin) / (mtbf + repair)) > _MOST:
        raise too_many
    random = np.random.default_rng(check_whole("seed", seed, 0, 2**63 - 1))
    scale = mtbf / math.gamma(1 + 1 / shape)  # the mean is the scale times this
    log_mean = math.log(repair) - repair_sigma**2 / 2
    now = np.full(cluster.nodes, begin)
    periods: list[NDArray[np.int64]] = []
    drawn = 0
    nodes = np.arange(cluster.nodes)
    while len(nodes):
        up = scale * random.weibull(shape, len(nodes))
        down = random.lognormal(log_mean, repair_sigma, len(nodes))
        time = now[nodes] + _seconds(up)
        nodes, time, down = nodes[time < until], time[time < until], down[time < until]
        now[nodes] = np.minimum(time + _seconds(down), _LATEST)
        periods.append(np.stack([nodes, time, now[nodes]]))
        drawn += len(nodes)
        if drawn > _MOST:
            raise too_many
    return Failures(*np.concatenate(periods, axis=1))


def _seconds(times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return times in whole seconds, rounded up, at least one."""
    return np.clip(np.ceil(times), 1, _LATEST // 4).astype(np.int64)


def _whole(text: str, what: str) -> int:
    """Return a whole number from a file."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= _LATEST:
        raise HpcgymError(f"{what} must be a whole number from 0 to 2^53, not {text.strip()!r}")
    return number


def _problems(
    node: NDArray[np.int64], time: NDArray[np.int64], repaired: NDArray[np.int64]
) -> list[tuple[int, str]]:
    """Return the first invalid row, and what is wrong with it; empty if all are valid."""
    wrong = (node < 0) | (time < 0) | (repaired > _LATEST)
    if wrong.any():
        row = int(wrong.argmax())
        return [(row, _outside(node[row], time[row], repaired[row]))]
    wrong = repaired <= time
    if wrong.any():
        row = int(wrong.argmax())
        return [
            (row, f"node {node[row]} fails at {time[row]} s and is repaired at {repaired[row]} s")
        ]
    order = np.lexsort((time, node))
    wrong = (np.diff(node[order]) == 0) & (time[order][1:] < repaired[order][:-1])
    if wrong.any():
        row = int(order[1:][wrong][0])
        return [(row, f"node {node[row]} fails at {time[row]} s, while it is down")]
    return []


def _outside(node: int, time: int, repaired: int) -> str:
    return (
        f"node {node}, {time} s to {repaired} s: nodes count from 0, and times are from 0 to 2^53 s"
    )
