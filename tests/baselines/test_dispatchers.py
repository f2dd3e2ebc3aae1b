"""The heuristic dispatchers on states whose decisions are worked out by hand."""

from __future__ import annotations

import builtins
import itertools
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym.baselines import dispatchers
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers import PassView

HOUR = 3600
HEURISTICS = ("fcfs-list", "sjf-list", "ljf-list", "prb", "sdprb")


def state(rows: list[tuple[int, int, int, int, float]], cores: int = 8) -> PassView:
    """A state at second 10,000 of one node, nothing running.

    Rows are (submit, expected duration, units, cores of a unit, expected wait of the queue).
    """
    submit, duration, units, size, wait = (np.array(column) for column in zip(*rows, strict=True))
    queue: dict[str, Any] = {
        "submit": submit,
        "duration": duration,
        "units": units,
        "per_unit": np.stack([size, 1000 * size], axis=1),
        "expected_wait": wait.astype(np.float64),
    }
    return PassView.of(10_000, ("core", "mem"), [[cores, 1000 * cores]], queue=queue)


#: Four jobs of which any two fit beside each other.
FOUR = [
    (1_000, 600, 2, 2, 6 * HOUR),  # waits 9,000 s
    (4_000, 300, 1, 4, HOUR),  # waits 6,000 s
    (7_000, 9_000, 4, 1, 24 * HOUR),  # waits 3,000 s
    (9_000, 100, 1, 3, 6 * HOUR),  # waits 1,000 s
]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("fcfs-list", [0, 1]),
        ("sjf-list", [3, 1]),  # 100, 300, 600, 9000
        ("ljf-list", [2, 0]),
        # 86,400 x wait / expected wait: 36,000, 144,000, 3,000 and 4,000
        ("prb", [1, 0]),
        # (wait + duration) / duration: 16, 21, 1.33 and 11
        ("sdprb", [1, 0]),
    ],
)
def test_jobs_start_in_the_order_of_the_rule(name: str, places: list[int]) -> None:
    assert list(dispatchers.find_dispatcher(name)(state(FOUR))) == places


def test_urgency_and_slowdown_are_the_equations() -> None:
    view = state(FOUR)
    assert dispatchers.urgency(view).tolist() == [36_000, 144_000, 3_000, 4_000]
    assert dispatchers.slowdown(view) == pytest.approx([16, 21, 4 / 3, 11])
    # duration x units x (cores + MB)
    assert dispatchers.demand(view).tolist() == [
        600 * 2 * 2002,
        300 * 4004,
        9_000 * 4 * 1001,
        100 * 3003,
    ]


def test_slowdown_orders_otherwise_than_urgency() -> None:
    # the second waits less but is much shorter
    view = state([(0, 5_000, 1, 1, HOUR), (5_000, 100, 1, 1, HOUR)])
    assert dispatchers.prb(view).tolist() == [0, 1]  # by wait alone
    assert dispatchers.sdprb(view).tolist() == [1, 0]  # 3 and 51


def test_equal_priorities_go_by_less_demand() -> None:
    rows = [(0, 200, 2, 1, HOUR), (0, 100, 2, 2, HOUR), (0, 100, 1, 2, HOUR)]
    assert dispatchers.prb(state(rows)).tolist() == [2, 0, 1]  # 200 x 1001, else 400 x 1001
    same = [(0, 100, units, 1, HOUR) for units in (3, 1, 2)]
    assert dispatchers.sdprb(state(same)).tolist() == [1, 2, 0]


def test_what_jobs_are_expected_to_take_enters_prb_among_equals_alone() -> None:
    """Remediani 2017, section 3.3.3: the expected wait of a queue is "a fixed value"."""
    waits = [(0, 6 * HOUR), (2_000, HOUR), (2_000, HOUR), (5_000, HOUR)]
    orders: dict[str, set[tuple[int, ...]]] = {"prb": set(), "sdprb": set()}
    for durations in itertools.permutations((10, 400, 4_000, 40_000)):
        view = state(
            [(at, d, 1, 1, expected) for (at, expected), d in zip(waits, durations, strict=True)]
        )
        orders["prb"].add(tuple(dispatchers.prb(view).tolist()))
        orders["sdprb"].add(tuple(dispatchers.sdprb(view).tolist()))
    places = {tuple(row if row not in (1, 2) else -1 for row in order) for order in orders["prb"]}
    assert len(places) == 1  # but for which of the two equals is first
    assert len(orders["prb"]) == 2
    assert len(orders["sdprb"]) > 10


def test_equal_in_all_go_by_submission() -> None:
    rows = [(k, 100, 1, 1, HOUR) for k in range(3)]
    equal = state([(5, 100, 1, 1, HOUR)] * 3)
    for name in HEURISTICS:
        assert list(dispatchers.find_dispatcher(name)(equal)) == [0, 1, 2]
    assert list(dispatchers.find_dispatcher("sdprb")(state(rows))) == [0, 1, 2]


def test_a_job_that_does_not_fit_is_passed_over() -> None:
    view = state([(0, 100, 2, 5, HOUR), (1, 100, 1, 9, HOUR), (2, 100, 1, 8, HOUR)])
    for name in HEURISTICS:
        assert list(dispatchers.find_dispatcher(name)(view)) == [2]


def test_of_an_expected_duration_of_nothing_the_slowdown_is_the_wait() -> None:
    view = state([(9_000, 0, 1, 1, HOUR), (0, 100, 1, 1, HOUR)])
    assert dispatchers.slowdown(view).tolist() == [1_000, 101]


def test_every_name_has_a_meaning_and_a_new_dispatcher() -> None:
    ends = ("", dispatchers.IMPROVED, dispatchers.PUBLISHED)
    lists = [name + end for name in HEURISTICS for end in ends]
    improved = {f"{name}:as=improved" for name in dispatchers.CP_DISPATCHERS if ":" not in name}
    assert set(dispatchers.DISPATCHERS) == {*lists, *dispatchers.CP_DISPATCHERS, *improved}
    for name in lists:
        assert dispatchers.DISPATCHERS[name].meaning
        dispatcher: Any = dispatchers.find_dispatcher(name)
        assert dispatcher.name == name
        assert pickle.loads(pickle.dumps(dispatcher)) == dispatcher


def test_lists_as_published_stop_and_take_the_fullest_nodes() -> None:
    """Two nodes of 4 and 2 free cores. AccaSim's SJF, LJF and FIFO do not pass over; PRB does."""
    view = PassView.of(
        1_000, ("core",), [[4], [4]],
        queue={"submit": [0, 10, 20], "duration": [50, 60, 10], "units": [1, 2, 1],
               "per_unit": [[1], [4], [2]]},
        running={"start": [1], "end": [2_000], "per_unit": [[2]], "first": [0, 1], "node": [1],
                 "units": [1]},
    )  # fmt: skip

    def starts(name: str) -> list[tuple[int, list[int]]]:
        dispatcher: Any = dispatchers.find_dispatcher(f"{name}:as=published")
        assert dispatchers.chooses_nodes(dispatcher)
        assert dispatchers.chooses_nodes(dispatcher.name)
        return [(int(place), nodes.tolist()) for place, nodes in dispatcher(view)]

    assert starts("sjf-list") == [(2, [1]), (0, [0])]  # then the second, which does not fit
    assert starts("ljf-list") == []
    assert starts("fcfs-list") == [(0, [1])]
    assert starts("prb") == [(0, [1]), (2, [0])]  # by the wait: all queues are alike
    assert list(dispatchers.find_dispatcher("ljf-list:as=improved")(view)) == [0, 2]


def test_prb_as_published_counts_a_second_more_in_the_queue() -> None:
    """Submitted now, a debug job is before one of the night queue that came a second ago."""
    view = PassView.of(
        100, ("core",), [[4]],
        queue={"submit": [99, 100], "duration": [9, 9], "units": [1, 1], "per_unit": [[4], [4]],
               "expected_wait": [86_400.0, 3_600.0]},
    )  # fmt: skip
    published: Any = dispatchers.find_dispatcher("prb:as=published")
    assert [int(place) for place, _ in published(view)] == [1]
    assert list(dispatchers.find_dispatcher("prb")(view)) == [0]


@pytest.mark.parametrize("name", dispatchers.CP_DISPATCHERS)
def test_those_that_solve_a_model_are_there(name: str) -> None:
    pytest.importorskip("ortools")
    dispatcher: Any = dispatchers.find_dispatcher(name)
    assert dispatcher.name == name
    assert dispatcher is not dispatchers.find_dispatcher(name)
    assert sorted(dispatcher(state(FOUR)))  # something starts


def test_without_ortools_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in list(sys.modules):
        if module.startswith(("ortools", "hpcgym.baselines.cp", "baselines.cp")):
            monkeypatch.delitem(sys.modules, module)
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("ortools"):
            raise ModuleNotFoundError("No module named 'ortools'", name="ortools")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HpcgymError, match=r"need OR-Tools: pip install 'hpcgym\[cp\]'"):
        dispatchers.find_dispatcher("pcp20")
    assert dispatchers.find_dispatcher("prb")


test_mistakes = mistakes_of(globals())
