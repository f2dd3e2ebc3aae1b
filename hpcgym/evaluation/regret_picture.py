"""The picture of learning while it runs: regret over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.report.canvas import DARK_GREY, line_style, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hpcgym.evaluation.regret import Prequential


def draw(found: Prequential) -> Figure:
    """Return the picture; see :meth:`hpcgym.evaluation.regret.Prequential.figure`."""
    from hpcgym.evaluation.regret import FIXED

    figure = new_figure(9, 4.5)
    axes = figure.subplots()
    regret = found.regret
    learners = list(found.decisions)
    others = [name for name in regret if name not in learners and name != FIXED]
    for place, name in enumerate([*learners, *others]):
        wide = name in learners
        axes.plot(
            regret.index, regret[name], label=name, linewidth=2 if wide else 1,
            zorder=3 if wide else 2, **line_style(place),
        )  # fmt: skip
    axes.axhline(0, color=DARK_GREY, linewidth=1, label=FIXED)
    # who is far above all would make the others one line
    near = [*learners, found.saf]
    low, high = regret.to_numpy().min(), regret[near].to_numpy().max()
    room = 0.15 * max(high - low, 1.0)
    axes.set_ylim(min(low, 0) - room, max(high, 0) + room)
    axes.set_xlabel("week of the log")
    axes.set_ylabel(f"regret so far, % of all of\n{FIXED}")
    plain(axes, "y")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    axes.set_title(f"{found.stream.name}: sums of bounded slowdowns", fontsize=10)
    return figure
