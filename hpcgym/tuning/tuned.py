"""What tuning has found: the scheduler, how it compares on later weeks, and what its parts do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.intervals import against
from hpcgym.scheduler.files import write_scheduler
from hpcgym.scheduler.rules import Scheduler
from hpcgym.tuning.bounds import Bound

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Tuned:
    """A tuned scheduler and what is known of it.

    Attributes
    ----------
    scheduler : for :func:`hpcgym.simulate`.
    objective : what was made small.
    log : the name of the workload.
    bounds : what had to be kept, and what each means on the later part.
    board : a row for each scheduler, on the later part; see
        :func:`hpcgym.tuning.comparing.board_of`.
    weeks : name of a scheduler -> (n_weeks, 3) number of jobs, sums of bounded slowdowns and of
        waits [h] of each week, means over jitters; 0 in the early part.
    steps : the way to EASY: what is given up, the objective on the early part then, and on the
        later one.
    arms : a row for each combination that went on after the first look.
    rows : how the search went.
    tried : how many rules were tried.
    """

    scheduler: Scheduler
    objective: str
    log: str
    bounds: list[tuple[Bound, float]]
    board: pd.DataFrame
    weeks: dict[str, NDArray[np.float64]]
    steps: list[tuple[str, float, float]]
    arms: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    tried: int

    @property
    def verdict(self) -> str:
        """How it compares on weeks that the search has not seen, and whether bounds are kept."""
        told = [self._against(str(name)) for name in self.board.index[1:]]
        return f"{self.objective} on later weeks: {'; '.join(told)}; {self._bounds_kept()}"

    def _against(self, name: str) -> str:
        """Return how the tuned scheduler compares with another, in words."""
        row = self.board.loc[name]
        change, low, high = row[["tuned_percent", "low", "high"]].to_numpy(np.float64)
        return against(name, float(change), float(low), float(high))

    def _bounds_kept(self) -> str:
        """Return which bounds are kept on later weeks, in words."""
        row = self.board.loc["tuned"]
        broken = [
            f"{bound} is broken ({row[bound.measure]:.3g} > {limit:.3g})"
            for bound, limit in self.bounds
            if row[bound.measure] > limit
        ]
        if not self.bounds:
            return "no bounds"
        return ", ".join(broken) if broken else "all bounds kept"

    @property
    def ablation(self) -> pd.DataFrame:
        """The way from the tuned scheduler to EASY, a row a step: the least loss is given up first.

        Columns: ``given_up``, and the objective on the ``early`` and the ``later`` part then.
        """
        import pandas as pd

        return pd.DataFrame(self.steps, columns=["given_up", "early", "later"])

    @property
    def trace(self) -> pd.DataFrame:
        """How the search went: ``stage``, rules ``tried`` so far, the least ``loss`` of the last.

        A loss is the logarithm of the objective, and more where a bound was not kept.
        """
        import pandas as pd

        return pd.DataFrame(self.rows)

    def figure(self) -> Figure:
        """Return a picture: what each part of the scheduler does, and the later weeks.

        Raises
        ------
        HpcgymError : matplotlib is not installed.
        """
        from hpcgym.tuning.picture import draw

        return draw(self)

    def save(self, folder: str | Path) -> list[Path]:
        """Write the scheduler, tables and the picture into a folder; return the files.

        ``scheduler.toml`` is a scheduler wherever one is named.

        Raises
        ------
        HpcgymError : a file that cannot be written, or no matplotlib.
        """
        from hpcgym.report.canvas import save_figure
        from hpcgym.report.tables import write_tables

        folder = Path(folder)
        note = f"tuned on the early part of {self.log}; {self.verdict}"
        files = [folder / "scheduler.toml"]
        write_scheduler(files[0], self.scheduler, note)
        board = self.board.reset_index()
        tables = {"board": board, "ablation": self.ablation, "search": self.trace}
        files += write_tables(tables, folder, index=False)
        files.append(folder / "tuned.png")
        save_figure(self.figure(), files[-1], ".png")
        return files
