"""What the dispatchers start: it fits, it repeats, and it is never worse than the lists."""

from dataclasses import replace

import numpy as np
import pytest
from instances import NOW, busy, small, view_of
from mistakes import mistakes_of

pytest.importorskip("ortools")

from ortools.sat.python import cp_model

from hpcgym.baselines.cp import dispatchers
from hpcgym.baselines.cp import problem as objective
from hpcgym.baselines.cp.dispatcher import SearchLimits, parameters
from hpcgym.baselines.cp.dispatchers import CPH, HCP19, PCP19, PCP20, PureCP
from hpcgym.baselines.cp.problem import earliest_starts, latest_starts, pose, running_of
from hpcgym.baselines.dispatchers import chooses_nodes, prb, sdprb
from hpcgym.scheduler.allocations import WORST_FIT
from hpcgym.scheduler.dispatchers import BEST_FIT
from hpcgym.scheduler.dispatchers.view import PassView

KINDS = {
    **{f"cph-{k}": lambda limits=None, k=k: CPH(k, limits) for k in range(4)},
    **{f"cp-{k}": lambda limits=None, k=k: PureCP(k, limits) for k in range(4)},
    "hcp19": HCP19,
    "pcp19": PCP19,
    "pcp20": PCP20,
}
VIEWS = [view for view in (busy("eurora", 25, seed) for seed in range(9)) if view.fits().any()]
VIEWS = VIEWS[:3]


def left_after(view, starts):
    """Return what is free after these starts; each has a node for each of its units."""
    free = view.free.copy()
    for place, nodes in starts:
        assert len(nodes) == view.units[place]
        np.subtract.at(free, nodes, view.per_unit[place])
    return free


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_what_starts_fits_and_repeats(name):
    for view in VIEWS:
        first, second = KINDS[name](), KINDS[name]()
        starts, again = first(view), second(view)
        assert first.name == name
        assert [place for place, _ in starts] == [place for place, _ in again]
        assert all((a == b).all() for (_, a), (_, b) in zip(starts, again, strict=True))
        assert (left_after(view, starts) >= 0).all()
        assert len({place for place, _ in starts}) == len(starts)


@pytest.mark.parametrize("name", KINDS)
def test_objective_is_never_above_the_lists(name):
    for view in VIEWS:
        dispatcher = KINDS[name](SearchLimits(jobs=8, work=0.01))
        dispatcher(view)
        (entry,) = dispatcher.log
        assert entry["bound"] <= entry["objective"] <= entry["heuristic"] + 1e-9
        assert entry["considered"] == 8
        assert entry["queued"] == 25
        assert 0.0 <= entry["gap"] <= 1.0


@pytest.mark.parametrize("name", KINDS)
def test_without_work_the_lists_decide(name):
    view = VIEWS[0]
    dispatcher = KINDS[name](SearchLimits(work=0.0))
    problem = dispatcher.pose(view)
    starts = dispatcher(view)
    (entry,) = dispatcher.log
    assert entry["status"] in ("unknown", "feasible")
    assert entry["objective"] == problem.weights.cost(problem.plan.start)
    planned = problem.places[problem.plan.start == 0].tolist()
    assert [place for place, _ in starts][: len(planned)] == planned


def test_nothing_starts_where_nothing_fits():
    view = view_of([(2,)], [(0, (1,), 5)], [(1, (2,), 3)], [0])
    dispatcher = PCP20()
    assert dispatcher(view) == []
    assert dispatcher.log == []


def test_lists_at_the_bound_need_no_model():
    view = view_of([(4,)], [], [(1, (2,), 3), (1, (1,), 9)], [5, 0])
    dispatcher = PCP20()
    assert sorted(place for place, _ in dispatcher(view)) == [0, 1]
    (entry,) = dispatcher.log
    assert entry["status"] == "plan is optimal"
    assert entry["variables"] == 0
    assert entry["gap"] == 0.0


def test_a_solver_beats_the_lists_where_waiting_pays():
    # the long job has waited most and fits now; the three short ones are better first
    view = view_of([(2,)], [(0, (1,), 1)], [(1, (1,), 60), (1, (2,), 2), (1, (2,), 2)], [600, 2, 2])
    dispatcher = PCP20()
    starts = dispatcher(view)
    (entry,) = dispatcher.log
    assert entry["status"] == "optimal"
    assert entry["objective"] < entry["heuristic"]
    assert starts == []


def test_best_fit_postpones_a_job_that_the_pool_admits():
    # the pool has two free cores, but on two nodes
    view = view_of([(2,), (2,)], [(0, (1,), 9), (1, (1,), 9)], [(1, (2,), 4), (1, (1,), 8)], [9, 9])
    dispatcher = HCP19()
    starts = dispatcher(view)
    (entry,) = dispatcher.log
    assert entry["postponed"] + entry["started"] >= 1
    assert (left_after(view, starts) >= 0).all()
    assert 0 not in [place for place, _ in starts]


def test_hcp19_fills_the_fullest_node():
    view = view_of(
        [(4,), (4,)], [(1, (2,), 9)], [(1, (2,), 4), (1, (3,), 4), (1, (3,), 5)], [9, 0, 0]
    )
    starts = dict(HCP19()(view))
    assert starts[0].tolist() == [1]
    assert starts[1].tolist() == [0]


def test_jobs_beyond_the_window_start_beside_it():
    view = busy("eurora", 60, 0, load=0.4)
    dispatcher = PCP20(SearchLimits(jobs=3))
    starts = dispatcher(view)
    assert len(starts) > 3
    free = left_after(view, starts)
    started = {place for place, _ in starts}
    assert (free >= 0).all()
    order = [int(place) for place in sdprb(view) if int(place) not in started]
    outside = set(dispatcher.pose(view).rest.tolist())
    for place in outside.intersection(order):  # what stayed does not fit any more
        held = free[:, view.per_unit[place] > 0] // view.per_unit[place][view.per_unit[place] > 0]
        assert held.min(axis=1).sum() < view.units[place]


def test_an_idle_machine_never_stays_idle():
    for seed in range(20):
        nodes, _, jobs, waits = small(seed)
        view = view_of(nodes, [], jobs, waits)
        for kind in (PCP20, HCP19, PCP19):
            assert kind(SearchLimits(work=0.001))(view)


def test_window_is_a_prefix_of_the_order():
    view = view_of(
        [(9,)], [], [(4, (1,), 1), (6, (1,), 1), (2, (1,), 1), (3, (1,), 1)], [4, 3, 2, 1]
    )
    order = np.arange(4)
    for jobs, units, considered in ((4, 7, 1), (4, 12, 3), (2, 99, 2), (4, 99, 4)):
        problem = pose(view, order, objective.slowdown(view), jobs=jobs, units=units)
        assert problem.places.tolist() == list(range(considered))
        assert problem.rest.tolist() == list(range(considered, 4))
    first = pose(view, order[::-1][2:], objective.slowdown(view), jobs=4, units=5)
    assert first.places.tolist() == [1]  # the first is taken whatever its size


def strategies(model):
    """Return of each strategy of a model what it decides, which of it first and to which value."""
    return [
        (
            [variable for expression in strategy.exprs for variable in expression.vars],
            strategy.variable_selection_strategy,
            strategy.domain_reduction_strategy,
        )
        for strategy in model.cp.proto.search_strategy
    ]


def indices(variables):
    return [variable.index for variable in variables]


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("cp-0", "cp-2", "pcp20")])
def test_the_search_takes_the_job_that_can_start_first_then_the_priority(name):
    for view in VIEWS:
        dispatcher = KINDS[name]()
        problem = dispatcher.pose(view)
        model = dispatcher.model(problem)
        assert parameters(dispatcher.limits, fixed=dispatcher.fixed)["search_branching"] == (
            cp_model.FIXED_SEARCH
        )
        # in the order of the problem's jobs, which is that of their priority
        assert len(model.starts) == len(problem.places) > 1
        assert strategies(model) == [
            (indices(model.starts), cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)
        ]


def test_the_search_of_pcp20_takes_each_start_and_then_its_positions(monkeypatch):
    allocated = []

    def noting(model, units):
        allocated.append(
            [
                [v for unit in of_job for v in unit.variables.values()]
                or [unit.node for unit in of_job]
                for of_job in units
            ]
        )
        search(model, units)

    search = dispatchers._search
    monkeypatch.setattr(dispatchers, "_search", noting)
    dispatcher = PCP20()
    assert dispatcher.fixed
    for view in VIEWS:
        problem = dispatcher.pose(view)
        model = dispatcher.model(problem)
        expected = []
        for start, of_job in zip(model.starts, allocated.pop(), strict=True):
            expected += [
                ([start.index], cp_model.CHOOSE_FIRST, cp_model.SELECT_MIN_VALUE),
                (indices(of_job), cp_model.CHOOSE_MIN_DOMAIN_SIZE, cp_model.SELECT_MAX_VALUE),
            ]
        assert len(expected) == 2 * len(problem.places)
        assert strategies(model) == expected
        decided = [variable for variables, _, _ in expected for variable in variables]
        assert len(set(decided)) == len(decided)


@pytest.mark.parametrize("number", [0, 2])
def test_pure_cp_0_and_2_leave_the_search_to_the_solver(number):
    dispatcher = PureCP(number)
    assert not dispatcher.fixed
    assert not dispatcher.model(dispatcher.pose(VIEWS[0])).cp.proto.search_strategy


def test_pools_may_start_what_no_node_holds():
    # two cores are free, one on each node, until 10 s
    view = view_of(
        [(2,), (2,)], [(0, (1,), 10), (1, (1,), 10)], [(1, (2,), 4), (1, (1,), 8)], [9, 9]
    )
    for kind in (HCP19, lambda: CPH(3)):
        dispatcher = kind()
        assert dispatcher.pose(view).earliest.tolist() == [0, 0]
        assert dispatcher(view) == []
        (entry,) = dispatcher.log
        assert entry["status"] == "optimal"
        assert entry["postponed"] == 1
    assert PCP19().pose(view).earliest.tolist() == [10, 0]


@pytest.mark.parametrize("kind", [PCP20, PCP19, HCP19])
def test_jobs_beyond_the_window_leave_planned_starts_possible(kind):
    jobs = [(1, (4,), 10), (1, (1,), 1000), (1, (1,), 5)]
    view = view_of([(4,)], [(0, (2,), 10)], jobs, [1000, 0, 0])
    starts = kind(SearchLimits(jobs=1))(view)
    assert [place for place, _ in starts] == [2]


def test_jobs_beyond_the_window_run_on_what_stays_free():
    # after 10 s the first job needs all of one node; the others run beside it, on the second
    jobs = [(1, (4,), 10), (1, (1,), 1000), (1, (1,), 1000), (1, (2,), 1000)]
    view = view_of([(4,), (2,)], [(0, (2,), 10)], jobs, [1000, 0, 0, 0])
    starts = dict(PCP20(SearchLimits(jobs=1))(view))
    assert {place: nodes.tolist() for place, nodes in starts.items()} == {1: [1], 2: [1]}


def test_a_job_of_no_weight_can_start_up_to_the_horizon():
    view = view_of([(1,)], [(0, (1,), 5)], [(1, (1,), 3), (1, (1,), 7)], [4, 0])
    problem = PCP20().pose(view)
    assert problem.horizon == 15
    assert (problem.latest <= 15).all()
    weights = replace(problem.weights, whole=np.array([1, 0]))
    light = replace(problem, weights=weights)
    assert light.latest.tolist() == [5, 15]
    start = problem.plan.start
    assert (latest_starts(problem.weights, start, start, problem.horizon) >= start).all()


def test_begin_begins_a_log():
    dispatcher = PCP20()
    dispatcher(VIEWS[0])
    before = dispatcher.log
    dispatcher.begin()
    assert dispatcher.log == []
    assert len(before) == 1


def test_the_view_places_jobs_by_its_allocation():
    view = view_of([(4,), (3,)], [], [(1, (2,), 1), (2, (3,), 1), (1, (3,), 1)], [0, 0, 0])
    placed = [(place, nodes.tolist()) for place, nodes in view.placed([0, 1, 2])]
    assert placed == [(0, [0]), (2, [1])]
    placed = [(p, n.tolist()) for p, n in replace(view, allocation=BEST_FIT).placed([2, 0])]
    assert placed == [(2, [1]), (0, [0])]
    placed = [(p, n.tolist()) for p, n in replace(view, allocation=WORST_FIT).placed([0, 2])]
    assert placed == [(0, [0]), (2, [1])]
    assert view.placed([1], np.array([[4], [2]])) == []
    assert view.placed([]) == []


def test_earliest_starts_are_those_of_a_job_alone():
    for view in [busy("eurora", 20, seed) for seed in range(4)]:
        earliest = earliest_starts(view.free, running_of(view), view.units, view.per_unit)
        for place in range(len(view.units)):
            alone = PassView.of(
                view.time,
                view.resources,
                view.capacity,
                queue={
                    "submit": view.submit[[place]],
                    "duration": view.duration[[place]],
                    "units": view.units[[place]],
                    "per_unit": view.per_unit[[place]],
                },
                running={
                    name: getattr(view, f"running_{name}")
                    for name in ("start", "end", "per_unit", "first", "node", "units")
                },
            )
            assert earliest[place] == alone.plan([0]).start[0] - view.time


@pytest.mark.parametrize(
    ("number", "order", "slow"), [(0, prb, 0), (1, sdprb, 0), (2, prb, 1), (3, sdprb, 1)]
)
def test_variants_weigh_by_waits_or_slowdowns(number, order, slow):
    expected = np.array([3600.0, 1800.0, 900.0])
    view = PassView.of(
        NOW,
        ("core",),
        [[2]],
        queue={
            "submit": [0, 500, 990],
            "duration": [10, 300, 7],
            "units": [1, 1, 1],
            "per_unit": [[2], [2], [2]],
            "expected_wait": expected,
        },
    )
    for dispatcher, factor in ((CPH(number), 3600.0), (PureCP(number), 1.0)):
        problem = dispatcher.pose(view)
        assert problem.places.tolist() == order(view).tolist()
        starts = np.array([10, 20, 30])
        waits = view.wait[problem.places] + starts
        if slow:
            cost = (waits / problem.duration + 1).sum()
        else:
            cost = (factor * waits / expected[problem.places]).sum()
        assert problem.weights.cost(starts) == pytest.approx(cost)
        in_solver = problem.weights.as_cost(problem.weights.solver_cost(starts))
        assert in_solver == pytest.approx(cost)


def test_whole_weights_are_exact_where_they_can_be():
    view = view_of([(1,)], [], [(1, (1,), d) for d in (6, 10, 15)], [0, 0, 0])
    weights = objective.slowdown(view).weigh(np.arange(3), 1000)
    assert weights.scale == 30
    assert weights.whole.tolist() == [5, 3, 2]


def test_whole_weights_keep_order_where_they_cannot_be_exact():
    durations = [1, 86_399, 86_400, 99_991, 65_537, 31_337]
    view = view_of([(1,)], [], [(1, (1,), d) for d in durations], [0] * 6)
    horizon = 50 * 86_400
    weights = objective.slowdown(view).weigh(np.arange(6), horizon)
    assert (weights.whole * horizon).sum() <= objective.LARGEST
    exact = weights.scale / np.array(durations)
    assert np.abs(weights.whole / exact - 1).max() < 1e-4
    assert weights.whole[1] >= weights.whole[2] > weights.whole[3]


def test_limits_are_plain_numbers():
    assert SearchLimits(jobs=np.int64(3), work=np.float64(0)) == SearchLimits(jobs=3, work=0.0)
    assert repr(PCP20(SearchLimits(jobs=3))) == "pcp20(jobs=3, units=400, work=0.03, seed=0)"


@pytest.mark.parametrize("name", KINDS)
def test_names_tell_who_chooses_nodes(name):
    assert chooses_nodes(name) == chooses_nodes(KINDS[name]())
    view = replace(VIEWS[0], allocation=WORST_FIT)
    fullest = replace(VIEWS[0], allocation=BEST_FIT)
    problems = [KINDS[name]().pose(view_so) for view_so in (view, fullest)]
    nodes = [[nodes_of_job.tolist() for nodes_of_job in problem.planned] for problem in problems]
    assert (nodes[0] == nodes[1]) == chooses_nodes(name)


test_mistakes = mistakes_of(globals())
