"""Values of the fields of sacct: ids, states, time limits, nice values, and resources of jobs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.machine.constraints import constraint_of
from hpcgym.machine.partitions import hosts
from hpcgym.names import (
    CORE,
    LICENCE,
    MEMORY,
    MOST_NICE,
    MOST_OF_LIST,
    near_name,
    of_type,
    printable,
    resource_problem,
)
from hpcgym.units import MEMORY_OF_SLURM, Durations, amount_of, count_in
from hpcgym.workload.amounts import AMOUNTS, amount_of_tres, licences_in
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io import log_lines as logs
from hpcgym.workload.io.submit_lines import options_of, value_of

# --- Fields of Slurm's accounting -----------------------------------------------------------------

#: Kinds of lines that are no jobs.
STEP = "step of a job"
ARRAY_TASKS = "tasks of an array that had not started"
PART = "component of a heterogeneous job"
#: A fact that a line may tell of an array, as in ``7_[5-9%2]``.
UNUSED_THROTTLE = "not used: how many tasks of an array may run at once, %"

#: A remark on an ``End`` that the run time does not lead to.
OTHER_END = "not used: End that is not Start + Elapsed, as where Slurm suspended the job"
#: The repair of tasks that have no numbers of their own.
ANEW = "repaired: task of an array numbered anew, for the dump has no JobIDRaw"

_ID = re.compile(
    r"(?P<number>\d{1,18})(?:_(?:(?P<task>\d{1,18})|(?P<tasks>\[.*\]?)))?(?P<part>\+\d+)?"
)
_MOST_TASKS = re.compile(r"%([1-9]\d{0,8})\]")
#: First and last task, and the step, of a part of a list.
_TASKS = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::([1-9]\d{0,6}))?)?")
#: So many tasks an array may have at most: of MaxArraySize, slurm.conf(5).
_MOST_OF_ARRAY = 4_000_001

#: State of a job that ended -> status of the Standard Workload Format: 1 completed, 5 cancelled, 0
#: failed. REQUEUED and RESIZING are runs of jobs that went on: in another run, or at another size.
STATES = {
    "COMPLETED": 1,
    "CANCELLED": 5,
    "REVOKED": 5,
    **dict.fromkeys(
        (
            *("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"),
            *("PREEMPTED", "REQUEUED", "RESIZING", "SPECIAL_EXIT", "LAUNCH_FAILED"),
        ),
        0,
    ),
}
#: States of jobs that had not ended.
OPEN_STATES = (
    *("PENDING", "RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "COMPLETING", "STAGE_OUT"),
    *("SIGNALING", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"),
)
#: Of these, jobs that have not started; and those that do not until somebody lets them.
HELD = ("REQUEUE_HOLD", "RESV_DEL_HOLD")
WAITING = ("PENDING", "REQUEUE_FED", *HELD)

#: The word for no time limit.
UNLIMITED = "UNLIMITED"
#: The word for a time limit that is not told.
UNSAID = "Partition_Limit"

_UNSET = ((1 << 63) - 2, (1 << 63) - 1)  # without the mark of 64 bits
_OF_A_CORE = 1 << 31  # the mark of 32 bits
_OF_A_NODE = 1 << 27  # megabytes that no node has

#: Amounts under the name of a generic resource that no job holds: the use of its GPUs.
_OF_GPUS = ("gres/gpumem", "gres/gpuutil")
#: Prefix of requests beside resources of nodes, which no simulation uses.
_BESIDE = "bb/"


def is_step(text: str) -> bool:
    """Tell whether an id is that of a step, such as ``7.batch``."""
    job, point, step = text.partition(".")
    return bool(point and step) and job[:1].isdigit() and "[" not in job  # a list may end in ...


#: The parts of an id such as ``123``, ``123_4``, ``123+0`` or ``123_[5-9%2]``: number of the job or
#: of its array; task of that, -1 of a job that is no task, or of several; whether it is a component
#: of a heterogeneous job; whether it stands for tasks that had not started; and how many of these
#: may run at once, 0 where that is not told.
_IDS = np.dtype(
    [("number", "i8"), ("task", "i8"), ("part", "?"), ("waiting", "?"), ("at_once", "i8")]
)
#: The same of no id.
NO_ID = (MISSING, MISSING, False, False, 0)


def job_id(text: str) -> tuple[int, int, bool, bool, int]:
    """Return the parts of an id.

    Raises
    ------
    ValueError : it is no id of a job.
    """
    if text.isdecimal() and len(text) <= 18:  # most ids
        return int(text), *NO_ID[1:]
    match = _ID.fullmatch(text)
    if match is None:
        raise ValueError("no id such as 123, 123_4 or 123+0")
    task, tasks = match["task"], match["tasks"]
    most = _MOST_TASKS.search(tasks or "")
    task_number = int(task) if task else MISSING
    at_once = int(most[1]) if most else 0
    return int(match["number"]), task_number, bool(match["part"]), bool(tasks), at_once


def tasks_in(text: str) -> list[int]:
    """Return the tasks of an id such as ``7_[4-9:2,12%3]``; none of one that does not list them.

    Slurm ends long lists with ``...``: what is behind is not known.
    """
    listed = text.partition("[")[2].rstrip("]").partition("%")[0]
    tasks: list[int] = []
    for part in listed.split(","):
        if match := _TASKS.fullmatch(part):
            first = int(match[1])
            tasks += range(first, int(match[2] or first) + 1, int(match[3] or 1))
        if len(tasks) > _MOST_OF_ARRAY:
            return []
    return tasks


def ids_in(log: logs.LogRecords, name: str) -> NDArray[Any]:
    """Return the ids in a field of a dump, (n,) of _IDS; number -1: no id."""
    if name not in log.beside:
        log.beside[name] = log.column(name, job_id, NO_ID, _IDS)
    return log.beside[name]


def state_of(text: str) -> str:
    """Return the state in a text such as ``CANCELLED by 1234``.

    Raises
    ------
    ValueError : it is no state of Slurm.
    """
    word = text.split(" ", 1)[0].rstrip("+").upper()
    if word in STATES or word in OPEN_STATES:
        return word
    near = near_name(word, (*STATES, *OPEN_STATES))
    raise ValueError(f"no state of a job{f'; did you mean {near}?' if near else ''}")


def status_of(text: str) -> int:
    """Return the status of a state, -1 of a job that had not ended."""
    return STATES.get(state_of(text), MISSING)


def time_limit(text: str, how: Durations) -> int:
    """Return the seconds of a time limit, -1 if it is not told."""
    return MISSING if text.casefold() == UNSAID.casefold() else logs.time_limit(text, how)


def requested_mb(text: str) -> tuple[int, str]:
    """Return the megabytes of ReqMem, and of what: a core ``c``, a node ``n``, else the job.

    Slurm marks memory of a core by the highest bit of the number, which some versions print: of 64
    bits, or of 32 in jobs of older ones. 0 means no number, as do unset numbers.

    Raises
    ------
    ValueError : it is no memory.
    """
    folded = text.casefold()
    per = folded[-1:] if folded[-1:] in ("c", "n") else ""
    memory = amount_of(folded.removesuffix(per), MEMORY_OF_SLURM)
    if memory is None:
        raise ValueError("no memory such as 4G, 2000Mc or 16Gn")
    amount = math.ceil(memory)
    if amount >= 1 << 63:
        amount, per = amount - (1 << 63), "c"
    if amount in _UNSET:
        return 0, per
    return logs.bounded(amount, logs.MOST_MB), per


def tres(text: str) -> dict[str, int]:
    """Return the resources of ``cpu=4,mem=8G,node=2,gres/gpu:a100=2``, by name, memory in MB.

    A generic resource has its name alone, ``gpu``; where their sum is not told, it is that of its
    types. These have their own names, too: ``gpu:a100``. A licence is ``licence.matlab``.

    Raises
    ------
    ValueError : it is no list of resources.
    """
    amounts: dict[str, int] = {}
    types: Counter[str] = Counter()
    columns = {amount.tres: amount.column for amount in AMOUNTS.values() if amount.column}
    for entry in text.split(","):
        name, sign, amount = entry.partition("=")
        if not sign or not name:
            raise ValueError("no resources such as cpu=4,mem=8G,node=1,gres/gpu=2")
        kind = name.casefold()
        generic, colon, kind_of = name[len(logs.GENERIC) :].partition(":")
        generic = "gpu" if generic.casefold() == "gpu" else generic
        if generic in ("cpu", "mem", "node", *columns.values()) or generic.startswith(LICENCE):
            generic = f"{logs.GENERIC}{generic}"  # no other amount
        try:
            if kind == "mem":
                memory, per = requested_mb(amount)
                if not per:
                    amounts[kind] = memory
            elif kind in ("cpu", "node"):
                amounts[kind] = count_in(amount)
            elif kind in columns:
                amounts[columns[kind]] = count_in(amount)
            elif kind.startswith("license/"):
                amounts[amount_of_tres(name) or LICENCE] = count_in(amount)
            elif kind.startswith(logs.GENERIC) and not kind.startswith(_OF_GPUS):
                if colon:
                    types[generic] += count_in(amount)
                    types[f"{generic}:{kind_of}"] += count_in(amount)
                else:
                    amounts[generic] = count_in(amount)
        except ValueError as problem:
            raise ValueError(f"of which {name} is {problem}") from None
    return {**types, **amounts}


def generic_of_old(text: str) -> dict[str, int]:
    """Return the generic resources of ``gpu:k80:2,mic``, by name, as :func:`tres` does.

    Raises
    ------
    ValueError : it is no list of generic resources.
    """
    entries = []
    for entry in text.split(","):
        # as versions from 20.11 on print what is asked of each node; of all nodes ReqTRES tells it
        name, *words = re.sub(r"^PER_[A-Z]+:|\(.*", "", entry).split(":")
        number = words.pop() if words and words[-1].isdecimal() else "1"
        entries.append(f"{logs.GENERIC}{':'.join([name, *words])}={number}")
    return tres(",".join(entries))


def asks_beside(text: str) -> bool:
    """Tell whether resources such as ``cpu=4,bb/datawarp=1G`` hold some that are of no node."""
    return any(entry.casefold().startswith(_BESIDE) for entry in text.split(","))


def nodes_in(text: str) -> int:
    """Return how many nodes a list such as ``n[1-3,7]`` names, -1 of ``None assigned``.

    Raises
    ------
    ValueError : it is no list of nodes.
    """
    if text.casefold() in ("none assigned", "none", "(null)"):
        return MISSING
    try:
        return len(hosts(text, text))
    except HpcgymError:
        raise ValueError("no list of nodes such as n[1-3,7]") from None


# --- How nice jobs of Slurm are -------------------------------------------------------------------
#
# It stands in a field ``Nice``, which squeue has and sacct has not, or in ``SubmitLine`` of sacct,
# the command by which a job was submitted: https://slurm.schedmd.com/sbatch.html#OPT_nice

_LIFTED = f"repaired: nice of {MISSING}, which stands for an unknown one, taken for 0"
_NO_NICE = f"repaired: nice that is no number from {-MOST_NICE:,} to {MOST_NICE:,} taken for 0"
_USUAL = 100  # where the option has no value

_WHOLE = re.compile(r"[+-]?\d{1,18}")  # with which a value begins, as C reads it


def nice_of(log: logs.LogRecords) -> logs.Ints:
    """Return how nice each job is, (n,) int64, 0 where it does not say.

    ``log`` counts the jobs with a nice of -1, and those whose command has none that Slurm knows.
    """
    if "nice" in log.fields:
        nice = log.column("Nice", _number, blank=0)
    else:
        values = log.parsed("SubmitLine", nice_of_line, blank=0)
        log.count(_NO_NICE, [value is None for value in values])
        nice = np.array([value or 0 for value in values], np.int64)
    log.count(_LIFTED, nice == MISSING)
    return np.where(nice == MISSING, 0, nice)


def nice_of_line(line: str) -> int | None:
    """Return how nice the job of a command such as ``sbatch --nice=50 run.sh`` is.

    None: it has no number within Slurm's limits, which Slurm takes for 0.
    """
    value = value_of(line, "nice")
    if not value:
        return 0 if value is None else _USUAL
    begin = _WHOLE.match(value)
    nice = int(begin[0]) if begin else None
    return None if nice is None or abs(nice) > MOST_NICE else nice


def _number(text: str) -> int:
    """Return a nice that squeue tells."""
    if not _WHOLE.fullmatch(text) or abs(int(text)) > MOST_NICE:
        raise ValueError(f"no whole number from {-MOST_NICE:,} to {MOST_NICE:,}")
    return int(text)


# --- Constraints by features of nodes -------------------------------------------------------------

_NO_CONSTRAINT = "not used: Constraints that are none of Slurm"


def constraints_of(log: logs.LogRecords) -> list[str | None]:
    """Return the constraint of each job, None of none: Constraints, else that of SubmitLine."""
    texts = _asked(log, "Constraints", "constraint")
    known = {text: _constraint(text) for text in set(texts)}
    log.count(_NO_CONSTRAINT, [text != "" and known[text] is None for text in texts])
    return [known[text] for text in texts]


def reservations_of(log: logs.LogRecords) -> list[str | None]:
    """Return the reservation that each job asked for, None of none, told likewise."""
    return [printable(text) or None for text in _asked(log, "Reservation", "reservation")]


def _asked(log: logs.LogRecords, field: str, option: str) -> list[str]:
    """Return what a field tells that an option asks for, else that option of SubmitLine."""
    by_line = log.parsed("SubmitLine", lambda line: value_of(line, option) or "", "")
    return [
        of_line if own in ("", "(null)") else own
        for own, of_line in zip(log.texts(field), by_line, strict=True)
    ]


def _constraint(text: str) -> str | None:
    """Return a constraint as a header may have it; None of what is none."""
    shown = printable(text, MOST_OF_LIST)
    try:
        constraint_of(shown)
    except HpcgymError:
        return None
    return shown


# --- Resources of jobs in a dump of ``sacct`` -----------------------------------------------------

_BESIDE_RESOURCES = "not used: burst buffers"
_ONE_LICENCE = "not used: licences of which any one serves, or with names that none has here"
_MARKED = "repaired: ReqMem with the mark of memory of each core, 2^31"
_GIVEN = "not used: types of gres/{} that jobs were given; ReqTRES would tell which they ask for"
_TYPES = "not used: types of gres/{} by which the machine does not tell nodes apart"
_TRES = ("AllocTRES", "ReqTRES")
#: What told generic resources up to Slurm 20.02, of all nodes together (``slurmctld.h`` there).
_GRES = ("AllocGRES", "ReqGRES")
_OF_NODES = ("cpu", "mem", "node", "gpu")
#: Dicts of amounts by name, (values,), and which of them each record has, (n,).
_Resources = tuple[NDArray[Any], logs.Ints]


def resources_of(log: logs.LogRecords) -> dict[str, logs.Ints]:
    """Return the resources of jobs, (n,) each: as allocated, else as requested; -1 is unknown.

    The columns are ``requested_processors``, ``allocated_processors``, ``nodes``, ``gpus``,
    ``memory_mb``, one for each other generic resource, such as ``gres/fpga``, and one for each
    licence, ``licence.matlab``.
    """
    given, asked = (_resources_in(log, *fields) for fields in zip(_GRES, _TRES, strict=True))

    def amounts(name: str) -> tuple[logs.Ints, logs.Ints]:
        allocated, requested = (
            np.array([amounts.get(name, MISSING) for amounts in values], np.int64)[place]
            for values, place in (given, asked)
        )
        return allocated, requested

    (cpus, asked_cpus), (nodes, asked_nodes) = amounts("cpu"), amounts("node")
    given_field, untold = (
        next((name for name in names if name.casefold() in log.fields), names[0])
        for names in (("AllocCPUS", "NCPUS", "AllocTRES"), ("ReqCPUS", "ReqTRES"))
    )
    cores = logs.processors(
        log,
        logs.first_known(log.numbers(("AllocCPUS", count_in), ("NCPUS", count_in)), cpus),
        logs.first_known(log.numbers(("ReqCPUS", count_in)), asked_cpus),
        f"{given_field}, not {untold}",
        "no field tells its processors",
    )
    counted = log.numbers(("NNodes", count_in), ("AllocNodes", count_in), ("NodeList", nodes_in))
    nodes = logs.first_known(nodes, counted, asked_nodes, log.numbers(("ReqNodes", count_in)))
    beside = [log.column(name, asks_beside, False, np.bool_) for name in _TRES]
    log.count(_BESIDE_RESOURCES, np.logical_or(*beside))
    columns = {
        **cores,
        "nodes": nodes,
        "gpus": logs.first_known(*amounts("gpu")),
        "memory_mb": logs.first_known(
            *amounts("mem"), _requested_memory(log, cores["requested_processors"], nodes)
        ),
    }
    for column in (amount.column for amount in AMOUNTS.values() if amount.column):
        had, wanted = amounts(column)
        columns[column] = np.where(had >= 0, had, wanted)
    columns |= _licences(log, given, asked)
    alike: dict[str, logs.Ints] = {}
    only_given: dict[str, NDArray[np.bool_]] = {}
    names = {name for values, _ in (given, asked) for amounts in values for name in amounts}
    by_lines: list[dict[str, frozenset[str]]] = []
    if any(had.startswith(of_type(of, "")) for of in names for had in log.how.resources):
        by_lines = log.parsed("SubmitLine", types_of_line, blank={})
        names |= _typed_by_lines(by_lines, names, log.how.resources)
    for name in sorted(names - {*_OF_NODES, *columns, LICENCE}):
        generic = logs.first_known(*amounts(name))
        of, colon, kind = name.partition(":")
        if colon:  # a job that asks for any has been given one of a type
            requests = amounts(of)[1] > 0
            # where types tell nodes apart, a job of one that no node has fits nowhere
            if any(had.startswith(of_type(of, "")) for had in log.how.resources):
                own = kind.casefold()
                named = [int(own in types[of]) if of in types else -1 for types in by_lines]
                by_line = np.array(named, np.int64)
                typed = np.where(requests, amounts(name)[1], 0)
                # where types are not tracked, those of a command have all that the job was given
                of_line = logs.first_known(*amounts(name), *amounts(of))
                typed = np.where(by_line > 0, of_line, typed)
                columns[f"{logs.GENERIC}{of_type(of, kind)}"] = np.maximum(typed, 0)
                blind = ~requests & (by_line < 0) & (generic > 0)
                only_given[of] = only_given.get(of, blind) | blind
            else:
                generic = np.where(requests, amounts(name)[1], generic)
                alike[of] = np.maximum(alike.get(of, generic), generic)
        elif name in (CORE, MEMORY) or resource_problem(name):
            resource = f"{logs.GENERIC}{printable(name.removeprefix(logs.GENERIC))}"
            reason = f"{resource}, which is no name of a resource here"
            log.count(f"not used: {reason}", generic > 0)
        else:
            columns[f"{logs.GENERIC}{name}"] = generic
    for of, generic in alike.items():
        log.count(_TYPES.format(printable(of)), generic > 0)
    for of, jobs in only_given.items():
        log.count(_GIVEN.format(printable(of)), jobs)
    return columns


def _licences(log: logs.LogRecords, given: _Resources, asked: _Resources) -> dict[str, logs.Ints]:
    """Return how many of each licence jobs have: as tracked, else by what they asked for.

    Where a job needs one of several, ``a|b``, AllocTRES tells which it was given (man page sbatch,
    "licenses").
    """
    texts = _asked(log, "Licenses", "licenses")
    known = {text: licences_in(text) for text in set(texts)}
    names = {name for job in (*given[0], *asked[0]) for name in job if name.startswith(LICENCE)}
    if not names and not any(known.values()):
        return {}
    held = (values[place] for values, place in (given, asked))
    tracked = [own or beside for own, beside in zip(*held, strict=True)]
    jobs = [
        {name: n for name, n in known[text].items() if name not in names} | of_job
        for text, of_job in zip(texts, tracked, strict=True)
    ]
    log.count(_ONE_LICENCE, [LICENCE in job for job in jobs])
    names.update(*known.values())
    return {
        name: np.array([job.get(name, 0) for job in jobs], np.int64)
        for name in sorted(names - {LICENCE})
    }


def _resources_in(log: logs.LogRecords, gres: str, name: str) -> _Resources:
    """Return what a field of trackable resources tells, and beside it that of old versions."""
    resources, place = log.values(name, tres, {})
    if gres.casefold() not in log.fields:
        return resources, place
    beside = log.column(gres, generic_of_old, {}, object)
    both = [{**old, **new} for old, new in zip(beside, resources[place], strict=True)]
    return np.array(both, object), np.arange(len(both))


def _typed_by_lines(
    by_lines: Iterable[Mapping[str, frozenset[str]]], names: Set[str], resources: Iterable[str]
) -> set[str]:
    """Return types of generic resources that commands alone name, spelt as the machine does."""
    spelt = {resource.casefold(): resource for resource in resources}
    known = {name.casefold() for name in names}
    typed = set()
    pairs = {(of, kind) for types in by_lines for of in types for kind in types[of]}
    for of, kind in pairs:
        if of in names and f"{of}:{kind}".casefold() not in known:
            resource = spelt.get(of_type(of, kind).casefold(), of_type(of, kind))
            typed.add(f"{of}:{resource.removeprefix(of_type(of, ''))}")
    return typed


#: Options that ask for generic resources -> what stands before what they ask for.
_OF_GRES = {
    "gres": "",
    **{f"tres-per-{of}": "" for of in ("job", "node", "socket", "task")},
    **{f"gpus{of}": "gpu:" for of in ("", "-per-node", "-per-socket", "-per-task")},
}
_NUMBER = re.compile(r"\d+[KMGTP]?", re.IGNORECASE)


def types_of_line(line: str) -> dict[str, frozenset[str]]:
    """Return the types that a command asks for of each generic resource, in lower case.

    https://slurm.schedmd.com/sbatch.html#OPT_gres and #OPT_gpus

    >>> types_of_line("sbatch --gres=gpu:a100:2,shard:1 run.sh") == {
    ...     "gpu": frozenset({"a100"}), "shard": frozenset()}
    True
    >>> types_of_line("srun -G 4 ./a"), types_of_line("sbatch run.sh")
    ({'gpu': frozenset()}, {})
    """
    types: dict[str, frozenset[str]] = {}
    for option, value in options_of(line):
        for part in (value or "").split(",") if option in _OF_GRES else ():
            words = re.split("[:=]", re.sub("^gres[/:]", "", _OF_GRES[option] + part))
            kinds = [word.casefold() for word in words[1:2] if not _NUMBER.fullmatch(word)]
            types[words[0]] = types.get(words[0], frozenset()) | {*kinds}
    return types


def _requested_memory(log: logs.LogRecords, cores: logs.Ints, nodes: logs.Ints) -> logs.Ints:
    """Return the memory of jobs by ReqMem [MB], which some jobs have per core or per node."""
    memory = log.parsed("ReqMem", requested_mb, (MISSING, ""))
    amount = np.array([megabytes for megabytes, _ in memory], np.int64)
    per = np.array([what for _, what in memory], str)
    nodes = np.maximum(nodes, 1)
    of_a_node = np.where(per == "", amount // nodes, amount)
    marked = (amount >= _OF_A_CORE) & (of_a_node >= _OF_A_NODE)
    log.count(_MARKED, marked)
    amount = amount - np.where(marked, _OF_A_CORE, 0)
    of_a_core = (per == "c") | marked
    amount = np.where(of_a_core & (amount >= _OF_A_CORE - 2), 0, amount)  # an unset number
    times = np.select([of_a_core, per == "n"], [np.maximum(cores, 1), nodes], 1)
    return np.where(amount > 0, amount * times, MISSING)
