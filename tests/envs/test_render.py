"""What environments show of themselves: text, frames, films."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from hpcgym import HpcgymError, Workload, load_workload
from hpcgym.envs.render.view import ansi, clock, duration, look, rgb_array
from hpcgym.schedule.metrics import bsld

IDS = ("hpcgym/JobSelection-v0", "hpcgym/QueueOrdering-v0", "hpcgym/MixedPolicy-v0")
FRAME = (800, 1280, 3)
MATPLOTLIB = "frames need matplotlib: pip install matplotlib"


@pytest.fixture(scope="module")
def busy() -> Workload:
    """Jobs that request more than they run for, on a machine that is too small."""
    workload = load_workload("lublin:jobs=200,processors=64,seed=3")
    run_time = 600 + workload.run_time % 3000
    return workload.with_columns(
        run_time=run_time, requested_time=2 * run_time, submit_time=29 + np.arange(200) * 300
    )


def make(name: str, workload: Any, render_mode: str = "rgb_array", **arguments: Any) -> Any:
    arguments = {"jobs": 60, "window": 16, **arguments}
    return gymnasium.make(
        name, workload=workload, render_mode=render_mode, disable_env_checker=True, **arguments
    )


def play(env: Any, steps: int) -> Any:
    """Begin the episode of the first jobs, do so many times the same action, give the env."""
    jobs = env.unwrapped.episodes.jobs
    env.reset(options={"start": 0, "jobs": jobs})
    # the first job; the first job; the smallest processors x requested time
    action = {"selection": 0, "ordering": np.linspace(1, -1, 16, dtype=np.float32)}.get(
        env.unwrapped.action_kind, np.array([0, 0, 0, 0, 0, -1], np.float32)
    )
    for _ in range(steps):
        env.step(action)
    return env.unwrapped


def test_frames_depend_on_the_state_alone(busy: Workload) -> None:
    pytest.importorskip("matplotlib", reason=MATPLOTLIB)
    env = make(IDS[0], busy)
    played = play(env, 20)
    snapshot, before, text = played.snapshot(), played.render(), ansi(played)
    kept = before.copy()
    env.step(0)
    assert (env.render() != before).any()
    played.restore(snapshot)
    np.testing.assert_array_equal(played.render(), before)
    np.testing.assert_array_equal(before, kept)  # a frame is an array of its own
    fresh = play(make(IDS[0], busy), 20)
    np.testing.assert_array_equal(fresh.render(), before)
    assert ansi(fresh) == text


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("estimate", ["requested", "ave2"])
def test_what_is_not_known_yet_is_not_seen(busy: Workload, name: str, estimate: str) -> None:
    pytest.importorskip("matplotlib", reason=MATPLOTLIB)
    more, steps = {"interval": "pass"} if "Mixed" in name else {}, 20
    known = play(make(name, busy, estimate=estimate, **more), steps)
    view = look(known)
    assert len(view.running)
    other = play(make(name, other_future(busy, view, estimate), estimate=estimate, **more), steps)
    assert other.time == known.time
    assert (other.result().run_time[view.running] != known.result().run_time[view.running]).any()
    assert ansi(other) == ansi(known)
    np.testing.assert_array_equal(other.render(), known.render())


def other_future(workload: Workload, view: Any, estimate: str) -> Workload:
    """Return a workload with other run times of jobs that have not ended, and other arrivals."""
    submitted = len(view.ended)
    run_time = workload.run_time.copy()
    # to one second before the predicted end, lest a prediction expires at a time of its own
    run_time[view.running] = view.until - view.schedule.start[view.running] - 1
    run_time[view.queued] += 7
    run_time[submitted:] = 11
    columns = {"requested_time": 99, "requested_processors": 1}
    changed = {name: workload.columns[name].copy() for name in columns}
    for name, value in columns.items():
        changed[name][submitted:] = value
    submit = workload.submit_time.copy()
    submit[submitted:] += 1000
    return workload.with_columns(run_time=run_time, submit_time=submit, **changed)


def test_view_agrees_with_the_environment(busy: Workload) -> None:
    env = make(IDS[0], busy, "ansi")
    for steps in range(0, 60, 6):
        played = play(env, steps)
        view, result = look(played), played.result()
        assert view.now == played.time
        np.testing.assert_array_equal(np.sort(view.running), played.running())
        np.testing.assert_array_equal(view.queued, played.queued())
        width = busy.requested_processors[view.running].sum()
        assert width == view.processors - view.free == 64 - played.free
        predicted = result.start[view.running] + busy.requested_time[view.running]
        np.testing.assert_array_equal(view.until, predicted)
        assert (np.diff(view.until) >= 0).all()


def test_jobs_keep_their_processors_from_frame_to_frame(busy: Workload) -> None:
    placement = pytest.importorskip("hpcgym.report.placement")
    seen: dict[int, list[tuple[int, int]]] = {}
    env = make(IDS[0], busy, "ansi")
    for steps in range(0, 60, 4):
        view = look(play(env, steps))
        rectangles = placement.place_jobs(view.with_predicted_ends())
        jobs = np.flatnonzero(view.started)
        held: dict[int, list[tuple[int, int]]] = {}
        for job, low, high in zip(rectangles.job, rectangles.low, rectangles.high, strict=True):
            held.setdefault(int(jobs[job]), []).append((int(low), int(high)))
        assert all(held[job] == seen[job] for job in seen)
        seen = held
    assert len(seen) > 20


def test_text_tells_queue_machine_and_metrics(busy: Workload) -> None:
    played = play(make(IDS[0], busy, "ansi"), 30)
    text, view = played.render(), look(played)
    assert text == ansi(played)
    assert text.startswith("JobSelection")
    assert f"{64 - played.free} of 64 busy, {played.free} free" in text
    first = view.queued[0]
    row = next(line for line in text.splitlines() if line.split()[:1] == [str(first)])
    fits = "yes" if busy.requested_processors[first] <= played.free else "no"
    assert row.split()[1] == str(busy.requested_processors[first])
    assert row.split()[-1] == fits
    ended = view.ended
    result = played.result()
    n = len(ended)
    slowdowns = bsld(result.wait[:n][ended], result.run_time[:n][ended])
    line = next(line for line in text.splitlines() if "bounded slowdown" in line)
    assert float(line.split()[-1].replace(",", "")) == pytest.approx(slowdowns.mean(), rel=1e-3)


def test_long_tables_are_cut_and_empty_ones_named(busy: Workload) -> None:
    crowd = busy.with_columns(
        submit_time=np.zeros(200, np.int64), requested_processors=np.full(200, 40)
    )
    played = play(make(IDS[0], crowd, "ansi"), 3)
    assert len(played.queued()) > 40
    assert f"... and {len(played.queued()) - 10} more" in ansi(played)
    new = play(make(IDS[2], busy, "ansi"), 0)
    assert "Running, by predicted end: none" in ansi(new)
    assert "day 0, 00:00:00" in ansi(new)


@pytest.mark.parametrize("processors", [1, 100_000])
def test_long_episodes_and_machines_of_any_size(processors: int) -> None:
    pytest.importorskip("matplotlib", reason=MATPLOTLIB)
    workload = load_workload("lublin:jobs=1500,processors=8,seed=3")
    workload = workload.with_columns(requested_processors=np.ones(1500, np.int64))
    env = make(IDS[0], workload, processors=processors, jobs=1400)
    played = play(env, 1100)  # more than 2,000 steps of utilization
    assert played.render().shape == FRAME


def test_rendering_before_an_episode(busy: Workload) -> None:
    env = make(IDS[0], busy).unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        rgb_array(env)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        ansi(env)


def test_frames_without_matplotlib(busy: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    played = play(make(IDS[0], busy), 0)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(HpcgymError, match=r"needs matplotlib: pip install '\.\[report\]'"):
        played.render()


@pytest.mark.parametrize("name", IDS)
def test_checker_of_gymnasium_passes_with_all_render_modes(name: str) -> None:
    pytest.importorskip("matplotlib", reason=MATPLOTLIB)
    for mode in ("ansi", "rgb_array"):
        check_env(gymnasium.make(name, render_mode=mode).unwrapped)


def test_films(busy: Workload, tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason=MATPLOTLIB)
    pytest.importorskip("moviepy", reason="films need moviepy: pip install moviepy")
    env = gymnasium.wrappers.RecordVideo(make(IDS[0], busy, jobs=8), str(tmp_path / "films"))
    env.reset(seed=1)
    ended = False
    while not ended:
        _, _, ended, _, _ = env.step(0)
    env.close()
    (film,) = (tmp_path / "films").glob("*.mp4")
    assert film.stat().st_size > 1000


def test_times_for_people() -> None:
    assert [duration(t) for t in (0, 59, 90, 7200, 200_000, 10**8)] == [
        "0 s", "59 s", "1.5 min", "2 h", "2.3 d", "1,157 d"
    ]  # fmt: skip
    assert duration(float("nan")) == "-"
    assert clock(93_784) == "day 1, 02:03:04"
