"""Words and numbers of tables and pictures, and where schedules are from."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hpcgym.baselines.dispatchers import chooses_nodes
from hpcgym.baselines.labels import apart, rules_of_all, scheduler_names
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.schedule.result import Result


# --- Numbers as people read them ------------------------------------------------------------------

DIGITS = 4  # significant ones


def shown(value: float) -> str:
    """Return a number with four significant digits, whole ones in full, commas at thousands.

    >>> shown(92.57654), shown(0.0123456), shown(28481), shown(14805.23), shown(1.0)
    ('92.58', '0.01235', '28,481', '14,805', '1.000')
    """
    if isinstance(value, Integral):
        return f"{value:,}"
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if value == 0:
        return "0"
    # Rounding first: 9.9999 has one digit before the point, but is shown as 10.00.
    magnitude = math.floor(math.log10(abs(float(f"{value:.{DIGITS - 1}e}"))))
    if magnitude < -DIGITS:
        return f"{value:.{DIGITS - 1}e}"
    return f"{value:,.{max(DIGITS - 1 - magnitude, 0)}f}"


def shown_p(value: float) -> str:
    """Return a p-value with three significant digits, without zeros behind them.

    >>> shown_p(0.0123456), shown_p(0.5), shown_p(1.0), shown_p(0.00002)
    ('0.0123', '0.5', '1', '2e-05')
    """
    return "-" if math.isnan(value) else f"{value:.3g}"


# --- Machines and limits of results, in words -----------------------------------------------------

_LIMITS_SHOWN = 3


def limits_in_words(result: Result) -> str:
    """Return the first limits that a schedule kept, and how many more; nothing if there are none.

    Percents are of all nodes busy.
    """
    from hpcgym.cluster.power_plans import greatest_w
    from hpcgym.scheduler.limits import PowerCap

    texts = []
    for limit in (result.limits or ())[:_LIMITS_SHOWN]:
        most = greatest_w(result.cluster)
        if isinstance(limit, PowerCap):
            amount, text = limit.watts, f"cap {{}}({limit.watts:,.0f} W)"
        else:
            most *= limit.end - limit.start
            amount, text = limit.joules, f"budget {{}}({limit.joules / 3.6e6:,.4g} kWh)"
        text = text.format(f"{100 * amount / most:.4g} % " if most > 0 else "")
        text += f" from {limit.start:,} s" + ("" if limit.end is None else f" to {limit.end:,} s")
        texts.append(text + (", with shutdown" if getattr(limit, "shutdown", False) else ""))
    more = len(result.limits or ()) - len(texts)
    return "; ".join(texts) + (f"; and {more:,} more" if more else "")


def limits_of(parts: Mapping[str, Result]) -> str:
    """Return the limits that schedules kept, of each machine, in a line; nothing without any."""
    kept = [limits_in_words(part) for part in parts.values() if part.limits]
    return f"limits: {each(kept)}" if kept else ""


def machine_in_words(cluster: Cluster) -> str:
    """Return how large a machine is, in a few words."""
    size = cluster.processors
    if not cluster.groups:
        return "1 processor" if size == 1 else f"{size:,} processors"
    nodes = "1 node" if cluster.nodes == 1 else f"{cluster.nodes:,} nodes"
    return f"{cluster.name}{': ' if cluster.name else ''}{nodes} with {size:,} cores"


def each(texts: Iterable[str]) -> str:
    """Return different texts in a row, each once: "a, b and c"."""
    *most, last = dict.fromkeys(texts)
    return f"{', '.join(most)} and {last}" if most else last


# --- What results are called in tables and pictures -----------------------------------------------

#: One result, several, or several with names of one's own.
Results: TypeAlias = "Result | Sequence[Result] | Mapping[str, Result]"


def named(results: Results) -> dict[str, Result]:
    """Return results by name: the names given, else those of their schedulers.

    Raises
    ------
    HpcgymError : there is no result.
    """
    if isinstance(results, Mapping):
        parts = dict(results)
    else:
        parts = {}
        listed = results if isinstance(results, Sequence) else [results]
        for result in listed:
            _check_result(result)
        names = scheduler_names([result.scheduler for result in listed])
        names = apart(names, [machine_in_words(result.cluster) for result in listed])
        names = apart(names, [result.workload.name for result in listed])
        for name, result in zip(names, listed, strict=True):
            same = sum(known == name or known.startswith(f"{name} (") for known in parts)
            parts[f"{name} ({same + 1})" if same else name] = result
    if not parts:
        raise HpcgymError("there is no result to report")
    for name, result in parts.items():
        _check_result(result, f" ({name!r})")
    return parts


def _check_result(result: Any, where: str = "") -> None:
    """Raise an HpcgymError of what is no result of a simulation."""
    if not hasattr(result, "metrics"):
        raise HpcgymError(
            f"results must be what hpcgym.simulate returns, not a {type(result).__name__}{where}"
        )


def drawable(results: Results) -> dict[str, Result]:
    """Return results by name, as :func:`named`, if there is something to draw of each.

    Raises
    ------
    HpcgymError : there is no result, or one without jobs.
    """
    parts = named(results)
    for name, result in parts.items():
        if not result.decided.any():
            raise HpcgymError(f"there is nothing to draw: {name} has no jobs")
    return parts


def by_machine(parts: Mapping[str, Result]) -> list[dict[str, Result]]:
    """Return the results of each machine; machines in the order of their first ones."""
    found: list[dict[str, Result]] = []
    for name, part in parts.items():
        same = (one for one in found if next(iter(one.values())).cluster == part.cluster)
        group = next(same, None)
        if group is None:
            found.append({name: part})
        else:
            group[name] = part
    return found


def subtitle(parts: Mapping[str, Result]) -> str:
    """Return workload, machine, scheduler if it is one, and rule of passes, for a picture.

    With several schedulers the rules that all have, and that are not usual, are told too, and an
    allocation that is not first-fit; where jobs share nodes, names tell it, and here is where the
    speedups come from.
    """
    results = list(parts.values())
    jobs = each(_jobs(part) for part in results)
    machines = each(machine_in_words(part.cluster) for part in results)
    words = [
        each(part.workload.name for part in results),
        jobs,
        machines,
        each(f"{part.scheduler.passes} passes" for part in results),
    ]
    shared = [part.coschedule for part in results if part.coschedule is not None]
    if len(results) == 1:
        words.insert(3, next(iter(parts)))
    if shared:
        words.append(each(f"speedups {Path(one.speedups.source).name}" for one in shared))
    elif len(results) > 1:
        schedulers = [part.scheduler for part in results]
        of_lists = [one for one in schedulers if not chooses_nodes(one.dispatcher)]
        told = {one.allocation: f"{one.allocation} allocation" for one in of_lists}
        words += [each(told.values())] if told.keys() - {"first-fit"} else []
    if len(results) > 1:
        words += rules_of_all([part.scheduler for part in results])
    return " · ".join(words)


def _jobs(result: Result) -> str:
    """Return how many jobs a schedule has; of an extract, how many of them it did not start."""
    number = len(result.workload)
    ran = number - int(result.decided.sum())
    words = "1 job" if number == 1 else f"{number:,} jobs"
    return f"{words}, of which {ran:,} run at the beginning" if ran else words


# --- Where the schedules of a page are from, for people -------------------------------------------


def origin_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what :func:`hpcgym.schedule.provenance.provenance_of` says, as rows of a table."""
    command, schedules = record["command"], record.get("schedules", ())  # a leaderboard has none
    said = "none: from Python" if command is None else shlex.join(["hpcgym", *command])
    return [
        ("written", record["date"]),
        ("by", f"hpcgym {record['hpcgym']}"),
        ("command", said),
        *((f"SHA-256 of {name}", digest) for name, digest in record["files"].items()),
        *((f"SHA-256 of the jobs of {one['name']}", one["sha256"]) for one in record["workloads"]),
        *((f"SHA-256 of the schedule {one['name']}", one["sha256"]) for one in schedules),
    ]
