"""The whole study of co-scheduling: simulations, tables, report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from hpcgym.benchmarks.coscheduling import runs, speed, tables
from hpcgym.benchmarks.coscheduling.runs import Sizes
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.errors import HpcgymError
from hpcgym.machine.speedups import read_speedups
from hpcgym.version import __version__
from hpcgym.workload.archive import data_folders

#: ELiSE's file of speedups measured on ARIS, NAS.
MEASURED_FILE = "lm-aris.compute-NAS.json"


def find_measured() -> Path | None:
    """Return the file of measured speedups if it is on this machine.

    It is looked for in the folders of ``HPCGYM_DATA``, and in folders ``coscheduling`` in or beside
    these.
    """
    places = [
        place
        for folder in data_folders()
        for place in (folder, folder / "coscheduling", folder.parent / "coscheduling")
    ]
    return next((at / MEASURED_FILE for at in places if (at / MEASURED_FILE).is_file()), None)


def reproduce(
    measured: Path | None,
    folder: Folder,
    *,
    heatmaps: int = Sizes.heatmaps,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables and a report; what was simulated before is kept.

    Parameters
    ----------
    measured : a file of speedups with processes and compact run times; None: without what needs it.
    folder : where the study is run; outcomes are in its folders ``tasks`` and ``timings``. What is
        timed always runs in this process.
    heatmaps : generated ones of each mean and reading.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see
    :data:`hpcgym.benchmarks.coscheduling.tables.TEXTS`.

    Raises
    ------
    HpcgymError : a number below 1, a file that cannot be read or written, or lacks codes, a
        simulation that fails, or no matplotlib.
    """
    if heatmaps < 1:
        raise HpcgymError(f"heatmaps must be a whole number of at least 1, not {heatmaps}")
    folder.begin(tables.HEAD)
    sizes = runs.QUICK if quick else Sizes(heatmaps=heatmaps)
    tasks = runs.of_pairs(sizes, quick)
    if measured is not None:
        tasks += runs.of_mixes(read_speedups(measured), sizes)
    measure = partial(runs.measure, measured=None if measured is None else str(measured))
    outcomes = list(zip(tasks, folder.run(measure, tasks, "sets of jobs"), strict=True))
    timed = speed.tasks_of(quick, speed.machine_name())
    here = replace(folder, executor="serial", workers=None)  # nothing else runs meanwhile
    timings = list(zip(timed, here.run(speed.measure, timed, "timings", "timings"), strict=True))
    head = tables.HEAD.format(version=__version__, heatmaps=sizes.heatmaps)
    if measured is None:
        head += "\n" + tables.NO_MEASURED.format(file=MEASURED_FILE)
    found = tables.frame(outcomes)
    pairs, mixes = (found[found["part"] == part] for part in ("pairs", "mixes"))
    made = {
        "improvements": tables.improvements(pairs),
        "correlation": tables.correlation(pairs),
        "coschedulers": tables.all_coschedulers(pairs),
        "readings": tables.by_reading(pairs),
        "speed": tables.speeds(timings),
    }
    if len(mixes):
        made |= {"mixes": tables.mixes(mixes), "mix-utilisation": tables.mix_utilisation(mixes)}
    return folder.publish(head, made, tables.TEXTS, {}, "few jobs and heatmaps" * quick)
