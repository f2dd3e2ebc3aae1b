"""What dispatchers that solve models have logged, in a few numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

_LOGGED = ("variables", "status", "gap", "postponed", "model_s", "solve_s")


def dispatches(result: Result) -> dict[str, float] | None:
    """Return a summary of what a dispatcher that solves models has logged; None for others.

    ``dispatches`` at which something fitted, of these ``models`` that a solver was needed for;
    ``mean_s`` and ``max_s`` of all dispatches; the shares of them that were ``proved`` optimal, as
    the model has it; ``mean_gap`` of schedule and bound; jobs ``postponed``, for which the model's
    schedule had no nodes.
    """
    log = getattr(result.dispatcher, "log", None)
    if not isinstance(log, Sequence):
        return None
    if not all(isinstance(one, Mapping) and one.keys() >= {*_LOGGED} for one in log):
        return None  # a dispatcher of one's own logs what it likes
    n = max(len(log), 1)
    seconds = [one["model_s"] + one["solve_s"] for one in log]
    return {
        "dispatches": len(log),
        "models": sum(one["variables"] > 0 for one in log),
        "mean_s": sum(seconds) / n,
        "max_s": max(seconds, default=0.0),
        "proved": sum(one["status"] in ("optimal", "plan is optimal") for one in log) / n,
        "mean_gap": sum(one["gap"] for one in log) / n,
        "postponed": sum(one["postponed"] for one in log),
    }


def in_words(solved: Mapping[str, float]) -> str:
    """Return such a summary as a line."""
    text = (
        f"{solved['dispatches']:,} dispatches, {solved['models']:,} of them with a model to solve;"
        f" {solved['mean_s']:.3f} s each on average, {solved['max_s']:.2f} s at most;"
        f" {100 * solved['proved']:.1f} % proved optimal, mean gap"
        f" {100 * solved['mean_gap']:.2f} %"
    )
    if solved["postponed"]:
        text += f"; {solved['postponed']:,} starts postponed, since no nodes were found"
    return text
