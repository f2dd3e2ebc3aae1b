"""What a view makes of an order: who fits, starts and is planned, beside plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from node_strategies import machines, most_units
from test_dispatching import SLOW

from hpcgym import HpcgymError
from hpcgym.scheduler.allocations import WORST_FIT
from hpcgym.scheduler.dispatchers import BEST_FIT, FIRST_FIT, PassView


def hold(free: list[int], demand: list[int]) -> int:
    return max(min(have // need for have, need in zip(free, demand, strict=True) if need), 0)


def placed(
    free: list[list[int]], total: list[int], units: int, demand: list[int], allocation: int
) -> dict[int, int] | None:
    """Return node -> units, None if they do not fit; and take them."""
    shares = [sum(have / all_ for have, all_ in zip(f, total, strict=True)) for f in free]
    sign = {FIRST_FIT: 0, BEST_FIT: 1, WORST_FIT: -1}[allocation]
    cells: dict[int, int] = {}
    for node in sorted(range(len(free)), key=lambda node: sign * shares[node]):
        here = min(units, hold(free[node], demand))
        if here:
            cells[node] = here
            units -= here
    if units:
        return None
    for node, here in cells.items():
        free[node] = [have - here * need for have, need in zip(free[node], demand, strict=True)]
    return cells


@st.composite
def views(draw: st.DrawFn) -> PassView:
    """A state in which some jobs run and others are queued, in a machine that may be full."""
    cluster = draw(machines())
    capacity, n = cluster.capacity.tolist(), len(cluster.resources)
    now = draw(st.sampled_from([0, 100]))
    allocation = draw(st.sampled_from([FIRST_FIT, BEST_FIT, WORST_FIT]))
    free, total = [list(node) for node in capacity], cluster.capacity.sum(axis=0).tolist()
    running: dict[str, list[Any]] = {key: [] for key in ("start", "end", "per_unit")}
    first, node, units = [0], [], []

    def demand() -> list[int]:
        have = capacity[draw(st.integers(0, len(capacity) - 1))]
        return [draw(st.integers(1, have[0])), *(draw(st.integers(0, more)) for more in have[1:])]

    for _ in range(draw(st.integers(0, 6))):
        need = demand()
        cells = placed(free, total, draw(st.integers(1, 3)), need, WORST_FIT)
        if cells is None:
            continue
        running["start"].append(now - draw(st.integers(0, 50)))
        running["end"].append(now + draw(st.sampled_from([-5, 0, 1, 2, 7, 7, 30])))
        running["per_unit"].append(need)
        node += list(cells)
        units += list(cells.values())
        first.append(len(node))
    queue: dict[str, list[Any]] = {key: [] for key in ("submit", "duration", "units", "per_unit")}
    for _ in range(draw(st.integers(0, 8))):
        need = demand()
        queue["submit"].append(now - draw(st.integers(0, 20)))
        queue["duration"].append(draw(st.sampled_from([0, 1, 2, 7, 30])))
        queue["units"].append(draw(st.integers(1, most_units(cluster.capacity.tolist(), need))))
        queue["per_unit"].append(need)
    return PassView.of(
        now, cluster.resources, capacity, queue={**queue, "per_unit": np.reshape(
            queue["per_unit"], (-1, n)
        )}, running={**running, "first": first, "node": node, "units": units},
        allocation=allocation,
    )  # fmt: skip


def order_of(view: PassView, seed: int) -> list[int]:
    order: list[int] = np.random.default_rng(seed).permutation(len(view.job)).tolist()
    return order


@settings(SLOW, max_examples=300)
@given(views(), st.integers(0, 2**16))
def test_fits_in_order_and_plan_are_those_of_plain_python(view: PassView, seed: int) -> None:
    capacity, total = view.capacity.tolist(), view.total.tolist()
    now, order = view.time, order_of(view, seed)
    demands, units = view.per_unit.tolist(), view.units.tolist()
    ends: dict[int, list[tuple[dict[int, int], list[int]]]] = {}
    free = [list(node) for node in capacity]

    def give(cells: dict[int, int], demand: list[int], sign: int) -> None:
        for node, here in cells.items():
            free[node] = [f + sign * here * d for f, d in zip(free[node], demand, strict=True)]

    for k, end in enumerate(view.running_end.tolist()):
        a, b = view.running_first[k : k + 2].tolist()
        cells = dict(
            zip(view.running_node[a:b].tolist(), view.running_units[a:b].tolist(), strict=True)
        )
        demand = view.running_per_unit[k].tolist()
        give(cells, demand, -1)
        ends.setdefault(end, []).append((cells, demand))
        assert end > now
    assert view.free.tolist() == free
    alone = [
        sum(hold(node, demand) for node in free) >= number
        for number, demand in zip(units, demands, strict=True)
    ]
    assert view.fits().tolist() == alone

    some = order[: (seed % 3) * len(order) // 2]  # an order may leave places out
    trial = [list(node) for node in free]
    taken = [
        place
        for place in some
        if placed(trial, total, units[place], demands[place], view.allocation) is not None
    ]
    assert view.in_order(some) == taken

    start, where = [-1] * len(order), [{}] * len(order)
    while min(start, default=0) < 0:
        for place in order:
            if start[place] >= 0:
                continue
            cells = placed(free, total, units[place], demands[place], view.allocation)
            if cells is not None:
                start[place], where[place] = now, cells
                end = now + max(int(view.duration[place]), 1)
                ends.setdefault(end, []).append((cells, demands[place]))
        if min(start) < 0:
            now = min(ends)
            for cells, demand in ends.pop(now):
                give(cells, demand, 1)
    plan = view.plan(order)
    assert plan.start.tolist() == start
    for place, cells in enumerate(where):
        a, b = plan.first[place : place + 2].tolist()
        assert dict(zip(plan.node[a:b].tolist(), plan.units[a:b].tolist(), strict=True)) == cells
    # what a view is asked changes nothing in it
    assert view.plan(order).start.tolist() == start
    assert view.fits().tolist() == alone


def test_a_plan_by_hand() -> None:
    """Two nodes; a job runs on the first to second 8, three wait."""
    view = PassView.of(
        5,
        ("core", "gpu"),
        [[4, 1], [4, 0]],
        queue={
            "submit": [1, 2, 3],
            "duration": [10, 4, 6],
            "units": [1, 1, 2],
            "per_unit": [[1, 1], [4, 0], [2, 0]],
        },
        running={
            "start": [0],
            "end": [8],
            "per_unit": [[1, 1]],
            "first": [0, 1],
            "node": [0],
            "units": [1],
        },
    )
    assert view.free.tolist() == [[3, 0], [4, 0]]
    assert view.fits().tolist() == [False, True, True]
    assert view.in_order([0, 1, 2]) == [1]
    assert view.in_order([2, 1]) == [2]
    plan = view.plan([0, 1, 2])
    # at 8 the first has its GPU; then 3 + 0 cores are free for 2 units of 2, so these wait to 9
    assert plan.start.tolist() == [8, 5, 9]
    assert plan.node.tolist() == [0, 1, 0, 1]
    assert plan.units.tolist() == [1, 1, 1, 1]
    assert view.wait.tolist() == [4, 3, 2]
    assert view.requested.tolist() == [10, 4, 6]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 0], "places from 0 to 1, each once"),
        ([2], "places from 0 to 1, each once"),
        ([-1, 0], "places from 0 to 1, each once"),
        ([0.0, 1.0], "a list of places"),
        ([[0, 1]], "a list of places"),
        ("01", "a list of places"),
        ([True, False], "a list of places"),
    ],
    ids=str,
)
def test_an_order_that_is_none_is_told(order: Any, message: str) -> None:
    queue = {"submit": [0, 0], "duration": [1, 1], "units": [1, 1], "per_unit": [[1], [1]]}
    view = PassView.of(0, ("core",), [[4]], queue=queue)
    for way in (view.in_order, view.plan):
        with pytest.raises(HpcgymError, match=message):
            way(order)
    with pytest.raises(HpcgymError, match="a plan needs an order of all 2 places"):
        view.plan([1])
    assert view.in_order([]) == []


def test_a_plan_of_a_job_that_never_fits_is_told() -> None:
    queue = {"submit": [0], "duration": [1], "units": [1], "per_unit": [[5]]}
    view = PassView.of(0, ("core",), [[4]], queue=queue)
    assert view.fits().tolist() == [False]
    message = r"^the job of row 0 never fits: it asks for 1 x \(5 core\), which the empty machine"
    with pytest.raises(HpcgymError, match=message):
        view.plan([0])
