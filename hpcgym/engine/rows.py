"""Rows of many simulations: which arrays of them are one for all, and which have a row for each.

Environments have the arrays of many simulations in one NamedTuple. The annotation of
each field says which of the two it is, so that nothing has to be cut by its place.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, cast, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit_part, jit_within
from hpcgym.engine.answers.answering import answering
from hpcgym.engine.answers.formulas import BUILT_IN
from hpcgym.engine.answers.share_rows import shares_of
from hpcgym.engine.answers.told import Told
from hpcgym.scheduler.estimates.learned import Estimators, Learner

#: One array for all simulations, which nobody changes.
Shared = Annotated[NDArray[Any], "shared"]
#: An array with a row for each simulation.
Rows = Annotated[NDArray[Any], "rows"]


@cache
def names_of(kind: Any, cls: Any, other: Any = None) -> tuple[str, ...]:
    """Return the fields of a NamedTuple that are ``kind``, in order; of ``other`` too, if given."""
    hints = get_type_hints(cls, include_extras=True)
    names = [name for name, hint in hints.items() if get_args(hint)[1:] == get_args(kind)[1:]]
    return tuple(name for name in names if other is None or name in other.__annotations__)


def shared_arrays(rows: Any) -> tuple[NDArray[Any], ...]:
    """Return the arrays that are one for all simulations."""
    return tuple(getattr(rows, name) for name in names_of(Shared, cast(Any, type(rows))))


def arrays_of_rows(rows: Any) -> tuple[NDArray[Any], ...]:
    """Return the arrays that have a row for each simulation."""
    return tuple(getattr(rows, name) for name in names_of(Rows, cast(Any, type(rows))))


def empty_rows(one: Any, number: int, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return arrays by name for that many simulations, whose rows are like the arrays of ``one``.

    They are filled with zeros.
    """
    arrays = {name: getattr(one, name) for name in names}
    return {name: np.zeros((number, *array.shape), array.dtype) for name, array in arrays.items()}


def loop_on_rows(run: Any, told: Told) -> Any:
    """Return the compiled loop of a machine, on one of many simulations.

    Parameters
    ----------
    run : that of one, of :func:`hpcgym.engine.loop.loop_of`.
    told : what the machine tells those who answer.
    """
    run = jit_within(run)
    run_with_answers = jit_within(answering(run, told, BUILT_IN))

    @jit_part
    def run_answered(
        jobs, keys, table, start, rows, e, machine, estimators, learner, shares, stop_time,
        max_passes,
    ):  # fmt: skip
        """Simulate as ``run_row`` does, with answers; None of those that there are not."""
        n = len(jobs)
        return run_with_answers(
            jobs, keys, rows.scores[e], users_of(table, start, n),
            rows.sim[e], rows.progress[e], rows.history[e], rows.blocks[e], rows.entries[e],
            rows.profile[e], rows.line[e], rows.narrow[e], rows.freed[e], rows.idle[e],
            rows.ended[e], machine, estimators, learner, shares, None, stop_time, max_passes,
        )  # fmt: skip

    @jit_part
    def run_row(jobs, keys, table, start, rows, e, machine, learns, fair, stop_time, max_passes):
        """Simulate jobs, which a table has from row ``start`` on, in row ``e`` of the arrays.

        ``table`` has the users of all jobs, ``rows`` the arrays of State and the scores.
        Where run times are learned, ``table`` has the Estimators too, and ``rows`` the Learners;
        else ``learns`` is None. Where an order looks at usage, ``fair`` are the ShareRows, else
        None.
        """
        n = len(jobs)
        if learns is None and fair is None:
            return run(
                jobs, keys, rows.scores[e], users_of(table, start, n),
                rows.sim[e], rows.progress[e], rows.history[e], rows.blocks[e], rows.entries[e],
                rows.profile[e], rows.line[e], rows.narrow[e], rows.freed[e], rows.idle[e],
                rows.ended[e], machine, stop_time, max_passes,
            )  # fmt: skip
        # a variable that might be None would have more compiled: each call is written by itself
        if fair is None:
            return run_answered(
                jobs, keys, table, start, rows, e, machine, estimators_of(table, start, start + n),
                learner_of(rows, e), None, stop_time, max_passes,
            )  # fmt: skip
        if learns is None:
            return run_answered(
                jobs, keys, table, start, rows, e, machine, None, None, shares_of(fair, e, n),
                stop_time, max_passes,
            )  # fmt: skip
        return run_answered(
            jobs, keys, table, start, rows, e, machine, estimators_of(table, start, start + n),
            learner_of(rows, e), shares_of(fair, e, n), stop_time, max_passes,
        )  # fmt: skip

    return run_row


@jit_part
def estimators_of(table, start, stop):
    """Return how a simulation of these rows of a shared table predicts run times."""
    classes, asked = table.classes, table.asked
    if len(classes) > 0:
        classes = classes[start:stop]
    if len(asked) > 0:
        asked = asked[start:stop]
    return Estimators(
        table.kinds, table.last, table.loss, table.chosen, table.looks, classes, asked, table.hold
    )  # fmt: skip


@jit_part
def learner_of(rows, e):
    """Return what simulation ``e`` has learned."""
    return Learner(
        rows.memory[e], rows.ratios[e], rows.seen[e], rows.model[e], rows.model_sums[e],
        rows.ordered_by[e], rows.weights[e], rows.scratch[e],
    )  # fmt: skip


@jit_part
def users_of(table, start, n):
    """Return the users of ``n`` jobs of a table, empty where nobody looks at them."""
    users = table.users
    if len(users) > 0:
        users = users[start : start + n]
    return users


@jit_part
def keys_of(table, start, n):
    """Return the keys of ``n`` jobs of a table, empty where no order has any.

    The kernel looks for the secondary key of job j at n + j: hence the gap before all keys.
    """
    keys = table.keys
    if len(keys) > 0:
        gap = len(keys) - len(table.jobs)
        keys = keys[gap + start - n : gap + start + n]
    return keys
