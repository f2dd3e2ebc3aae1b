"""One policy after another on the slices of an evaluation, whatever it does there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hpcgym.envs.core.cutting import Episode
from hpcgym.errors import PolicyWarning, warn_caller
from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.stage import MisfitError
from hpcgym.scheduler.own_code import failure, own_rules, place_in
from hpcgym.scheduler.rules import Scheduler

#: (policy, slice) -> what went wrong.
Failures = dict[tuple[str, str], str]

#: A title and a number of steps -> a context that gives a function to call before each step.
Progress = Callable[[str, int], AbstractContextManager[Callable[[str], None]]]


def measured_on(
    chosen: Sequence[Episode],
    name: str,
    policy: Any,
    metrics: Sequence[str],
    play: Callable[[Episode], Mapping[str, float | int]],
    failures: Failures,
) -> list[dict[str, float]]:
    """Return the metrics of a policy on each slice, nan where it failed.

    Parameters
    ----------
    name : of the policy.
    metrics : those that are kept.
    play : returns the metrics of the policy's schedule of a slice.
    failures : gets what code of the user's does wrong, and where.

    Raises
    ------
    MisfitError : a policy that cannot act in its environment.
    Exception : what the schedulers of this library raise.
    """
    values = []
    for episode in chosen:
        found: Mapping[str, float | int] = {}
        try:
            found = play(episode)
        except MisfitError:
            raise
        except Exception as error:  # whatever a user's policy does
            own = own_rules(policy).values() if isinstance(policy, Scheduler) else [policy]
            if not own:
                raise
            guilty = next((one for one in own if place_in(one, error)), None)
            failures[name, episode.name] = failure(error, guilty)
        values.append({metric: float(found.get(metric, "nan")) for metric in metrics})
    return values


def warn_of_failures(board: Leaderboard) -> None:
    """Say of each policy that failed on how many slices, and what went wrong on the first.

    Warns
    -----
    PolicyWarning : for each of them.
    """
    for name in dict.fromkeys(policy for policy, _ in board.failures):
        at = [where for policy, where in board.failures if policy == name]
        warn_caller(
            f"{name} failed on {len(at)} of {len(board.by_slice)} slices, first on {at[0]}:"
            f" {board.failures[name, at[0]]}; see Leaderboard.failures",
            PolicyWarning,
        )


def silent(title: str, total: int) -> AbstractContextManager[Callable[[str], None]]:
    """Show no progress."""
    return nullcontext(lambda text: None)
