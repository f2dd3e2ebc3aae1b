"""What learners and references have come to on one stream of jobs: measures, regret, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, unknown
from hpcgym.evaluation.intervals import against, block_length, bootstrap
from hpcgym.schedule.measures import measures, weekly_sums
from hpcgym.schedule.result import Result
from hpcgym.workload import Workload
from hpcgym.workload.slicing import WEEK_S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The row of the best weights that do not change, chosen knowing all jobs.
FIXED = "best fixed, in hindsight"

_SHOWN = ("weekly_bsld", "mean_wait_h", "p99_wait_h", "max_wait_h")


@dataclass(frozen=True)
class Prequential:
    """What learners and references have come to on one stream of jobs.

    A job counts for the week in which it was submitted; weeks are those of the log.

    Attributes
    ----------
    stream : the jobs.
    results : name -> schedule of all jobs; learners first, the last is :data:`FIXED`.
    decisions : name of a learner -> how often it chose.
    weights : of :data:`FIXED`, feature -> weight.
    saf : the row of SAF, which may have rules behind its name.
    resamples, seed : of the intervals.
    """

    stream: Workload
    results: dict[str, Result]
    decisions: dict[str, int]
    weights: dict[str, float]
    saf: str
    resamples: int = 2000
    seed: int = 0

    @property
    def table(self) -> pd.DataFrame:
        """A row for each learner and reference, the least mean bounded slowdown first.

        Columns: ``mean_bsld`` over all jobs; ``weekly_bsld``, the geometric mean over the weeks;
        ``mean_wait_h``, ``p99_wait_h``, ``max_wait_h`` [h]; ``regret``, how much the mean bounded
        slowdown is above that of :data:`FIXED` [%]; and how often a learner chose, ``decisions``,
        0 of what is simulated. ``mean_bsld`` and ``regret`` have 95 % intervals, ``_low`` and
        ``_high``: a bootstrap of blocks of :func:`hpcgym.evaluation.intervals.block_length` weeks,
        the same for all rows; nan of fewer than five blocks.
        """
        import pandas as pd

        jobs, sums = self._weeks
        low, high = self._interval(sums, jobs)
        regret = {name: self.difference(name, FIXED) for name in self.results}
        rows = []
        for place, (name, result) in enumerate(self.results.items()):
            found = measures(result, np.ones(len(self.stream), bool))
            row: dict[str, Any] = {"mean_bsld": found["mean_bsld"]}
            row |= {"mean_bsld_low": low[place], "mean_bsld_high": high[place]}
            row |= dict(zip(("regret", "regret_low", "regret_high"), regret[name], strict=True))
            row |= {measure: found[measure] for measure in _SHOWN}
            rows.append({"policy": name, **row, "decisions": self.decisions.get(name, 0)})
        table = pd.DataFrame(rows).set_index("policy")
        return table.sort_values("mean_bsld", kind="stable")

    @property
    def verdicts(self) -> list[str]:
        """How each learner compares with SAF, by mean bounded slowdowns and their interval."""
        return [
            f"{name}: {against(self.saf, *self.difference(name, self.saf), 'blocks of weeks')}"
            for name in self.decisions
        ]

    @property
    def regret(self) -> pd.DataFrame:
        """Regret against :data:`FIXED` up to the end of each week, a row a week of the log.

        It is the sum of the bounded slowdowns of the jobs submitted by then, less the same sum
        under :data:`FIXED`, in per cent of what :data:`FIXED` has in the whole stream: the last row
        is the ``regret`` of the table. A column for each learner and reference.
        """
        sums = self.by_week(sums=True).drop(columns="jobs")
        fixed = sums[FIXED]
        return 100 * sums.sub(fixed, axis="index").cumsum() / fixed.sum()

    def by_week(self, sums: bool = False) -> pd.DataFrame:
        """Return the mean bounded slowdowns of the jobs submitted in each week of the log.

        Parameters
        ----------
        sums : return their sums instead.

        Returns
        -------
        A row a week from the first to the last, nan where no job is submitted; columns ``jobs``,
        and one for each learner and reference.
        """
        import pandas as pd

        jobs, values = self._weeks
        first = self._first_week
        index = pd.RangeIndex(first, first + len(jobs), name="week")
        with np.errstate(invalid="ignore"):
            shown = values if sums else values / jobs[:, None]
        table = pd.DataFrame(shown, index=index, columns=list(self.results))
        table.insert(0, "jobs", jobs.astype(int))
        return table

    def difference(self, one: str, other: str) -> tuple[float, float, float]:
        """Return how much the mean bounded slowdown of one is above that of another [%].

        With the ends of the 95 % interval, of the same blocks of weeks for both.

        Raises
        ------
        HpcgymError : a name that is no row.
        """
        names = list(self.results)
        for name in (one, other):
            if name not in names:
                raise HpcgymError(unknown("policy", name, names))
        sums = self._weeks[1]
        mine, theirs = (sums[:, names.index(name)] for name in (one, other))
        above = 100 * (mine - theirs)[:, None]
        low, high = self._interval(above, theirs)
        return float(above.sum() / theirs.sum()), float(low[0]), float(high[0])

    @cached_property
    def _weeks(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Jobs of each week (n_weeks,), and sums of slowdowns (n_weeks, n_policies)."""
        every = np.ones(len(self.stream), bool)
        found = np.stack([weekly_sums(one, every) for one in self.results.values()], axis=2)
        found = found[self._first_week :]
        return found[:, 0, 0], found[:, 1]

    @property
    def _first_week(self) -> int:
        """Number of the first week with jobs, of those of the log."""
        return int(self.stream.since_first_submit[0] // WEEK_S)

    def _interval(
        self, values: NDArray[np.float64], counts: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the intervals of sums over weeks, divided by the sums of ``counts``."""
        block = block_length(len(counts))
        return bootstrap(values, self.resamples, self.seed, block=block, counts=counts)

    def figure(self) -> Figure:
        """Return a picture of the regret over time.

        Raises
        ------
        HpcgymError : matplotlib is not installed.
        """
        from hpcgym.evaluation.regret_picture import draw

        return draw(self)

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``board.csv``, ``weeks.csv``, ``regret.csv`` and ``regret.png``; return them.

        Raises
        ------
        HpcgymError : a file that cannot be written, or no matplotlib.
        """
        from hpcgym.report.canvas import save_figure
        from hpcgym.report.tables import write_tables

        tables = {"board": self.table, "weeks": self.by_week(), "regret": self.regret}
        files = write_tables(tables, folder)
        files.append(Path(folder, "regret.png"))
        save_figure(self.figure(), files[-1], ".png")
        return files
