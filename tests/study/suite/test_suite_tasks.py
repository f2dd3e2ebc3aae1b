"""What ids stand for: it never changes, and parts are apart in time."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import freeze_suite
import numpy as np
import pytest
from bringing import frozen
from drawing import given
from drawing import strategies as st

from hpcgym.errors import HpcgymError
from hpcgym.machine import cluster_toml
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.study.evaluation.references import best_static
from hpcgym.study.suite.tasks import (
    PARTS,
    Task,
    check_frozen,
    cuts_of,
    environment,
    find_tasks,
    jobs_of,
    part_of,
    suite,
    tasks,
)
from hpcgym.workload import Workload, load_workload


def test_a_frozen_id_is_what_it_was() -> None:
    assert suite() == "hpcgym-suite-v1"
    found = {name: task.fingerprint[:16] for name, task in tasks().items() if task.frozen}
    assert found == {row["task"]: row["fingerprint"] for row in frozen()}


def test_the_archive_has_the_names_of_what_is_not_frozen() -> None:
    left = {task.workload for task in tasks().values() if not task.frozen}
    assert left == {"CTC-SP2", "HPC2N"}
    with pytest.raises(HpcgymError, match=r"ctc-order is not frozen yet: .* of CTC-SP2"):
        check_frozen(tasks()["ctc-order"])


def test_jobs_are_those_that_were_frozen(frozen_task: Task) -> None:
    jobs = jobs_of(frozen_task)
    assert jobs.processors == frozen_task.processors
    other = replace(frozen_task, digest="0" * 64)
    with pytest.raises(HpcgymError, match=f"{other.name}: .* has other jobs than the suite"):
        jobs_of(other)


#: What else episodes depend on: machines, and how fast codes run beside one another.
MACHINES = {
    "budget-power": "7ea9f00d71644554",
    "codes-pairs": "193b054407d422f6",
}


@pytest.mark.parametrize("name", MACHINES)
def test_machines_are_those_that_were_frozen(name: str) -> None:
    with environment(tasks()[name]) as env:
        world = env.unwrapped
        speedups = world.speedups.digest if name == "codes-pairs" else ""
        told = f"{cluster_toml(world.options.cluster)} {speedups}"
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == MACHINES[name]


def test_what_is_frozen_of_the_small_trace_can_be_found_anew() -> None:
    task = tasks()["mini-select"]
    known, best = freeze_suite.frozen(task)
    assert known.digest == task.digest
    assert isinstance(best, dict)
    assert best == pytest.approx(dict(task.best))


def test_the_best_static_scheduler_has_seen_the_train_part_only() -> None:
    task = tasks()["mini-weights"]
    jobs = load_workload(task.workload)
    train = jobs.take(slice(0, round(0.6 * len(jobs))))
    _, best = freeze_suite.frozen(task, budget=20)
    same = best_static([train], WEIGHTED_FEATURES, freeze_suite.STATIC, 20, 0, lambda text: None)
    assert best == same


@given(st.integers(30, 100_000))
def test_parts_follow_one_another(n: int) -> None:
    task = tasks()["mini-order"]

    whole = Workload.from_columns({"submit_time": np.arange(n) ** 2 // 7}, processors=1)
    train, known = cuts_of(whole, task)
    assert abs(train - 0.6 * n) <= 0.5
    assert abs(known - 0.8 * n) <= 0.5
    rows = {}
    for part in PARTS:
        jobs, given = part_of(whole, task, part)
        cut = jobs.row_at(given.get("train_share", 0.0))
        rows[part] = (cut if given["part"] == "test" else 0, len(jobs))
    assert rows == {"train": (0, train), "validation": (train, known), "test": (known, n)}


def test_an_environment_shows_no_job_of_a_later_part(small: object) -> None:
    task = tasks()["pool-select"]
    jobs = jobs_of(task)
    train, known = cuts_of(jobs, task)
    last = {"train": train, "validation": known, "test": len(jobs)}
    for part in PARTS:
        with environment(task, part) as env:
            world = env.unwrapped
            submit = world.episodes.workload.submit_time
            assert submit.max() <= jobs.submit_time[last[part] - 1]
            first = min(submit[one.first] for one in world.episodes.listing)
            begin = {"train": 0, "validation": train, "test": known}[part]
            assert first == jobs.submit_time[begin]
    with pytest.raises(HpcgymError, match="unknown part 'all'"):
        environment(task, "all")


def test_environments_of_a_task_are_those_of_its_id(small: object) -> None:
    for name in ("pool-select", "pool-order", "pool-weights", "nodes-power", "codes-pairs"):
        task = tasks()[name]
        with environment(task) as env:
            assert env.spec.id == task.env_id
        envs = environment(task, num_envs=2, autoreset_mode="SameStep")
        observations, _ = envs.reset(seed=0)
        assert np.shape(observations["jobs"])[0] == 2
        envs.close()


def test_tasks_by_name(small: object) -> None:
    def named(text: str | None) -> list[str]:
        return [task.name for task in find_tasks(text)]

    assert named("mini") == ["tiny-order"]
    assert named("order") == ["pool-order"]
    assert named(None) == [
        "pool-select", "pool-order", "pool-weights", "nodes-power", "codes-pairs",
    ]  # fmt: skip
    assert named("pairs, pool-order,order") == ["codes-pairs", "pool-order"]
    with pytest.raises(HpcgymError, match="unknown task 'pool-ordr'; did you mean 'pool-order'"):
        find_tasks("pool-ordr")
    with pytest.raises(HpcgymError, match="open-order is not frozen yet"):
        find_tasks("open-order")


def test_a_fingerprint_changes_with_anything(small: object) -> None:
    task = tasks()["pool-order"]
    changes = {
        "digest": "1" * 64, "options": {**task.options, "horizon": "2d"}, "window": 41,
        "split": (0.5, 0.2), "steps": 31, "seeds": (0,), "best": {"area": -2.0}, "easy": "fcfs",
        "env_id": "hpcgym/JobSelection-v1", "processors": 33,
    }  # fmt: skip
    found = {replace(task, **{name: value}).fingerprint for name, value in changes.items()}
    assert len(found | {task.fingerprint}) == len(changes) + 1
    assert replace(task).fingerprint == task.fingerprint
