"""What jobs ask for, by names of amounts: a row of AMOUNTS, a licence, or a resource of units.

Limits know amounts by these names alone, and so do the command line, proofs and explanations.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.names import (
    BILLING,
    CORE,
    LICENCE,
    MEMORY,
    MOST_AMOUNT,
    NODES,
    UNITS_PER_NODE,
    is_job_column,
    near_name,
    of_type,
    resource_problem,
)
from hpcgym.words import so_many

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

Ints = NDArray[np.int64]


class Amount(NamedTuple):
    """An amount that jobs ask for.

    Attributes
    ----------
    asked : returns how much each job of a workload asks for, (n_jobs,) int64, at least 0; in
        seconds, where the amount is one of minutes.
    in_use : what is in use of it, in words, behind a number.
    from_submission : whether a job has it from its submission on; else from its start on.
    tres : its name among the trackable resources of Slurm; "": Slurm tracks no such resource.
    column : of jobs, into which dumps of sacct are read where they tell that resource; "": none.
    of : the amount that it weighs by time: running jobs have of it what they still may use, that
        amount times what is left of their requested time; "": it is what jobs have until they end.
    budget : whether what jobs have used is of it, past and present: :data:`USED`, that alone, or
        :data:`IN_ALL`, with what running jobs still may use; 0: it is not.
    """

    asked: Callable[[Workload], Ints]
    in_use: str
    from_submission: bool = False
    tres: str = ""
    column: str = ""
    of: str = ""
    budget: int = 0

    @property
    def unit(self) -> int:
        """How many of what ``asked`` counts are one of it."""
        return 60 if self.of else 1


def _once(workload: Workload) -> Ints:
    return np.ones(len(workload), np.int64)


def units_and_demands(workload: Workload) -> tuple[Ints, Mapping[str, Ints]]:
    """Return the units of each job, (n_jobs,), and what a unit asks for, resource -> (n_jobs,).

    A job without units has one for each processor, which asks for its ``requested_memory``,
    kilobytes rounded up to megabytes.
    """
    if workload.units is not None:
        return workload.units, workload.per_unit
    units = workload.requested_processors
    kilobytes = np.maximum(workload.requested_memory, 0)
    return units, {CORE: np.ones(len(units), np.int64), MEMORY: -(-kilobytes // 1000)}


def of_units(workload: Workload, resource: str) -> Ints:
    """Return how much of a resource the units of each job ask for together, (n_jobs,) int64.

    Raises
    ------
    HpcgymError : more than can be counted.
    """
    units, demands = units_and_demands(workload)
    if resource not in demands:
        return np.zeros(len(workload), np.int64)
    of_unit = demands[resource]
    if int(units.max(initial=0)) * int(of_unit.max(initial=0)) * len(units) > _MOST:
        raise HpcgymError(f"{workload.name}: jobs ask for more {resource} than can be counted")
    asked: Ints = np.maximum(units, 0) * of_unit
    return asked


def nodes_told(workload: Workload) -> Ints:
    """Return on how many nodes each job is: as the log tells, or as its units need; else -1."""
    units, known = units_and_demands(workload)[0], workload.columns[NODES]
    one_each = (units == 1) | (workload.columns[UNITS_PER_NODE] == 1)
    return np.where((known < 0) & one_each, units, known)


def _of_nodes(workload: Workload) -> Ints:
    """Return the same.

    Raises
    ------
    HpcgymError : a job of which nothing tells it.
    """
    nodes = nodes_told(workload)
    if (nodes < 0).any():
        job = int((nodes < 0).argmax())
        count = so_many(int(np.count_nonzero(nodes < 0)), len(workload))
        raise HpcgymError(
            f"{workload.name}: nothing tells how many nodes {workload.called(job)} has, as the"
            f" column {NODES} or NNodes of sacct would, or a machine of whole nodes{count}"
        )
    return nodes


def _of_billing(workload: Workload) -> Ints:
    """Return what each job is billed for a second: its processors, where nothing tells it.

    So it is in Slurm, where no TRESBillingWeights are set (``calc_job_billable_tres``).
    """
    billing = workload.columns[BILLING]
    return np.where(billing >= 0, billing, workload.requested_processors)


AMOUNTS = {
    "jobs": Amount(_once, "jobs run"),
    "processors": Amount(
        lambda workload: workload.requested_processors, "processors are busy", tres="cpu"
    ),
    "submitted": Amount(_once, "jobs run or wait", from_submission=True),
    "nodes": Amount(_of_nodes, "nodes are in use", tres="node"),
    "billing": Amount(_of_billing, "are billed a second", tres="billing", column=BILLING),
}


#: What only bounds of one job know, beside its share of an amount (:func:`on_a_node`).
OF_ONE_JOB = {
    "requested_time": Amount(lambda workload: workload.requested_time, "seconds are asked for")
}
#: Behind an amount, how much of it a job asks for on each of its nodes.
_ON_A_NODE = "-a-node"


def on_a_node(amount: str) -> str:
    """Return what a job's share of an amount on each of its nodes is called, ``gpu-a-node``.

    It is rounded down, as Slurm does (``acct_policy.c`` of 22.05 to 25.05, "divisor").
    """
    return f"{amount}{_ON_A_NODE}"


#: Behind an amount, what running jobs still may use of it by their requested times.
_MINUTES = "-minutes"
#: What jobs have used of an amount; and that with what running jobs still may use.
USED, IN_ALL = 1, 2
#: Behind an amount weighed by time, whether what was used is of it.
_BUDGETS = {"": 0, "-used": USED, "-in-all": IN_ALL}


def minutes_of(amount: str) -> str:
    """Return what an amount weighed by time is called, such as ``gpu-minutes``.

    >>> minutes_of("processors"), minutes_of("gpu"), minutes_of("licence.matlab")
    ('processor-minutes', 'gpu-minutes', 'licence.matlab-minutes')
    """
    return f"{amount.removesuffix('s') if amount in AMOUNTS else amount}{_MINUTES}"


def used_of(amount: str) -> str:
    """Return what the minutes of an amount that jobs have used are called.

    >>> used_of("processors"), used_of("gpu")
    ('processor-minutes-used', 'gpu-minutes-used')
    """
    return f"{minutes_of(amount)}-used"


def in_all_of(amount: str) -> str:
    """Return what these are called with what running jobs still may use.

    >>> in_all_of("processors"), in_all_of("gpu")
    ('processor-minutes-in-all', 'gpu-minutes-in-all')
    """
    return f"{minutes_of(amount)}-in-all"


def _by_time(name: str) -> tuple[str, str]:
    """Return the amount that one of minutes weighs by time, and what stands behind it; else ""."""
    for behind in (f"{_MINUTES}{how}" for how in _BUDGETS):
        if (of := name.removesuffix(behind)) != name:
            minutes = f"{of}{_MINUTES}"
            return next((row for row in AMOUNTS if minutes_of(row) == minutes), of), behind
    return "", ""


def _weighed(name: str) -> str:
    """Return the amount that one of minutes weighs by time; "" of all others."""
    return _by_time(name)[0]


def amount_within(name: str) -> str:
    """Return the amount that one is a share of, or weighs by time; else the name itself.

    >>> amount_within("gpu-a-node"), amount_within("processor-minutes"), amount_within("gpu")
    ('gpu', 'processors', 'gpu')
    """
    return _weighed(name) or name.removesuffix(_ON_A_NODE)


def in_terms_of(name: str, renamed: Callable[[str], str]) -> str:
    """Return the name of an amount with that which it is of called otherwise."""
    of = renamed(amount_within(name))
    if behind := _by_time(name)[1]:
        return f"{minutes_of(of)}{behind.removeprefix(_MINUTES)}"
    return on_a_node(of) if name.endswith(_ON_A_NODE) else of


def amount_called(name: str) -> Amount:
    """Return the amount of a name: a row of :data:`AMOUNTS`, a licence, or a resource of units.

    Each of them that only running jobs have is also weighed by time (:func:`minutes_of`,
    :func:`used_of`, :func:`in_all_of`); of one job also a row of :data:`OF_ONE_JOB`, and what it
    asks for on each node.
    """
    of, behind = _by_time(name)
    budget = _BUDGETS.get(behind.removeprefix(_MINUTES), 0)

    def asked(workload: Workload) -> Ints:
        if budget == USED:  # a job may start while a minute is left, whatever it asks for
            some: Ints = 60 * (asked_of(workload, [of])[:, 0] > 0).astype(np.int64)
            return some
        if of:
            return _times_requested(workload, name, asked_of(workload, [of])[:, 0])
        if name.endswith(_ON_A_NODE):
            of_job = amount_called(name.removesuffix(_ON_A_NODE)).asked(workload)
            shares: Ints = of_job // np.maximum(_of_nodes(workload), 1)
            return shares
        if not name.startswith(LICENCE):
            return of_units(workload, name)
        return workload.columns.get(name, np.zeros(len(workload), np.int64))

    in_use = f"{name} may still be used" if of else f"{name} are in use"
    if budget:
        in_use = f"{name} have been used" if budget == USED else f"{name} have been or may be used"
    return {**AMOUNTS, **OF_ONE_JOB}.get(name, Amount(asked, in_use, of=of, budget=budget))


def _times_requested(workload: Workload, name: str, amount: Ints) -> Ints:
    """Return an amount of each job times its requested time, (n_jobs,) [s].

    Raises
    ------
    HpcgymError : more than can be counted.
    """
    # no product of matrices: starting its threads takes longer than a simulation
    together = (amount.astype(np.float64) * workload.requested_time).sum()
    if together > _MOST:
        raise HpcgymError(f"{workload.name}: jobs ask for more {name} than can be counted")
    asked: Ints = amount * workload.requested_time
    return asked


def amount_problem(name: str, *, of_a_job: bool = False) -> str:
    """Return why no amount has this name, in words; nothing if one may, perhaps of one job alone.

    >>> amount_problem("processor"), amount_problem("gpu")
    ("did you mean 'processors'?", '')
    >>> amount_problem("license.matlab"), amount_problem("licence.matlab")
    ("did you mean 'licence.matlab'?", '')
    >>> amount_problem("processors-minutes"), amount_problem("gpu-minutes")
    ("did you mean 'processor-minutes'?", '')
    """
    if name in OF_ONE_JOB or name.endswith(_ON_A_NODE):
        of = name.removesuffix(_ON_A_NODE)
        problem = "" if of in OF_ONE_JOB else amount_problem(of)
        if name != of and not problem and (of in OF_ONE_JOB or of == "jobs" or _weighed(of)):
            problem = f"{of!r} is not shared by the nodes of a job"
        return problem if of_a_job or problem else f"it is of one job: job:{name}=..."
    if of := _weighed(name):
        if amount_called(of).from_submission or amount_called(of).of:
            return f"{of!r} is not weighed by time"
        called = in_terms_of(name, lambda of: of)
        if of_a_job and amount_called(name).budget:
            return "it is of jobs together"
        return amount_problem(of) if called == name else f"did you mean {called!r}?"
    if name.casefold().startswith(("license", "licence")):
        licence = f"{LICENCE}{name[len(LICENCE) :] or 'matlab'}"
        return "" if name == licence and is_job_column(name) else f"did you mean {licence!r}?"
    near = name if name in AMOUNTS else near_name(name, (*AMOUNTS, CORE, MEMORY))
    near = "processors" if near == CORE else near
    if near == name:
        return ""
    return f"did you mean {near!r}?" if near else resource_problem(name)


def asked_of(workload: Workload, names: Iterable[str]) -> Ints:
    """Return how much each job asks for of some amounts, (n_jobs, n) int64.

    Those weighed by time count seconds of requested time.

    Raises
    ------
    HpcgymError : more than can be counted.
    """
    asked = [np.maximum(amount_called(name).asked(workload), 0) for name in names]
    none = np.zeros((len(workload), 0), np.int64)
    return np.ascontiguousarray(np.column_stack(asked) if asked else none, np.int64)


def asks_of_running(workload: Workload) -> dict[str, Ints]:
    """Return what running jobs have, amount -> (n_jobs,), of each amount that any job asks for.

    Amounts that the log does not tell are left out.
    """
    names = [name for name, amount in AMOUNTS.items() if not amount.from_submission]
    names += [name for name in workload.columns if name.startswith(LICENCE)]
    names += [name for name in units_and_demands(workload)[1] if name != CORE]
    asked: dict[str, Ints] = {}
    for name in names:
        try:
            of_jobs = asked_of(workload, [name])[:, 0]
        except HpcgymError:
            continue
        if of_jobs.any():
            asked[name] = of_jobs
    return asked


def most_at_once(start: Ints, end: Ints, amount: Ints, keys: Ints) -> Ints:
    """Return the most of an amount that is in use at once, of each key in order, (n_keys,) int64.

    Jobs end before others start in the same second.

    Parameters
    ----------
    start, end : (n_jobs,) [s].
    amount : (n_jobs,) what each job has meanwhile, at least 0.
    keys : (n_jobs,) among which jobs it is counted, such as their users.
    """
    change = np.concatenate([-amount, amount])
    times = np.concatenate([2 * end, 2 * start + 1])  # an end is before the starts of its second
    both = np.concatenate([keys, keys])
    order = np.lexsort((times, both))
    total = np.cumsum(change[order])  # each key ends with nothing
    _, first = np.unique(both[order], return_index=True)
    most: Ints = np.maximum.reduceat(total, first)
    return most


def amount_of_tres(name: str) -> str:
    """Return which amount of jobs a trackable resource of Slurm is; "" for all others.

    >>> [amount_of_tres(name) for name in ("cpu", "GRES/GPU", "license/matlab", "energy")]
    ['processors', 'gpu', 'licence.matlab', '']
    >>> amount_of_tres("gres/billing"), amount_of_tres("gres/jobs")
    ('', '')
    """
    written, slash, own = name.partition("/")
    kind = written.casefold()
    if not slash:
        rows = (of for of, amount in AMOUNTS.items() if amount.tres == kind)
        return next(rows, MEMORY if kind == "mem" else "")
    generic, colon, type_of = own.partition(":")
    generic = "gpu" if generic.casefold() == "gpu" else generic
    resource = of_type(generic, type_of) if colon else generic
    if kind == "gres":
        return (
            "" if resource in (*AMOUNTS, CORE, MEMORY) or resource_problem(resource) else resource
        )
    licence = f"{LICENCE}{own}"
    return licence if kind == "license" and not amount_problem(licence) else ""


def tres_of(amount: str) -> str:
    """Return which trackable resource of Slurm an amount is; "" for what Slurm counts otherwise.

    >>> [tres_of(amount) for amount in ("processors", "gpu", "licence.matlab", "jobs")]
    ['cpu', 'gres/gpu', 'license/matlab', '']
    """
    if amount in AMOUNTS:
        return AMOUNTS[amount].tres
    if amount.startswith(LICENCE):
        return f"license/{amount.removeprefix(LICENCE)}"
    return MEMORY if amount == MEMORY else f"gres/{amount}"


#: What weights look like, of which a letter stands for that of so much memory.
_WEIGHT = re.compile(
    r"(?P<tres>[^=,]+)=(?P<number>-?(?:\d+\.?\d*|\.\d+))(?P<unit>[KMGTP]?)", re.IGNORECASE
)


def weights_of(text: str) -> dict[str, float]:
    """Return the weights of amounts of ``cpu=1,mem=0.25G,gres/gpu=16``; a megabyte is one of mem.

    Raises
    ------
    HpcgymError : no such list, or what is no amount of jobs.

    >>> weights_of("CPU=1.0,Mem=0.5G,GRES/gpu=16")
    {'processors': 1.0, 'mem': 0.00048828125, 'gpu': 16.0}
    """
    weights = {}
    for part in text.split(","):
        match = _WEIGHT.fullmatch(part.strip())
        amount = amount_of_tres(match["tres"]) if match else ""
        if match is None or not amount or not math.isfinite(float(match["number"])):
            raise HpcgymError(f"{part!r} is no weight of an amount of jobs, such as gres/gpu=16")
        of_megabytes = 1024.0 ** ("KMGTP".index(match["unit"].upper() or "M") - 1)
        weights[amount] = float(match["number"]) / of_megabytes
    return weights


def billed(workload: Workload, weights: str, greatest: bool) -> Ints:
    """Return what jobs are billed for a second by weights of amounts, (n_jobs,), as Slurm does.

    These are the whole numbers that it accounts and limits (``job_set_alloc_tres`` in ``job_mgr.c``
    of 22.05 to 25.05): :func:`weighed`, rounded down.
    """
    return weighed(workload, weights, greatest).astype(np.int64)


def weighed(workload: Workload, weights: str, greatest: bool) -> NDArray[np.float64]:
    """Return the same with its fraction, at least 0, (n_jobs,).

    It is the sum over amounts; with ``greatest``, PriorityFlags=MAX_TRES, the greatest of what
    nodes have, and the sum of licences (``assoc_mgr_tres_weighted`` in ``assoc_mgr.c`` of 25.05).

    Raises
    ------
    HpcgymError : as of :func:`weights_of`, an amount that the log does not tell, or more than is
        counted.
    """
    beside = np.zeros(len(workload))
    of_nodes: list[NDArray[Any]] = [beside]
    for name, weight in weights_of(weights).items():
        asked = weight * asked_of(workload, [name])[:, 0]
        if greatest and not name.startswith(LICENCE):
            of_nodes.append(asked)
        else:
            beside = beside + asked
    together: NDArray[np.float64] = np.maximum(np.max(of_nodes, axis=0) + beside, 0)
    if together.max(initial=0) > MOST_AMOUNT:
        raise HpcgymError(f"{workload.name}: {weights!r} bills more than {MOST_AMOUNT:,} a second")
    return together


#: What licences look like in a slurm.conf and in commands of jobs of Slurm 22.05 to 25.05
#: (``_build_license_list`` in ``licenses.c``).
_LICENCE_OF_SLURM = re.compile(r"(?P<name>[^\s:=|]+)(?:[:=](?P<number>\d{1,9}))?")


def licences_in(text: str) -> dict[str, int]:
    """Return the licences of a list such as ``matlab:2,abaqus@server;fluent=4``, by their columns.

    What no column can be called, and lists of which one serves, stand under ``licence.`` alone.

    >>> licences_in("matlab:2,abaqus@server;matlab"), licences_in("matlab|abaqus:2")
    ({'licence.matlab': 3, 'licence.abaqus@server': 1}, {'licence.': 1})
    """
    licences: Counter[str] = Counter()
    for part in filter(None, map(str.strip, re.split("[,;]", text))):
        match = _LICENCE_OF_SLURM.fullmatch(part)
        column = f"{LICENCE}{match['name']}" if match else ""
        if match and is_job_column(column):
            licences[column] += int(match["number"] or 1)
        else:
            licences[LICENCE] += 1
    return dict(licences)


#: The most that all jobs may ask for together, as the engine counts.
_MOST = 2**62
