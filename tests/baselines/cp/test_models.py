"""The models against trying everything, and against each other."""

import gc
import weakref
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from brute_force import least_slowdown
from instances import busy, small, view_of
from mistakes import mistakes_of

pytest.importorskip("ortools")

from ortools.sat.python import cp_model

from hpcgym.baselines.cp import models
from hpcgym.baselines.cp.dispatcher import SearchLimits, search, solve
from hpcgym.baselines.cp.dispatchers import HCP19, PCP19, PCP20
from hpcgym.baselines.cp.exact import exact
from hpcgym.benchmarks.cp.items import VARIABLES_BELOW

ENOUGH = SearchLimits(jobs=100, units=1000, work=20.0)
PROVED = ("optimal", "infeasible")


def total_slowdown(problem, schedule):
    """Return the sum of the slowdowns of a queue's jobs, exactly."""
    jobs = zip(
        problem.weights.wait.tolist(),
        schedule.start.tolist(),
        problem.duration.tolist(),
        strict=True,
    )
    return sum(Fraction(wait + start + duration, duration) for wait, start, duration in jobs)


def answer_of(kind, instance):
    """Return the total slowdown a dispatcher finds for a whole queue, and the solver's status."""
    dispatcher = kind(ENOUGH)
    problem = dispatcher.pose(view_of(*instance))
    answer = solve(problem, dispatcher.model(problem), ENOUGH, fixed=dispatcher.fixed)
    lists = problem.weights.solver_cost(problem.plan.start)
    better = problem.weights.solver_cost(answer.schedule.start) < lists
    return total_slowdown(problem, answer.schedule), answer.status, better


@pytest.mark.parametrize("seed", range(12))
def test_pcp19_with_nothing_of_the_list_finds_the_optimum_too(seed):
    """As published: starts in [t, eoh] and no hint."""
    instance = small(seed)
    dispatcher = PCP19(ENOUGH)
    problem = replace(dispatcher.pose(view_of(*instance)), bounded=False)
    model = dispatcher.model(problem)
    model.cp.clear_hints()
    best = search(model, ENOUGH, fixed=True)
    assert best.status == "optimal"
    assert total_slowdown(problem, best.schedule) == least_slowdown(*instance)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(20))
def test_pcp20_and_pcp19_find_the_optimum_of_small_instances(chunk):
    solved = 0
    for seed in range(10 * chunk, 10 * chunk + 10):
        instance = small(seed)
        least = least_slowdown(*instance)
        for kind in (PCP20, PCP19):
            total, status, better = answer_of(kind, instance)
            assert status in PROVED
            assert total == least, (kind.__name__, seed)
            solved += better
    # chunks in which the lists are all best would show nothing
    assert chunk != 0 or solved > 0


# One node of four cores. Counted, 2 + 2 + 1 + 1 + 1 units fit over time as they should; in
# positions, the two ones that start between the twos leave no two cores side by side.
SIDE_BY_SIDE = (
    [(4,)],
    [(0, (2,), 1), (0, (2,), 2)],
    [(1, (2,), 7), (1, (2,), 6), (1, (1,), 5), (1, (1,), 6), (1, (1,), 3)],
    [0, 0, 0, 0, 0],
)

# One node of five cores. The job of four cores can start at 3 beside the one of one core, if that
# sits at the edge: there must what ends at 2 have been, and not what ends at 3.
EDGE = ([(5,)], [(0, (2,), 2), (0, (1,), 3)], [(1, (1,), 3), (1, (2,), 3), (1, (4,), 3)], [0, 0, 0])


def test_contiguous_positions_can_cost_something():
    least = least_slowdown(*SIDE_BY_SIDE)
    assert answer_of(PCP19, SIDE_BY_SIDE)[0] == least
    total, status, _ = answer_of(PCP20, SIDE_BY_SIDE)
    assert status in PROVED
    assert least < total < least * Fraction(102, 100)


def test_what_runs_is_moved_on_its_node_while_it_is_little(monkeypatch):
    least = least_slowdown(*EDGE)
    assert answer_of(PCP20, EDGE)[0] == least
    monkeypatch.setattr(models, "MOVABLE", 0)
    assert answer_of(PCP20, EDGE)[0] > least


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "queued"), [("eurora", 30), ("kit", 10)])
def test_on_these_made_up_states_the_published_ratio_of_variables_holds(kind, queued):
    """Of models as built here; by the paper's formulas it does not hold on all states."""
    for seed in range(3):
        view = busy(kind, queued, seed)
        limits = SearchLimits(jobs=queued, units=10_000)
        new, old = (
            len(dispatcher.model(dispatcher.pose(view)).cp.proto.variables)
            for dispatcher in (PCP20(limits), PCP19(limits))
        )
        assert new < VARIABLES_BELOW * old


def test_pcp20_boxes_of_what_runs_fill_what_is_not_free():
    view = busy("eurora", 20, 1)
    problem = PCP20(SearchLimits(jobs=20)).pose(view)
    usable = models.usable_nodes(problem)
    first = models.first_positions(view.capacity)
    lists = models.running_boxes(problem, usable, list(range(4)))
    for resource, boxes in lists.items():
        covered = np.zeros(first[-1, resource], dtype=int)
        for position, size in zip(boxes.position, boxes.size, strict=True):
            covered[position : position + size] += 1
        assert covered.max() <= 1
        for node in np.flatnonzero(usable.opened == 0):
            taken = covered[first[node, resource] : first[node + 1, resource]].sum()
            assert taken == (view.capacity - view.free)[node, resource]
    shut = np.flatnonzero((usable.opened > 0) & (usable.opened <= problem.horizon))
    assert len(shut)
    for node in shut:  # before it opens all its cores are under boxes
        inside = (lists[0].position < first[node + 1, 0]) & (
            lists[0].position + lists[0].size > first[node, 0]
        )
        assert lists[0].end[inside].min() >= usable.opened[node]


def test_a_dropped_model_is_freed_at_once():
    dispatcher = PCP19()
    gc.collect()
    gc.disable()
    try:
        problem = dispatcher.pose(busy("eurora", 20, 1))
        model = dispatcher.model(problem)
        solve(problem, model, SearchLimits(work=0.001), fixed=True)
        alive = weakref.ref(model), weakref.ref(problem)
        del model, problem
        assert [reference() for reference in alive] == [None, None]
        assert not [kept for kept in gc.get_objects() if isinstance(kept, cp_model.CpModel)]
    finally:
        gc.enable()


def test_exact_places_every_unit_within_what_nodes_have():
    instance = small(3)
    view = view_of(*instance)
    best = exact(view)
    assert best.optimal
    assert best.objective == pytest.approx(float(least_slowdown(*instance)))
    assert best.bound == pytest.approx(best.objective)
    placed = [
        (node, demand, start, start + duration)
        for (_, demand, duration), nodes, start in zip(
            instance[2], best.nodes, best.start.tolist(), strict=True
        )
        for node in nodes.tolist()
    ]
    assert len(placed) == sum(units for units, _, _ in instance[2])
    placed += [(node, demand, 0, end) for node, demand, end in instance[1]]
    for _, _, moment, _ in placed:
        for node, amounts in enumerate(instance[0]):
            for resource, most in enumerate(amounts):
                held = [d[resource] for n, d, a, b in placed if n == node and a <= moment < b]
                assert sum(held) <= most


#: The second job asks for more than a node has.
NEVER = view_of([(4,), (2,)], [(0, (2,), 10)], [(1, (1,), 5), (2, (3,), 5)], [0, 0])


test_mistakes = mistakes_of(globals(), HCP19)
