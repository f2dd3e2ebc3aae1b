"""Views made by hand: what they hold, and which argument is wrong and how."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgym import HpcgymError
from hpcgym.scheduler.dispatchers import PassView

QUEUE: dict[str, Any] = {
    "submit": [0, 3],
    "duration": [1, 1],
    "units": [1, 2],
    "per_unit": [[1, 0], [2, 1]],
}
RUNS: dict[str, Any] = {
    "start": [1],
    "end": [9],
    "per_unit": [[2, 0]],
    "first": [0, 2],
    "node": [0, 1],
    "units": [1, 2],
}


def by_hand(**changes: Any) -> PassView:
    """Return a view of two nodes at 5 s, with changes of its arguments."""
    given: dict[str, Any] = {
        "time": 5,
        "resources": ("core", "gpu"),
        "capacity": [[4, 1], [4, 0]],
        "queue": QUEUE,
        "running": RUNS,
    }
    return PassView.of(**{**given, **changes})


def test_a_view_by_hand() -> None:
    view = by_hand()
    assert view.free.tolist() == [[2, 1], [0, 0]]
    assert view.wait.tolist() == [5, 2]
    assert view.requested.tolist() == view.policy_time.tolist() == [1, 1]
    known = by_hand(queue={**QUEUE, "requested": [7, 8], "policy_time": [5, 6]})
    assert (known.requested.tolist(), known.policy_time.tolist()) == ([7, 8], [5, 6])
    assert by_hand(queue={**QUEUE, "requested": [7, 8]}).policy_time.tolist() == [7, 8]
    assert (view.allowed.tolist(), view.held_back.tolist()) == ([True, True], [0, 0])
    limited = by_hand(queue={**QUEUE, "allowed": [True, False], "held_back": [0, 3]})
    assert (limited.allowed.tolist(), limited.held_back.tolist()) == ([True, False], [0, 3])
    assert by_hand(running=None).free.tolist() == view.capacity.tolist()
    nobody = {name: [] for name in QUEUE}
    assert by_hand(queue=nobody, running={}).in_order([]) == []


WRONG = {
    "": [
        ({"time": -1}, "time must be at least 0, not -1"),
        ({"resources": "core"}, "resources must be different names, not 'core'"),
        ({"resources": ("core", "core")}, "resources must be different names"),
        ({"capacity": [4, 4]}, r"capacity must have the shape \(2, 2\), not \(2,\)"),
        ({"capacity": [[4, 1], [4]]}, "capacity has parts of different lengths"),
        ({"capacity": []}, "capacity must have a row for each node, and it has no row"),
        ({"allocation": 7}, "allocation must be at most 6, not 7"),
        ({"allocation": "best-fit"}, "allocation must be a whole number"),
        ({"queue": [1]}, r"queue must be a mapping of arrays, not \[1\]"),
    ],
    "queue": [
        ({"submit": [0, 6]}, r"queue\['submit'\] must be at most 5, not 6"),
        ({"submit": 0}, r"queue\['submit'\] must be a list, not 0"),
        ({"duration": [1, -1]}, r"queue\['duration'\] must be at least 0, not -1"),
        (
            {"duration": [1, 1.5]},
            r"queue\['duration'\] must be whole numbers, not float64: \[1, 1.5",
        ),
        ({"allowed": [1, 2]}, r"queue\['allowed'\] must be at most 1, not 2"),
        (
            {"per_unit": [[1, 0], [0, 1]]},
            r"queue\['per_unit'\] must have a core for each unit, and \[1\] has none",
        ),
        ({"expected_wait": [1, 0]}, r"queue\['expected_wait'\] must be above 0 s"),
        ({"expected_wait": ["a", "b"]}, r"queue\['expected_wait'\] must be numbers"),
        ({"durations": [1, 1]}, "unknown key of queue 'durations'; did you mean 'duration'"),
        ({"units": None}, "queue lacks 'units'; it needs submit, duration, units, per_unit"),
    ],
    "running": [
        ({"first": [0, 1]}, r"running\['first'\] must rise from 0 to 2, the length of running\['n"),
        ({"node": [0, 2]}, r"running\['node'\] must be at most 1, not 2"),
        ({"per_unit": [[0, 1]]}, r"running\['per_unit'\] must have a core for each unit"),
        (
            {"node": [1, 1], "units": [1, 1]},
            r"running\['node'\] must have each node of a job once, and job 0 has node 1 twice",
        ),
        ({"units": [1, 3]}, "running: the jobs on node 1 take 6 core of its 4"),
        ({"end": None}, "running lacks 'end'; it needs start, end, per_unit, first, node, units"),
    ],
}


@pytest.mark.parametrize(
    ("part", "changes", "message"), [(part, *row) for part, rows in WRONG.items() for row in rows]
)
def test_a_view_by_hand_tells_what_is_wrong(
    part: str, changes: dict[str, Any], message: str
) -> None:
    if part:
        whole = {"queue": QUEUE, "running": RUNS}[part] | changes
        changes = {part: {name: value for name, value in whole.items() if value is not None}}
    with pytest.raises(HpcgymError, match=f"^{message}"):
        by_hand(**changes)


def test_running_jobs_may_share_a_node() -> None:
    two = {"start": [1, 1], "end": [9, 9], "per_unit": [[1, 0], [1, 1]], "first": [0, 1, 3]}
    view = by_hand(
        running={**two, "node": [0, 0, 1], "units": [1, 1, 2]}, capacity=[[4, 1], [4, 2]]
    )
    assert view.free.tolist() == [[2, 0], [2, 0]]
