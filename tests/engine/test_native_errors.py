"""What the native engine refuses, and by which name: it would go wrong without a word."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
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
    "rates": np.full(1, -1),
    "of_cluster": np.zeros(1, np.int64),
    "step": np.ones(1, np.int64),
    "left": np.array([2]),
    "budgets": np.zeros(1, np.int64),
    "half_lives": np.zeros(1, np.int64),
    "period": np.array([300]),
    "used": np.zeros(0),
    "used_at": np.zeros(1, np.int64),
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


def test_what_a_model_knows_of_users_orders_by_the_state_may_use() -> None:
    by_state = expression((op.STATE, 9.0), WAIT, PLUS)
    users = {"users": np.zeros(N, np.int64), "n_users": 1}
    model(SCORED | {"remembered": 1}, scores=SCORES, expressions=[by_state], **users)


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


def test_jobs_that_share_nodes_may_draw_power() -> None:
    assert Simulation(model(sharing=sharing(**DRAWS))).run() > 0


def with_a_chain() -> Any:
    """An environment of two jobs, of which the second waits for the end of the first."""
    columns = {"job_number": [1, 2], "submit_time": [0, 0], "run_time": [5, 5]}
    columns |= {"requested_time": [5, 5], "requested_processors": [1, 1], "preceding_job": [-1, 1]}
    jobs = Workload.from_columns(columns, processors=2)
    env = JobSelection(jobs, episodes="whole", window=2, dependencies="after")
    env.reset()
    return env


#: Eight nodes of a core each.
NODES = {
    "needs": np.array([[4, 1, 1], [8, 1, 1], [2, 1, 1]]),
    "capacity": np.ones((CAPACITY, 1), np.int64),
    "allocation": 0,
}


def on_nodes(**rules: int) -> Simulation:
    """The jobs on eight nodes of a core each, before any has come."""
    ones = np.ones(N, np.int64)
    needs = np.column_stack([JOBS[:, 3], ones, ones])
    nodes = Layout(needs, np.ones((CAPACITY, 1), np.int64), 0)
    return Simulation(model(rules, nodes=nodes))


def ints(*values: int) -> np.ndarray:
    """An array of whole numbers."""
    return np.array(values, np.int64)


#: How many processors the first job has.
WIDE = int(JOBS[0, 3])


def asked() -> Simulation:
    """The jobs on nodes, where it is asked what starts."""
    simulation = on_nodes(starts=1)
    simulation.run()
    return simulation


def test_a_launch() -> None:
    assert asked().asked == "starts"
    cells = ints(0, WIDE), np.arange(WIDE), np.ones(WIDE, np.int64)
    assert asked().launch(ints(0), *cells) == 1


def limited(**more: Any) -> dict[str, Any]:
    """A machine of eight nodes under a cap and a budget, but for what is given."""
    powers = ("idle_mw", "rest_mw", "off_mw", "shutdown_mw", "boot_mw", "rise_mw")
    given = dict.fromkeys(powers, 5) | {"n_nodes": CAPACITY, "off_time": 1, "on_time": 1}
    given |= {"timeout": 60, "lowest": 0, "highest": 1, "rule": 0, "contiguous": 0, "limited": 1}
    given |= {"controlled": 0, "n_processors": CAPACITY, "processors": [1] * N}
    given |= {"busy_mw": [7, 9], "drawn_mw": [7, 9], "slowdown": [2_000_000, 1_000_000]}
    given |= {"kind": [0] * N, "measured_mw": [], "size": [2, 4], "component_mw": [1, 1]}
    given |= {"caps": [0, 90, -1, 70, 0, 2], "budgets": [0, 90, 9000, 100, 30, 0, 0, 1]}
    return {
        name: np.atleast_1d(np.array(value, np.int64)) for name, value in (given | more).items()
    }


def test_a_machine_under_limits() -> None:
    simulation = Simulation(model(limited=limited()))
    simulation.run()
    assert simulation.schedule()["start"].tolist() == [0, 91, 5]


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


def two_of_three() -> Foresight:
    """What look-ahead is told of two jobs, where there are three."""
    counts = np.ones((2, 1)), np.zeros((2, 3), np.int64)
    return Foresight(features(2), *counts, estimator=2, tau=10.0)


def ordered(primary: int, times: int = 1) -> Model:
    """The jobs in an order by expressions."""
    columns = {"scores": SCORES, "keys": np.zeros(N, np.int64)}
    return model({"primary": primary}, **columns, expressions=[expression(WAIT)] * times)


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


test_mistakes = mistakes_of(globals(), errors=(ValueError, IndexError))
