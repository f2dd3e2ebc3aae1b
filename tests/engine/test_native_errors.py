"""What the native engine refuses, and by which name: it would go wrong without a word."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of
from plain_envs import JobSelection

from hpcgym import Workload
from hpcgym._engine import Features, Foresight, Layout, Model, Simulation, values_of
from hpcgym.scheduler.policies import operations as op

N, CAPACITY = 3, 8
JOBS = np.array([[0, 10, 20, 4, 0], [0, 10, 20, 8, 0], [5, 10, 20, 2, 5]])  # see JOBS of the engine
SCORES = np.array([[1.0, np.inf]] * N)
PREDICTED = np.full(N, 20)
USERS = np.zeros(N, np.int64)
SCORED = {"primary": 4}
#: All jobs are of one user, who may run two.
QUOTAS = {
    "counts": np.zeros((N, 1), np.int64),
    "asks": np.ones((N, 1), np.int64),
    "amounts": np.zeros(1, np.int64),
    "left": np.array([2]),
    "windows": np.zeros((0, 3), np.int64),
    "window_nodes": np.zeros((0, 0), np.uint8),
}


def model(rules: dict[str, int] | None = None, **more: Any) -> Model:
    """The jobs under these rules, but for what is given."""
    given = {"jobs": JOBS, "capacity": CAPACITY, "predicted": PREDICTED} | more
    return Model(given.pop("jobs"), given.pop("capacity"), rules or {}, **given)


def jobs_with(**columns: int) -> np.ndarray:
    """The jobs, of which the second has other values."""
    changed = JOBS.copy()
    for name, value in columns.items():
        changed[1, ["submit", "run", "requested", "processors"].index(name)] = value
    return changed


def changed(values: np.ndarray, value: float, column: int | None = None) -> np.ndarray:
    """An array whose second row has another value."""
    other = values.copy()
    other[1 if column is None else (1, column)] = value
    return other


def expression(*steps: tuple[int, float], **more: Any) -> dict[str, Any]:
    """What the engine is told of these steps: codes, and what those that push a value take."""
    codes, numbers = zip(*steps, strict=True)
    return {
        "codes": np.array(codes),
        "numbers": np.array(numbers, np.float64),
        "columns": np.ones((2, N)),
        "n_columns": np.array([2]),
        "times": JOBS[:, 2].copy(),
        "clock": np.zeros(1, np.int64),
    } | more


WAIT, AREA, FIRST = (op.WAIT, 0.0), (op.FEATURE, 5.0), (op.COLUMN, 0.0)
PLUS, CHOICE = (op.ADD, 0.0), (op.CHOICE, 0.0)


def test_steps_leave_one_value() -> None:
    steps = expression(WAIT, FIRST, AREA, CHOICE, WAIT, PLUS)
    assert values_of(steps, N, np.array([1]), np.array([7.0])) == [8.0]
    model(SCORED, scores=SCORES, expressions=[steps])


def test_what_orders_by_the_state_are_refused_for() -> None:
    free, user_waiting, last_run = (expression((op.STATE, k), WAIT, PLUS) for k in (0.0, 8.0, 9.0))
    with pytest.raises(ValueError, match=r"^codes: the state is known only in simulations$"):
        values_of(free, N, np.array([1]), np.array([7.0]))
    users = {"users": np.zeros(N, np.int64), "n_users": 1}
    for program, rules, more in (
        (user_waiting, {}, {}),
        (last_run, {}, users),
        (last_run, {"remembered": 1}, {}),
    ):
        with pytest.raises(ValueError, match=r"^(expressions: .* they use of users|users: )"):
            model(SCORED | rules, scores=SCORES, expressions=[program], **more)
    model(SCORED | {"remembered": 1}, scores=SCORES, expressions=[last_run], **users)


def beginning(**more: Any) -> dict[str, Any]:
    """A job that runs."""
    return {
        "time": 5,
        "due": False,
        "running": np.array([0]),
        "start": np.array([0]),
        "predicted": np.array([20, 20]),
        "promised": np.array([-1, -1]),
    } | more


#: What jobs that share nodes draw.
DRAWS = {
    "watts": np.array([3.0, 1.0]),
    "node_watts": np.ones(8),
    "cores": np.full(3, 2),
    "processors": np.array([4, 8, 2]),
}


def sharing(**more: Any) -> dict[str, Any]:
    """Four nodes of two parts, of which the jobs have one each, or both."""
    ones = np.ones((2, 2))
    return {
        "machine": np.array([4, 2, 0, 0, 0, 0, 0]),
        "weights": np.zeros(3),
        "speedup": ones,
        "alone": ones[0],
        "believed": ones,
        "believed_alone": ones[0],
        "rank": np.zeros((2, 3), np.int64),
        "good": np.zeros((2, 2), np.int64),
        "partner": np.zeros((2, 2), np.int64),
        "greatest": np.ones(1),
        "bandwidth": np.zeros(1),
        "nodes": np.array([4, 4, 2]),
        "placement": np.array([2, 1, 2]),
        "code": np.array([0, 1, 1]),
    } | more


@pytest.mark.parametrize(
    ("reason", "more"),
    [
        ("machine", {"machine": np.array([0, 2, 0, 0, 0, 0, 0])}),
        ("machine", {"machine": np.array([4, 2, 4, 0, 0, 0, 0])}),
        ("machine", {"machine": np.array([4, 2, 0, 0, 0, 0, -1])}),
        ("sharing", {"machine": np.array([5, 2, 0, 0, 0, 0, 0])}),
        ("jobs", {"nodes": np.array([4, 4, 1])}),
        ("nodes", {"nodes": np.array([5, 4, 2])}),
        ("placement", {"placement": np.array([2, 3, 2])}),
        ("code", {"code": np.array([0, 2, 1])}),
        ("speedup", {"speedup": np.array([[1.0, 0.0], [1.0, 1.0]])}),
        ("believed", {"believed": np.array([[1.0, np.nan], [1.0, 1.0]])}),
        ("rank", {"rank": np.full((2, 3), 3)}),
        ("good", {"good": np.zeros((2, 3), np.int64)}),
        ("watts", {"watts": np.ones(1)}),
        ("node_watts", DRAWS | {"node_watts": np.ones(7)}),
        ("cores", DRAWS | {"cores": np.ones(2, np.int64)}),
        ("processors", DRAWS | {"processors": np.ones(2, np.int64)}),
    ],
)
def test_what_jobs_that_share_nodes_are_refused_for(reason: str, more: dict[str, Any]) -> None:
    assert Simulation(model(sharing=sharing(**DRAWS))).run() > 0
    with pytest.raises(ValueError, match=rf"^{reason}\b"):
        model(sharing=sharing(**more))


def test_a_job_that_others_have_to_end_before_is_not_selected() -> None:
    columns = {"job_number": [1, 2], "submit_time": [0, 0], "run_time": [5, 5]}
    columns |= {"requested_time": [5, 5], "requested_processors": [1, 1], "preceding_job": [-1, 1]}
    jobs = Workload.from_columns(columns, processors=2)
    env = JobSelection(jobs, episodes="whole", window=2, dependencies="after")
    env.reset()
    with pytest.raises(ValueError, match=r"^select: the job does not wait"):
        env.simulations.simulation(0).select(1)


def on_nodes(**rules: int) -> Simulation:
    """The jobs on eight nodes of a core each, before any has come."""
    ones = np.ones(N, np.int64)
    needs = np.column_stack([JOBS[:, 3], ones, ones])
    nodes = Layout(needs, np.ones((CAPACITY, 1), np.int64), 0)
    return Simulation(model(rules, nodes=nodes))


def ints(*values: int) -> np.ndarray:
    """An array of whole numbers."""
    return np.array(values, np.int64)


def test_what_a_launch_is_refused_for() -> None:
    simulation = on_nodes()
    with pytest.raises(ValueError, match="starts are not asked for"):
        simulation.launch(ints(), ints(0), ints(), ints())
    simulation = on_nodes(starts=1)
    simulation.run()
    assert simulation.asked == "starts"
    wide = int(JOBS[0, 3])
    with pytest.raises(ValueError, match="pass_time: must be before the next event"):
        simulation.pass_time(simulation.time)
    for row, first, node, units in (
        (N - 1, ints(0, 0), ints(), ints()),  # it has not come
        (0, ints(0, 1), ints(), ints()),
        (0, ints(0, 1), ints(CAPACITY), ints(wide)),
        (0, ints(0, 2), ints(1, 0), ints(1, 1)),
        (0, ints(0, 1), ints(0), ints(wide + 1)),
    ):
        with pytest.raises(ValueError, match=r"^launch: "):
            simulation.launch(ints(row), first, node, units)
    assert simulation.launch(ints(0), ints(0, wide), np.arange(wide), np.ones(wide, np.int64)) == 1


def limited(**more: Any) -> dict[str, Any]:
    """A machine of eight nodes under a cap and a budget, but for what is given."""
    powers = ("idle_mw", "rest_mw", "off_mw", "shutdown_mw", "boot_mw", "rise_mw")
    given = dict.fromkeys(powers, 5) | {"n_nodes": CAPACITY, "off_time": 1, "on_time": 1}
    given |= {"timeout": 60, "lowest": 0, "highest": 1, "rule": 0, "contiguous": 0, "limited": 1}
    given |= {"controlled": 0}
    given |= {"busy_mw": [7, 9], "drawn_mw": [7, 9], "slowdown": [2_000_000, 1_000_000]}
    given |= {"kind": [0] * N, "measured_mw": [], "size": [2, 4], "component_mw": [1, 1]}
    given |= {"caps": [0, 90, -1, 70, 0, 2], "budgets": [0, 90, 9000, 100, 30, 0, 0, 1]}
    return {
        name: np.atleast_1d(np.array(value, np.int64)) for name, value in (given | more).items()
    }


@pytest.mark.parametrize(
    ("reason", "more"),
    [
        *(("n_nodes", {"n_nodes": 9}), ("kind", {"kind": [0, 1, 0]}), ("kind", {"kind": [0]})),
        *(
            ("busy_mw", {"busy_mw": [9]}),
            ("busy_mw", {"busy_mw": []}),
            ("mw", {"busy_mw": [7, -1]}),
        ),
        *(("mw", {"idle_mw": -1}), ("mw", {"rise_mw": 2**62}), ("mw", {"component_mw": [1, -1]})),
        *(("lowest", {"lowest": -1}), ("lowest", {"lowest": 2}), ("lowest", {"highest": 2})),
        *(("off_time", {"off_time": -1}), ("off_time", {"on_time": -1}), ("rule", {"rule": 4})),
        *(
            ("off_time", {"timeout": -1}),
            ("slowdown", {"slowdown": [0, 1]}),
            ("rule", {"rule": -1}),
        ),
        *(
            ("measured_mw", {"measured_mw": [7]}),
            ("size", {"size": [2]}),
            ("size", {"size": [2, 3]}),
        ),
        *(("size", {"size": [0, 4]}), ("caps", {"caps": [9, 9, -1, 70, 0, 2]})),
        *(("caps", {"caps": [0, 90, -1, -1, 0, 2]}), ("caps", {"caps": [0, 90, -1, 70, 0, 9]})),
        *(("caps", {"caps": [0, 90, -1]}), ("budgets", {"budgets": [0, 90, 900]})),
        ("budgets", {"budgets": [9, 9, 900, 10, 30, 0, 0, 1]}),
        ("budgets", {"budgets": [0, 90, -1, 10, 30, 0, 0, 1]}),
        ("budgets", {"budgets": [0, 90, 900, 10, 0, 0, 0, 1]}),
        ("idle_mw", {"idle_mw": [5, 5]}),
    ],
)
def test_what_a_machine_under_limits_is_refused_for(reason: str, more: dict[str, Any]) -> None:
    simulation = Simulation(model(limited=limited()))
    simulation.run()
    assert simulation.schedule()["start"].tolist() == [0, 91, 5]
    with pytest.raises(ValueError, match=f"^{reason}"):
        model(limited=limited(**more))


def many_jobs(n: int) -> Model:
    """Jobs that take some tenths of a second."""
    jobs = np.zeros((n, 5), np.int64)
    jobs[:, 1:4] = 1000, 1000, 3
    return Model(jobs, CAPACITY, SCORED, predicted=np.full(n, 1000), scores=np.full((n, 2), 1.0))


def test_two_threads_in_one_simulation() -> None:
    """The first goes on undisturbed, and the second is told."""
    simulation, alone = (Simulation(many_jobs(20_000)) for _ in range(2))

    def run() -> None:
        done = 0
        while not done:  # the other one may be in it just then
            with contextlib.suppress(RuntimeError):
                done = simulation.run()

    runs = threading.Thread(target=run)
    runs.start()
    refusals = set()
    while runs.is_alive():
        try:
            simulation.start(0)
        except RuntimeError as error:
            refusals.add(str(error))
    runs.join()
    alone.run()
    assert refusals == {"in use by another thread"}
    assert simulation.schedule()["start"].tolist() == alone.schedule()["start"].tolist()


def features(n: int, formulas: Any = (0,)) -> Features:
    """Features of jobs that are not those of the model."""
    table = np.zeros((n, 1)), np.array(formulas, np.int64), np.array([0]), np.zeros(0)
    return Features(*table, np.full(n, 20))


def began() -> Simulation:
    """A simulation that has begun with a job that runs."""
    simulation = Simulation(model())
    simulation.begin(**beginning())
    return simulation


def ended(**rules: int) -> Simulation:
    """A simulation that has come to its end, or to a question."""
    simulation = Simulation(model(rules))
    simulation.run()
    return simulation


def look_ahead() -> None:
    """Ask for look-ahead of two jobs, where there are three."""
    counts = np.ones((2, 1)), np.zeros((2, 3), np.int64)
    foresight = Foresight(features(2), *counts, estimator=2, tau=10.0)
    Simulation(model(SCORED | {"asks": 1}, scores=SCORES)).look_ahead(foresight)


def refusals() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls that are refused, and why."""
    first_row, scores_and_keys = np.array([0]), {"scores": SCORES, "keys": np.zeros(N, np.int64)}
    orders = {**scores_and_keys, "expressions": [expression(WAIT)]}
    yield "expressions: at most two", partial(model, SCORED, **orders | {"expressions": [{}] * 3})
    # under another order what an expression says of a job would not be compared as it is meant
    for primary in (1, 5, 0):
        yield "expressions: need an order by scores", partial(model, {"primary": primary}, **orders)
    yield "begin: the simulation has begun already", lambda: began().begin(**beginning())
    # environments simulate jobs of several episodes
    yield "several: ", lambda: Simulation(model({}, jobs=JOBS[::-1].copy(), several=True))
    new = Simulation(model())
    yield ".*not asked for", partial(new.predict, 3.0)
    yield ".*not asked for", partial(new.renew, first_row, np.array([1.0]))
    yield ".*not asked for", partial(new.order, first_row, np.array([1.0]))
    for row in (-1, N):
        yield ".*no such job", partial(new.start, row)
    for rules in ({"depth": 2}, {"passes": 1}, {"managed": 1}, {"keeps": 1}):
        yield "sharing: not with these rules", partial(model, rules, sharing=sharing())
    later = {"predicted": changed(PREDICTED, 5), "sharing": sharing()}
    yield "sharing: predictions must not be below run times", partial(model, **later)
    yield "believe: only for shared nodes", partial(new.believe, sharing())
    yield "spells: only for shared nodes", new.spells
    yield "neighbours: only for shared nodes", new.neighbours
    yield "select: beside is for shared nodes", lambda: ended(primary=3).select(0, 0)
    yield ".*no such job", lambda: ended(primary=3).select(-1)
    for rules in ({"passes": 1}, {"depth": 2}, {"tested": 5, "every": 60}, {"managed": 1}):
        yield "limited: not with these rules", partial(model, rules, limited=limited())
    yield "look_ahead: needs a pool, and the jobs", look_ahead
    for some in ([], [11], [-1], [0, 1]):
        yield "features: .*formula", partial(features, 2, some)


@pytest.mark.parametrize(("reason", "call"), [*refusals()])
def test_what_is_refused_as_it_is_asked_for(reason: str, call: Any) -> None:
    with pytest.raises((ValueError, IndexError), match=f"^{reason}"):
        call()


test_mistakes = mistakes_of(globals(), errors=ValueError)
