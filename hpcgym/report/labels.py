"""What results are called in tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hpcgym.baselines.dispatchers import chooses_nodes
from hpcgym.baselines.labels import apart, rules_of_all, scheduler_names
from hpcgym.errors import HpcgymError
from hpcgym.report.words import each, machine_in_words

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

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
