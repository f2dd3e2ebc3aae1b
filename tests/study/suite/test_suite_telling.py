"""What tasks tell: which policies their test parts tell apart, as it is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from bringing import frozen
from freeze_suite import OF_PAIRS, POLICIES, Known, Told, told_by, told_of

from hpcgym.study.suite.tasks import Task, tasks

#: Id -> pairs that it does not tell apart: of random, SJF, SAF and F1; where jobs share nodes, of
#: four co-schedulers. The second time slice by slice, which tells more apart.
ALIKE, ALIKE_IN_PAIRS = (
    {
        row["task"]: {tuple(pair.split()) for pair in row[column].split("; ") if pair}
        for row in frozen()
    }
    for column in ("alike", "alike_in_pairs")
)


KNOWN: Known = {}


def pairs(told: Told) -> set[tuple[str, str]]:
    return {tuple(sorted(pair)) for pair in told.alike}


@pytest.mark.slow
def test_what_a_task_tells_apart(frozen_task: Task) -> None:
    name, told = frozen_task.name, told_by(frozen_task, known=KNOWN)
    assert set(told.ends) == set(OF_PAIRS if frozen_task.kind == "pairs" else POLICIES)
    assert pairs(told) == ALIKE[name], told.text
    assert {tuple(sorted(pair)) for pair in told.alike_in_pairs} == ALIKE_IN_PAIRS[name], told.text


def test_where_jobs_are_selected_chance_is_the_worst_of_all() -> None:
    selects = [name for name, task in tasks().items() if task.frozen and task.kind == "select"]
    assert len(selects) == 5
    for name in selects:
        assert not any("random" in pair for pair in ALIKE[name])


def test_what_slices_have_in_common_tells_apart() -> None:
    """A policy that is a tenth better on each of very different slices."""
    easy = np.full(20, 8.0)
    one = np.geomspace(1, 1000, 20)
    told = told_of("x", easy, {"one": one, "better": one / 1.1, "same": one[::-1]})
    assert len(told.alike) == 3
    assert ("one", "better") in told.paired
    assert {tuple(sorted(pair)) for pair in told.alike_in_pairs} == {
        ("better", "same"), ("one", "same"),
    }  # fmt: skip
    assert told.paired["one", "better"] == pytest.approx((np.log(1.1), np.log(1.1)))


def test_clear_cases() -> None:
    easy = np.full(20, 8.0)
    noise = np.linspace(0.9, 1.1, 20)
    values = {"good": noise, "same": noise[::-1], "bad": 64 * noise}
    told = told_of("x", easy, values)
    assert next(iter(told.ends)) == "bad"
    assert pairs(told) == {("good", "same")}
    both = ("good and same", "same and good")
    assert told.text.endswith(tuple(f"alike: {one}; also slice by slice: {one}" for one in both))
    assert len([*combinations(told.ends, 2)]) == 3
