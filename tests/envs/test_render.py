"""What environments show of themselves: text and frames."""

from __future__ import annotations

import re
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import SINGLE
from gymnasium.utils.env_checker import check_env
from mistakes import mistakes_of

from hpcgym import HpcgymError, Workload, load_workload
from hpcgym.envs.ids import id_of
from hpcgym.envs.render import look, text_of
from hpcgym.report.placement import place_jobs
from hpcgym.schedule.metrics import bsld

NAMES = ("JobSelection", "QueueOrdering", "MixedPolicy")
WITHOUT = "frames need matplotlib: pip install matplotlib"


@pytest.fixture(scope="module")
def busy() -> Workload:
    """Jobs that request more than they run for, on a machine that is too small."""
    workload = load_workload("lublin:jobs=200,processors=64,seed=3")
    run_time = 600 + workload.run_time % 3000
    return workload.with_columns(
        run_time=run_time, requested_time=2 * run_time, submit_time=29 + np.arange(200) * 300
    )


def played(name: str, workload: Any, steps: int, mode: str = "ansi", **more: Any) -> Any:
    """Begin the episode of the first jobs, do so many times the same action."""
    env = SINGLE[name](workload, render_mode=mode, **{"jobs": 60, "window": 16} | more)
    env.reset(options={"start": 0, "jobs": env.episodes.jobs})
    # the first job; the first job; the smallest processors x requested time
    action = {"JobSelection": 0, "QueueOrdering": np.linspace(1, -1, 16, dtype=np.float32)}.get(
        name, np.array([0, 0, 0, 0, 0, -1], np.float32)
    )
    for _ in range(steps):
        env.step(action)
    return env


def view_of(env: Any) -> Any:
    return look(env.simulations, type(env).__name__)


def test_frames_depend_on_the_state_alone(busy: Workload) -> None:
    pytest.importorskip("matplotlib", reason=WITHOUT)
    env = played(NAMES[0], busy, 20, "rgb_array")
    snapshot, before = env.snapshot(), env.render()
    kept = before.copy()
    env.step(0)
    assert (env.render() != before).any()
    env.restore(snapshot)
    np.testing.assert_array_equal(env.render(), before)
    np.testing.assert_array_equal(before, kept)  # a frame is an array of its own
    np.testing.assert_array_equal(played(NAMES[0], busy, 20, "rgb_array").render(), before)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("estimate", ["requested", "ave2"])
def test_what_is_not_known_yet_is_not_seen(busy: Workload, name: str, estimate: str) -> None:
    """Other run times of jobs that have not ended, and other jobs to come, look the same."""
    pytest.importorskip("matplotlib", reason=WITHOUT)
    more = {"interval": "pass"} if name == "MixedPolicy" else {}
    known = played(name, busy, 20, "rgb_array", estimate=estimate, **more)
    view, columns = view_of(known), {key: busy.columns[key].copy() for key in (
        "run_time", "requested_time", "requested_processors", "submit_time")}  # fmt: skip
    assert len(view.running)
    # to one second before the predicted end, lest a prediction expires at a time of its own
    columns["run_time"][view.running] = view.until - view.schedule.start[view.running] - 1
    columns["run_time"][view.queued] += 7
    later = slice(len(view.ended), None)
    for key, value in (("run_time", 11), ("requested_time", 99), ("requested_processors", 1)):
        columns[key][later] = value
    columns["submit_time"][later] += 1000
    other = played(name, busy.with_columns(**columns), 20, "rgb_array", estimate=estimate, **more)
    assert (other.result().run_time[view.running] != known.result().run_time[view.running]).any()
    assert text_of(view_of(other)) == text_of(view)
    np.testing.assert_array_equal(other.render(), known.render())


def test_the_view_is_of_the_state(busy: Workload) -> None:
    """Who waits and runs, up to when; and jobs keep their processors from frame to frame."""
    seen: dict[int, list[tuple[int, int]]] = {}
    for steps in range(0, 60, 5):
        env = played(NAMES[0], busy, steps)
        view, result = view_of(env), env.result()
        assert view.now == env.time
        np.testing.assert_array_equal(np.sort(view.running), env.running())
        np.testing.assert_array_equal(view.queued, env.queued())
        width = busy.requested_processors[view.running].sum()
        assert width == view.processors - view.free == 64 - env.free
        predicted = result.start[view.running] + busy.requested_time[view.running]
        np.testing.assert_array_equal(view.until, predicted)
        assert (np.diff(view.until) >= 0).all()
        schedule, jobs = view.drawn()
        placed, held = place_jobs(schedule), dict[int, list[tuple[int, int]]]()
        for job, low, high in zip(jobs[placed.job], placed.low, placed.high, strict=True):
            held.setdefault(int(job), []).append((int(low), int(high)))
        assert all(held[job] == seen[job] for job in seen)
        seen = held
    assert len(seen) > 20


def test_text_tells_queue_machine_and_metrics(busy: Workload) -> None:
    env = played(NAMES[0], busy, 30)
    text, view = env.render(), view_of(env)
    assert text == text_of(view)
    assert text.startswith("JobSelection")
    assert f"{64 - env.free} of 64 busy, {env.free} free" in text
    first = view.queued[0]
    row = next(line for line in text.splitlines() if line.split()[:1] == [str(first)])
    fits = "yes" if busy.requested_processors[first] <= env.free else "no"
    assert row.split()[1] == str(busy.requested_processors[first])
    assert row.split()[-1] == fits
    ended, result = view.ended, env.result()
    slowdowns = bsld(result.wait[: len(ended)][ended], result.run_time[: len(ended)][ended])
    line = next(line for line in text.splitlines() if "bounded slowdown" in line)
    assert float(line.split()[-1].replace(",", "")) == pytest.approx(slowdowns.mean(), rel=1e-3)
    crowd = busy.with_columns(
        submit_time=np.zeros(200, np.int64), requested_processors=np.full(200, 40)
    )
    env = played(NAMES[0], crowd, 3)
    assert f"... and {len(env.queued()) - 10} more" in env.render()
    new = played(NAMES[2], busy, 0).render()
    assert "Running, by predicted end: none" in new
    assert "0 s since the episode began" in new


@pytest.mark.parametrize("processors", [1, 100_000])
def test_long_episodes_and_machines_of_any_size(processors: int) -> None:
    pytest.importorskip("matplotlib", reason=WITHOUT)
    workload = load_workload("lublin:jobs=1500,processors=8,seed=3")
    workload = workload.with_columns(requested_processors=np.ones(1500, np.int64))
    env = played(NAMES[0], workload, 1100, "rgb_array", processors=processors, jobs=1400)
    assert env.render().shape == (800, 1280, 3)


@pytest.mark.parametrize("name", NAMES)
def test_checker_of_gymnasium_passes_with_all_render_modes(name: str) -> None:
    pytest.importorskip("matplotlib", reason=WITHOUT)
    for mode in ("ansi", "rgb_array"):
        check_env(gymnasium.make(id_of(name), render_mode=mode).unwrapped)


def test_headings_of_tables_stand_apart() -> None:
    env = gymnasium.make(
        "hpcgym/JobSelection-v2", workload="lublin:jobs=3000,processors=64", render_mode="ansi"
    )
    env.reset(seed=0)
    for _ in range(9):
        env.step(0)
    heading = str(env.render()).split("Running, by predicted end\n")[1].splitlines()[0]
    assert re.split(r"\s{2,}", heading.strip()) == [
        "job",
        "processors",
        "runs for",
        "should end in",
    ]


test_mistakes = mistakes_of(
    globals(), sys, errors=(HpcgymError, gymnasium.error.ResetNeeded), fixtures=("busy",
    "monkeypatch"),
)  # fmt: skip
