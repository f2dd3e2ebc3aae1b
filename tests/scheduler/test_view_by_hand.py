"""Views made by hand: what they hold, and which argument is wrong and how."""

from __future__ import annotations

from typing import Any

from mistakes import mistakes_of

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


def test_running_jobs_may_share_a_node() -> None:
    two = {"start": [1, 1], "end": [9, 9], "per_unit": [[1, 0], [1, 1]], "first": [0, 1, 3]}
    view = by_hand(
        running={**two, "node": [0, 0, 1], "units": [1, 1, 2]}, capacity=[[4, 1], [4, 2]]
    )
    assert view.free.tolist() == [[2, 0], [2, 0]]


def without(table: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != name}


test_mistakes = mistakes_of(globals())
