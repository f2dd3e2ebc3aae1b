"""Environments of shared nodes on the native engine, and what their simulations are asked for."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import SLOW, go_on, play, random_acts, whole
from pairs import GIVEN, OPTIONS, SIXTEEN, with_files, workloads
from test_native_environments import on_both
from twins import assert_same_sharing, assert_twins, same

from hpcgym._engine import Model, Simulation
from hpcgym.cluster import Cluster, NodeGroup, NodePower
from hpcgym.engine.machines.corun.rows import row_of
from hpcgym.engine.machines.corun.state import PART
from hpcgym.envs import CoSchedule, CoScheduleVector
from hpcgym.simulation.native import TAKEN
from hpcgym.simulation.native_corun import told_of_rows

#: Nodes that draw power whatever runs there, and others that draw it by core.
POWERED = Cluster(
    groups=(
        NodeGroup("old", 2, {"core": 8}, NodePower(90.3, (350.7,), off_w=10.0), sockets=2),
        NodeGroup("new", 2, {"core": 8}, sockets=2),
    )
)
BY_JOB = ("nodes", "placement", "code", "processors", "io_demand")
REWARDS = st.sampled_from(
    [
        *("bsld", "wait", "energy", "throughput", "log_bsld", "log_wait"),
        {"bsld": 1.0, "energy": 0.5, "throughput": 2.0},
        ("bsld", "energy", "log_wait"),
        lambda view: float(view.wait_s.sum() - view.run_time_s.sum() + view.energy_j + view.free),
    ]
)


def of_kernels(arguments: dict[str, Any]) -> CoSchedule:
    """Return an environment that the kernels serve."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HPCGYM_ENGINE", "numba")
        return CoSchedule(**arguments)


def simulation_of(env: CoSchedule) -> Simulation:
    """Return a native simulation of the jobs of the present episode, before its first event."""
    simulations = env.simulations
    table, sim = simulations.table, simulations.table.sim[0]
    first, n = simulations.rows(0)
    rows = slice(first, first + n)
    told = told_of_rows(simulations.machines.parts.corun, table.watts, table.node_watts)
    told |= {name: told[name][rows].copy() for name in BY_JOB if name in told}
    jobs = table.jobs[rows].view(np.int64).reshape(n, -1).copy()
    ticks, predicted = int(table.settings[0].ticks), table.predicted[rows].copy()
    rules = {name: int(sim[name]) for name in TAKEN} | {"asks": 0}
    return Simulation(
        Model(jobs, int(sim.free), rules, predicted=predicted, ticks=ticks, sharing=told)
    )


def assert_twin(env: CoSchedule, native: Simulation) -> None:
    """Compare all that both know at a question, or at the end."""
    simulations: Any = env.simulations
    batch, table, rows = simulations.batch, simulations.table, simulations.machines.parts.corun
    first, n = simulations.rows(0)
    of_row = {name: getattr(batch, name)[0] for name in ("sim", "blocks", "entries")}
    arrays: Any = SimpleNamespace(
        jobs=table.jobs[first : first + n], progress=batch.progress[0, :n], **of_row
    )
    machine = row_of(rows, 0, n)
    if rows.io is not None:
        machine = machine._replace(io=SimpleNamespace(counts=rows.io.counts[0]))
    assert_twins(arrays, native)
    assert_same_sharing(SimpleNamespace(arrays=arrays, machine=machine), native)
    found, own = native.neighbours(), machine.scalars[0]
    listed = found["job"][: env.neighbours].tolist()
    shown = simulations.machines.listed(0).tolist()
    assert listed + [-1] * (len(shown) - len(listed)) == shown
    assert len(found["job"]) == rows.books[0, 3]
    for job, room in zip(found["job"], found["room"], strict=True):
        task = machine.tasks[job]
        nodes = machine.cells[task["first"] : task["first"] + task["nodes"]]
        assert task["placement"] == PART
        assert (machine.free[nodes] > 0).sum() == room > 0
    assert found["nodes"].tolist() == [own.n_idle, own.n_open]


def assert_same_episode(env: CoSchedule, seed: int) -> None:
    """Select at random with both; compare after each step."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    table, native, over = env.simulations.table, simulation_of(env), False
    still = table.still_w[0]
    if not len(table.node_watts):
        still = table.watts[1] * table.settings[0].processors
    before = native.time
    while True:
        native.run()
        native = native.copy()
        assert_twin(env, native)
        elapsed = (native.time - before) / table.settings[0].ticks
        before, joules = native.time, native.take_joules() + elapsed * still
        if "reward_terms" in info:
            assert same(np.array([info["reward_terms"]["energy_j"]]), np.array([joules]))
        assert native.asked == ("" if over else "job")
        if over:
            break
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        job = beside = -1
        if action < len(info["action_mask"]) - 1:
            i, k = divmod(action, env.neighbours + 1)
            job, beside = info["window"][i], info["neighbours"][k - 1] if k else -1
        native.select(int(job), int(beside))
        _, _, over, _, info = env.step(action)


@settings(SLOW, max_examples=60)
@given(
    workload=workloads(),
    options=OPTIONS,
    powered=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_each_question(workload: Any, options: Any, powered: bool, seed: int) -> None:
    if powered:
        options = options | {"cluster": POWERED, "reward": "energy"}
    assert_same_episode(of_kernels(whole(workload, **GIVEN, **options)), seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("files", [False, True])
def test_extracts_of_many_jobs_and_files(files: bool, seed: int) -> None:
    options = with_files() if files else {"cluster": "8x2x12"}
    partners = ["best", "fill", "first"][seed]
    options |= {"workload": SIXTEEN, "jobs": 60, "window": 8, "neighbours": 3}
    assert_same_episode(of_kernels({**options, "partners": partners}), seed)


def test_what_cannot_be_selected() -> None:
    env = of_kernels({"workload": SIXTEEN, "jobs": 5, "cluster": "8x2x12"})
    env.reset(seed=0)
    native = simulation_of(env)
    native.run()
    with pytest.raises(IndexError, match="no such job"):
        native.select(0, 5)
    with pytest.raises(ValueError, match="a job that waits"):
        native.select(4)
    native.select(-1)
    native.run()
    assert native.time > env.simulations.table.jobs["submit"][env.simulations.rows(0)[0]]


@settings(SLOW, max_examples=100)
@given(
    workload=workloads(),
    options=OPTIONS,
    action=st.sampled_from(["pair", "scores"]),
    reward=REWARDS,
    powered=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_an_episode_is_the_same(
    workload: Any, options: Any, action: str, reward: Any, powered: bool, seed: int
) -> None:
    options = {**options, "action": action, "reward": reward}
    if powered:
        options["cluster"] = POWERED

    def show() -> list[Any]:
        env = CoSchedule(**whole(workload, **GIVEN, **options), render_mode="ansi")
        acts = random_acts(env.action_space, seed)
        begun = play(env, acts, most=3)
        seen: list[Any] = [*begun]
        seen += [env.time, env.free, env.queued(), env.running(), env.beside(), env.render()]
        seen += [env.result().start, env.result().end]
        for saved in (env.snapshot(), deepcopy(env.snapshot())):
            seen.append(env.restore(saved))
            if not begun[-1].terminated:
                seen += go_on(env, acts, *seen[-1], first=3)
        again = deepcopy(env)
        seen += [again.result().end, *play(again, acts), *play(env, acts)]
        result = env.result()
        seen += [result.start, result.end, *result.allocation, result.metrics]
        return seen

    with pytest.MonkeyPatch.context() as patched:
        on_both(patched, show)


@pytest.mark.parametrize("autoreset", ["NextStep", "SameStep"])
@pytest.mark.parametrize("files", [False, True], ids=["plain", "files"])
@pytest.mark.parametrize("action", ["pair", "scores"])
def test_many_at_once_are_the_same(
    monkeypatch: pytest.MonkeyPatch, action: str, files: bool, autoreset: str
) -> None:
    options = with_files() if files else {"cluster": "8x2x12"}
    options |= {"action": action, "jobs": 20, "window": 6, "neighbours": 4, "reward": "energy"}

    def show() -> list[Any]:
        env = CoScheduleVector(
            5, SIXTEEN, autoreset_mode=autoreset, max_episode_steps=50, **options
        )
        seen = [env.reset(seed=3)]
        for k in range(150):
            env.action_space.seed(k)
            seen.append(env.step(env.action_space.sample()))
            if k in (30, 120):
                saved = env.snapshot()
                seen += [env.step(env.action_space.sample()), env.restore(deepcopy(saved))]
            if k == 90:
                seen.append(env.reset(seed=k, options={"reset_mask": np.arange(5) % 2 == 0}))
        return seen

    on_both(monkeypatch, show)


def test_it_is_the_native_engine_that_serves() -> None:
    assert CoSchedule(SIXTEEN, jobs=5).simulations.native is not None
