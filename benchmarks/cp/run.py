"""The whole study: runs on every machine, the same instances; tables, pictures, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp import instances, tables
from hpcgym.benchmarks.cp.items import ABOUT, LEAST, SECONDS_BETWEEN, VARIABLES_BELOW
from hpcgym.benchmarks.cp.runs import DISPATCHERS, LISTS, MACHINES, Findings, run_campaign
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.benchmarks.studies.tables import read_texts
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, _TEXTS = read_texts(
    __file__,
    about=ABOUT,
    below=VARIABLES_BELOW,
    least=SECONDS_BETWEEN[0],
    most=SECONDS_BETWEEN[1],
    share=LEAST,
)
SIZES = _TEXTS.pop("sizes")


def reproduce(
    machines: Sequence[str],
    folder: Folder,
    *,
    days: float | None = None,
    seeds: int | None = None,
    quick: bool = False,
    dispatchers: Sequence[str] = (),
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was computed before is kept.

    Parameters
    ----------
    machines : names of :data:`runs.MACHINES`.
    folder : where the study is run; outcomes are in its folders ``runs`` and ``instances``.
    days, seeds : how long the workload of each seed is, and how many there are; None: see
        :data:`runs.MACHINES`.
    quick : a small cut, which is compared with nothing published.
    dispatchers : those that are run, of :data:`runs.DISPATCHERS`; by default all. Tables and
        pictures of before that are not made of these are removed.

    Returns
    -------
    The file of the report, and machine -> its table of slowdowns, if any run came to schedules.

    Raises
    ------
    HpcgymError : an unknown machine or dispatcher, a machine with none of the dispatchers, days or
        seeds that are no positive numbers, a workload that cannot be read, a file that cannot be
        written, a task that fails, or no matplotlib, or no OR-Tools where a dispatcher solves
        models.
    """
    for name in machines:
        check_choice("machine of the study", name, MACHINES)
    for name in dispatchers:
        check_choice("dispatcher of the study", name, DISPATCHERS)
    for what, value in (("days", days), ("seeds", seeds)):
        if value is not None and not value > 0:
            raise HpcgymError(f"{what} must be a number above 0, not {value!r}")
    asked = dispatchers or [one for name in machines for one in MACHINES[name].dispatchers]
    for name in [name for name in asked if name not in LISTS][:1]:
        find_dispatcher(name)  # no OR-Tools is said before the work
    folder.begin(HEAD)
    findings = run_campaign(machines, folder, days, seeds, dispatchers, quick)
    _compare(findings, folder, dispatchers)
    made = {"sizes": tables.sizes(findings)}
    texts: dict[str, tuple[str, str]] = {}
    for found in findings:
        made |= {f"{found.name}/{name}": make(found) for name, make in tables.TABLES.items()}
        texts |= {
            f"{found.name}/{name}": (f"{found.name}: {heading}", note)
            for name, (heading, note) in _TEXTS.items()
        }
    head, cut = head_of(findings), "few days" * quick
    pictures = _draw(findings, folder)
    path, made = folder.publish(head, made, texts | {"sizes": SIZES}, pictures, cut)
    names = {found.name: f"{found.name}/slowdown" for found in findings}
    return path, {machine: made[name] for machine, name in names.items() if name in made}


def head_of(findings: Sequence[Findings]) -> str:
    """Return what the report begins with: also what was simulated."""
    lines = [
        f"- {found.name}: {found.machine.what}, {found.jobs:,} jobs: `"
        f"{found.machine.workload.format(days=f'{found.days:g}', seed='N')}`,"
        f" N from 1 to {len(found.seeds)}."
        for found in findings
    ]
    return "\n".join([HEAD.format(version=__version__), *lines, ""])


def _compare(findings: Sequence[Findings], folder: Folder, dispatchers: Sequence[str]) -> None:
    """Have PCP'19 and PCP'20 answer at the same states."""
    places = [
        (found, run)
        for found in findings
        for run in instances.DRIVERS.get(found.name, ())
        if not dispatchers or run.dispatcher in dispatchers
    ]
    tasks = [
        {**found.task(found.seeds[0]), **asdict(run), "number": instances.NUMBER}
        for found, run in places
    ]
    what = "the same instances"
    outcomes = folder.run(
        instances.compare_one, tasks, "comparisons", "instances", what=what, chunk=1
    )
    for (found, run), outcome in zip(places, outcomes, strict=True):
        found.instances[run] = outcome


def _draw(findings: Sequence[Findings], folder: Folder) -> dict[str, Path]:
    """Draw the pictures of each machine; return heading -> file."""
    pictures: dict[str, Path] = {}
    for found in findings:
        drawn = dict(tables.PICTURES)
        if found.instances:
            drawn[tables.RATIOS] = tables.draw_ratios, "ratios"
        else:  # of other dispatchers there may have been
            for suffix in (".png", ".pdf"):
                (folder.path / found.name / f"ratios{suffix}").unlink(missing_ok=True)
        pictures |= {
            f"{found.name}: {heading}": folder.picture(draw(found), f"{found.name}/{name}.png")
            for heading, (draw, name) in drawn.items()
        }
    return pictures
