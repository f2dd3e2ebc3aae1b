"""What ids stand for: it never changes, and parts are apart in time."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import freeze_suite
import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym.schedule.gains import FLOOR_WEIGHTED_H, MOST
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.policies.features import spread
from hpcgym.simulation.run import simulate
from hpcgym.study.suite.evaluation import Evaluation
from hpcgym.study.suite.tasks import (
    TaskLog,
    environment,
    find_tasks,
    jobs_of,
    late,
    learned_from,
    practice,
    read_reference,
    reference_of,
    suite,
    tasks,
)
from hpcgym.workload.archive import TRACES, find, is_trace, own_traces

#: Of tasks of slices, how many are played.
SLICES = {"nodes-power": 2, "codes-pairs": 3}


def test_a_frozen_id_is_what_it_was() -> None:
    """A fingerprint in ``frozen.csv`` is never changed."""
    assert suite() == "hpcgym-suite-v3"
    with Path(__file__).with_name("frozen.csv").open(newline="") as file:
        frozen = {row["task"]: row["fingerprint"] for row in csv.DictReader(file)}
    assert {name: task.fingerprint[:16] for name, task in tasks().items()} == frozen


LOGS = {log.name: log for task in tasks().values() for log in (*task.logs, *task.training)}


@pytest.mark.parametrize("name", LOGS)
def test_jobs_are_those_that_were_frozen(name: str) -> None:
    log = LOGS[name]
    generated = ":" in log.workload
    here = find(log.workload) if is_trace(log.workload) else own_traces().get(log.workload)
    if here is None and not generated:
        pytest.skip(f"{name} is not on this machine")
    assert jobs_of(log).processors == log.processors


PLAYED = {log.name: task for task in tasks().values() for log in task.logs}


#: On which nothing was chosen, and EASY's waits may be so short that the floors hold.
UNSEEN = {log.name for log in tasks()["unseen"].logs}


@pytest.mark.parametrize("name", [name for name in PLAYED if name not in UNSEEN])
def test_floors_of_the_gate_change_no_score(name: str) -> None:
    """Of area-weighted waits, on any log but the unseen ones."""
    log = LOGS[name]
    generated = ":" in log.workload
    here = find(log.workload) if is_trace(log.workload) else own_traces().get(log.workload)
    if here is None and not generated:
        pytest.skip(f"{name} is not on this machine")
    for part in ("train", "test"):
        (easy,) = Evaluation(replace(PLAYED[name], replays=(1.0,)), log, part).easy
        assert MOST * easy.area_weighted_wait_h > FLOOR_WEIGHTED_H


def test_further_logs_are_of_the_archive() -> None:
    assert {log.workload for log in tasks()["zero-shot"].further} <= {*TRACES}


@pytest.mark.slow
def test_what_is_frozen_of_a_small_task_can_be_found_anew() -> None:
    for name in ("mini-backfill", "codes-pairs"):
        task = tasks()[name]
        reference, weights, scores = freeze_suite.chosen(task)
        assert (reference, tuple(weights)) == (task.reference, task.weights)
        assert scores[reference] == max(scores.values())


def test_what_is_learned_from_is_the_first_half_of_the_time(small: object) -> None:
    task = tasks()["order"]
    for log in task.logs:
        jobs = jobs_of(log)
        submit = jobs.submit_time
        known = learned_from(task, log)
        middle = (submit[0] + submit[-1]) / 2
        assert known.submit_time.tolist() == submit[submit < middle].tolist()
        assert late(tasks()["order"], jobs).tolist() == (submit >= middle).tolist()
    made = tasks()["zero-shot"].training[0]
    assert len(learned_from(tasks()["zero-shot"], made)) == 500
    power = tasks()["nodes-power"]
    submit = jobs_of(power.logs[0]).submit_time
    known = learned_from(power, power.logs[0])
    assert len(known) == int((submit < submit[0] + 0.75 * (submit[-1] - submit[0])).sum())


def test_an_agent_is_shown_no_job_of_the_test(small: object) -> None:
    for name in ("order", "select", "weights", "backfill", "zero-shot", "nodes-power"):
        task = tasks()[name]
        make = practice(task)
        assert [*make.logs] == [log.name for log in task.training]
        for log in task.training:
            known = learned_from(task, log)
            begin, end = known.submit_time[[0, -1]].tolist()
            cut = int((known.submit_time < begin + 0.75 * (end - begin)).sum())
            for part, last in (("train", cut), ("validation", len(known))):
                env = make(part, log=log.name, jobs=20)
                jobs = env.unwrapped.options.workload
                assert jobs.submit_time.tolist() == known.submit_time[:last].tolist()
                first = 0 if part == "train" else cut
                expected = known.submit_time[[first, last - 1]].tolist()
                assert list(env.unwrapped.episodes.submitted) == expected
                env.close()


def test_environments_of_a_task_are_those_of_its_id(small: object) -> None:
    for name in ("order", "select", "weights", "backfill", "nodes-power", "codes-pairs"):
        task = tasks()[name]
        make = practice(task)
        assert make.kind == name.rpartition("-")[2]
        envs = make(num_envs=2, jobs=20)
        assert envs.num_envs == 2
        envs.close()
        with environment(task, task.logs[0]) as env:
            assert env.spec.id == task.env_id
            assert make.scheduler == env.unwrapped.options.scheduler
            listing = env.unwrapped.episodes.listing
            assert [episode.name for episode in listing] == (
                [f"window {n:04d}" for n in range(SLICES[name])] if task.window else ["whole"]
            )


def test_tasks_by_name(small: object) -> None:
    def named(text: str | None) -> list[str]:
        return [task.name for task in find_tasks(text)]

    assert named("mini") == ["mini-order", "mini-select", "mini-weights"]
    assert named("order") == ["order"]
    assert named(None) == [
        "order", "select", "weights", "backfill", "zero-shot", "nodes-power", "codes-pairs",
    ]  # fmt: skip
    assert named("codes-pairs, order,order") == ["codes-pairs", "order"]


def test_a_fingerprint_changes_with_anything(small: object) -> None:
    task = tasks()["nodes-power"]
    log = task.logs[0]
    changes = {
        "logs": (replace(log, digest="1" * 64),), "training": (TaskLog("x", "y"),), "window": 41,
        "options": {**task.options, "share": 0.5}, "share": 0.7, "steps": 31, "seeds": (0,),
        "reference": "f1", "weights": (1.0,), "easy": "fcfs", "env_id": "hpcgym/JobSelection-v2",
    }  # fmt: skip
    fingerprints = {replace(task, **{name: value}).fingerprint for name, value in changes.items()}
    assert len(fingerprints | {task.fingerprint}) == len(changes) + 1
    assert replace(task).fingerprint == task.fingerprint


def test_references_are_scaled_for_each_log_and_know_its_first_half(small: object) -> None:
    task = tasks()["weights"]
    for log in task.logs:
        jobs, rules = jobs_of(log), reference_of(task, log)
        half = jobs.take(~late(tasks()["order"], jobs))
        expected = dict(
            zip(WEIGHTED_FEATURES, task.weights / spread([half], WEIGHTED_FEATURES), strict=True)
        )
        assert rules.policy == {name: value for name, value in expected.items() if value}
        longest = simulate(learned_from(task, log), "easy").wait.max()
        assert rules.threshold == longest
        assert rules.backfill_order == "spf"
    assert read_reference(task, task.logs[0], "saf:threshold=2h").threshold == 7200
    assert read_reference(task, task.logs[0], "static", np.zeros(6)).policy == "fcfs"


test_mistakes = mistakes_of(globals(), fixtures=("small",))
