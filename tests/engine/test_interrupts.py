"""Ctrl-C, and whatever a user's handler of a signal raises, ends each call that takes long.

The calls that are interrupted here would take minutes.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
import pytest
from interrupting import StopError, alarms, stopped
from plain_envs import maker

from hpcgym import Cluster, Scheduler, Workload, generate_speedups, load_workload, simulate
from hpcgym._engine import Simulation as Native
from hpcgym._engine import Work
from hpcgym.agents.lookahead import Lookahead
from hpcgym.baselines import find_scheduler
from hpcgym.machine.pool import NodeGroup
from hpcgym.machine.power import NodePower
from hpcgym.scheduler.limits import PowerCap
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.simulation.driver import by_weights, new_simulation
from hpcgym.simulation.prepare import pool_of
from hpcgym.study.calibration import calibrate

QUEUED = load_workload("lublin:jobs=60000,processors=256,seed=0,load=3")
#: Jobs that are submitted at once: the first pass has them all.
BURST = QUEUED.with_columns(submit_time=np.zeros(len(QUEUED), np.int64))
NODES = Cluster(groups=(NodeGroup("n", 64, {"core": 4}, NodePower(100.0, 200.0)),))


def native_of(workload: Workload, scheduler: str) -> Native:
    """A simulation before its first event."""
    place = pool_of(workload, Cluster(workload.processors))
    return new_simulation(workload, find_scheduler(scheduler), place).native


def shared_nodes() -> Any:
    codes = load_workload("codes:processes=256,jobs=60000,seed=0")
    at_once = codes.with_columns(submit_time=np.zeros(len(codes), np.int64))
    speedups = generate_speedups(codes=16, mean=1.1, spread=0.1, seed=0)
    return simulate(at_once, "popularity-filler-co", cluster="100x2x24", speedups=speedups)


def learned() -> Any:
    rules = find_scheduler("evolved").but(estimate="regression", policy_estimate="regression")
    return simulate(QUEUED, rules)


def limited() -> Any:
    rules = Scheduler(policy="wfp3", backfill_order="wfp3")
    return simulate(BURST, rules, cluster=NODES, limits=[PowerCap.of(NODES, 1.0)])


def batch(threads: int) -> Any:
    """Conservative schedules of slices under two vectors."""
    return BatchSimulator([QUEUED, QUEUED], ["area", "wait"], "conservative").run(
        [[-1.0, 2.0], [-2.0, 1.0]], threads=threads
    )


CALLS: dict[str, Callable[[], Any]] = {
    "an order that changes": lambda: simulate(QUEUED, "evolved"),
    "conservative": lambda: simulate(QUEUED, "conservative"),
    "Slurm's backfilling": lambda: simulate(BURST, Scheduler(backfill="slurm")),
    "nodes": lambda: simulate(QUEUED, "evolved", cluster=NODES),
    "reservations on nodes": lambda: simulate(QUEUED, "conservative", cluster=NODES),
    "learned run times": learned,
    "shared nodes": shared_nodes,
    "limits": limited,
    "one pass": lambda: simulate(BURST, "conservative"),
    "look-ahead": lambda: Lookahead().run(QUEUED),
    "a batch": lambda: batch(1),
    "a batch on threads": lambda: batch(2),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_takes_minutes_ends_at_once(name: str) -> None:
    with stopped():
        CALLS[name]()


def test_ctrl_c_is_a_keyboard_interrupt() -> None:
    native = native_of(QUEUED, "evolved")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            native.run()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert native.coming > 0


# --- What is whole goes on ------------------------------------------------------------------------


def finish(run: Callable[[], Any]) -> int:
    """Call until it is not interrupted any more; return how often it was."""
    interrupted = 0
    with alarms(0.07):
        while True:
            try:
                run()
            except StopError:
                interrupted += 1
            else:
                return interrupted


@pytest.mark.parametrize("scheduler", ["evolved", "conservative"])
def test_what_was_interrupted_between_two_passes_goes_on(scheduler: str) -> None:
    """To the same schedule, to the last bit, however often it was interrupted."""
    workload = QUEUED.take(slice(20_000))
    whole, pieces = native_of(workload, scheduler), native_of(workload, scheduler)
    whole.run()
    assert finish(pieces.run) > 0
    expected, in_pieces = whole.schedule(), pieces.schedule()
    assert {name: column.tolist() for name, column in in_pieces.items()} == {
        name: column.tolist() for name, column in expected.items()
    }


def test_look_ahead_that_was_interrupted_goes_on() -> None:
    workload, agent = QUEUED.take(slice(900)), Lookahead()
    rules = Scheduler().for_weights().but(policy="fcfs")

    def made() -> tuple[Native, Any]:
        place = pool_of(workload, Cluster(256))
        simulation = by_weights(workload, rules, place, agent.features, asks=True)[0].simulation
        return simulation.native, agent._foresight(workload, simulation.features)  # type: ignore[arg-type]

    (whole, known), (pieces, learned) = made(), made()
    whole.look_ahead(known)
    assert finish(lambda: pieces.look_ahead(learned)) > 0
    assert pieces.schedule()["start"].tolist() == whole.schedule()["start"].tolist()


def test_what_was_interrupted_within_a_pass_is_refused() -> None:
    native = native_of(BURST, "conservative")
    with stopped():
        native.run()
    asked: list[Callable[[], Any]] = [
        native.run, native.schedule, native.copy, native.saved, native.view, lambda: native.time
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(RuntimeError, match="interrupted within a pass, after which it cannot"):
            ask()


def test_a_batch_that_was_interrupted_can_be_run_again() -> None:
    slices = [QUEUED.take(slice(k, k + 300)) for k in range(0, 60_000, 300)]
    batch = BatchSimulator(slices, ["area", "wait"])
    vectors = np.random.default_rng(0).normal(size=(4_000, 2))
    with stopped():
        batch.run(vectors, threads=2)
    again = batch.run(vectors[:3], threads=2)
    assert again.tolist() == BatchSimulator(slices, ["area", "wait"]).run(vectors[:3]).tolist()


# --- Threads --------------------------------------------------------------------------------------


def test_a_call_on_another_thread_does_not_keep_the_main_thread() -> None:
    """It goes on, as handlers are the main thread's, until the work that it is part of ends."""
    native, work, coming = native_of(QUEUED, "evolved"), Work(), []

    def run() -> None:
        with work, suppress(RuntimeError):
            native.run()
        coming.append(native.coming)

    thread = threading.Thread(target=run)
    thread.start()
    with stopped():
        while True:
            time.sleep(0.01)
    assert not coming
    work.end()
    thread.join(20)
    assert coming[0] > 0


def test_threads_of_the_engine_end_with_the_work_that_they_are_part_of() -> None:
    batch, work, ends = BatchSimulator([QUEUED], ["area", "wait"]), Work(), []
    vectors = np.random.default_rng(0).normal(size=(4_000, 2))

    def abandoned() -> None:
        with work, pytest.raises(RuntimeError, match="abandoned"):
            batch.run(vectors, threads=2)
        ends.append(True)

    thread = threading.Thread(target=abandoned)
    thread.start()
    time.sleep(0.5)
    work.end()
    thread.join(20)
    assert ends


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_another_thread_forked_hears_signals() -> None:
    """Its main thread is the one that forked; and it simulates as any other does."""
    few, ends = QUEUED.take(slice(500)), []
    expected = simulate(few, "evolved").start
    out, into = os.pipe()

    def fork() -> None:
        child = os.fork()
        if child == 0:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                same = (simulate(few, "evolved").start == expected).all()
                native = native_of(QUEUED, "evolved")
                os.write(into, b"1" if same else b"0")
                native.run()
            except KeyboardInterrupt:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.read(out, 1) == b"1"
        time.sleep(0.5)
        os.kill(child, signal.SIGINT)
        for _ in range(2_000):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return ends.append(os.waitstatus_to_exitcode(status))
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert ends == [7]


def test_settings_that_are_tried_on_threads_end_at_once() -> None:
    made = simulate(QUEUED.take(slice(8_000)), "easy").as_workload()
    with stopped():
        calibrate(made, "evolved", Cluster(256))


# --- Environments ---------------------------------------------------------------------------------

ONE_STEP = {
    "episodes": "whole",
    "interval": "episode",
    "policy_features": ["wait", "free * log(1 + processors)"],
}
#: Weights by which the queue gets long, and so a step: by others it may take 0.2 s.
LONG = np.array([0.0, 1.0], np.float32)
MixedPolicy, MixedPolicyVector = maker("MixedPolicy"), maker("MixedPolicyVector")


def test_an_environment_whose_step_was_interrupted_begins_anew() -> None:
    env = MixedPolicy(QUEUED, **ONE_STEP)
    action = LONG
    env.reset(seed=0)
    before = env.snapshot()
    with stopped():
        env.step(action)
    with pytest.raises(gymnasium.error.ResetNeeded, match="its last step was interrupted: call re"):
        env.step(action)
    with pytest.raises(ValueError, match="its last step was interrupted"):
        env.snapshot()
    seen, _ = env.restore(before)
    again, _ = env.reset(seed=0)
    assert all(np.array_equal(seen[name], again[name]) for name in seen)


@pytest.mark.parametrize("threads", [1, 2])
def test_environments_whose_step_was_interrupted_begin_anew(threads: int) -> None:
    envs = MixedPolicyVector(3, QUEUED, threads=threads, **ONE_STEP)
    actions = np.tile(LONG, (3, 1))
    envs.reset(seed=0)
    with stopped():
        envs.step(actions)
    with pytest.raises(gymnasium.error.ResetNeeded, match="its last step was interrupted: call re"):
        envs.step(actions)
    envs.reset(seed=0)
    with stopped():
        envs.step(actions)
