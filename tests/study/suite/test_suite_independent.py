"""A score of each track, worked out from starts alone in plain Python: no code of the suite."""

from __future__ import annotations

from collections import defaultdict
from math import log
from pathlib import Path

import numpy as np
import pytest
from bringing import arrays_in, play

from hpcgym.study.suite.board import board_of
from hpcgym.workload import load_workload
from hpcgym.workload.archive import find, find_own, is_trace

WEEK = 7 * 24 * 3600

#: Of each track who plays, on which log, and what times between submissions are multiplied by.
TRACKS = {
    "order": ("aged", "KTH-SP2", 1.0),
    "select": ("saf-typical:threshold=40h", "KTH-SP2", 1.0),
    "weights": ("aged", "SDSC-SP2", 1.0),
    "zero-shot": ("aged-safe", "KTH-SP2", 1.0),
    "backfill": ("easy-sjbf", "SDSC-SP2", 1.0),
    "relaxed": ("easy:backfill_order=spf,hold=0.01", "SDSC-SP2", 1.0),
    "load-90": ("aged", "KTH-SP2", 0.9),
    "load-80": ("aged", "SDSC-SP2", 0.8),
    "unseen": ("aged", "theta_2022", 1.0),
}


class Felt:
    """Means of weeks, and what the gate looks at, of the second half of a replay."""

    def __init__(self, submit: list[int], wait: list[int], run: list[int], width: list[int]):
        half = submit[0] + (submit[-1] - submit[0]) / 2
        sums: dict[int, list[float]] = defaultdict(list)
        area = weighted = 0.0
        self.longest = 0.0
        for at, waited, length, wide in zip(submit, wait, run, width, strict=True):
            if at < half:
                continue
            slowdown = max((waited + length) / max(length, 10), 1.0)
            sums[(at - submit[0]) // WEEK].append(slowdown)
            self.longest = max(self.longest, waited / 3600)
            area += length * wide
            weighted += length * wide * waited / 3600
        self.weighted = weighted / area
        self.weeks = {k: sum(of) / len(of) for k, of in sorted(sums.items()) if len(of) >= 20}


def starves(ours: list[Felt], easy: list[Felt], wider: float) -> bool:
    """Tell whether the means of some replays exceed the gate."""

    def mean(replays: list[Felt], name: str) -> float:
        return sum(getattr(replay, name) for replay in replays) / len(replays)

    return any(
        mean(ours, name) > wider * max(2 * mean(easy, name), floor)
        for name, floor in (("longest", 72.0), ("weighted", 1.0))
    )


@pytest.mark.slow
@pytest.mark.parametrize("track", TRACKS)
def test_the_score_of_a_track(track: str, tmp_path: Path) -> None:
    agent, name, gaps = TRACKS[track]
    if (find(name) if is_trace(name) else find_own(name)) is None:
        pytest.skip(f"{name} is not on this machine")
    done = play(agent, track, tmp_path / "ours", logs=[name])
    play("easy", track, tmp_path / "easy", logs=[name])
    jobs = load_workload(name, "glesser")
    submit = jobs.submit_time.tolist()  # weeks and halves are those of the log as it is
    run, width = jobs.run_time.tolist(), jobs.requested_processors.tolist()

    def felt(folder: str) -> list[Felt]:
        arrays = arrays_in(tmp_path / folder)
        waits = [arrays[f"{track}/{name}/0/{place}/wait"].tolist() for place in range(5)]
        assert len(arrays) == 5
        assert waits[0] != waits[1]
        return [Felt(submit, wait, run, width) for wait in waits]

    ours, easy = felt("ours"), felt("easy")
    gains = [
        sum(log(b.weeks[k] / a.weeks[k]) for k in b.weeks) / len(b.weeks)
        for a, b in zip(ours, easy, strict=True)
    ]
    broken = starves(ours, easy, 1.0) or any(
        starves([a], [b], 1.25) for a, b in zip(ours, easy, strict=True)
    )
    board = board_of([done])
    (row,) = board.by_log.to_dict("records")
    assert row["verified"]
    assert row["gain"] == pytest.approx(sum(gains) / 5, rel=1e-12)
    assert row["score"] == (0 if broken else row["gain"])
    assert row["longest_wait"] == pytest.approx(
        sum(replay.longest for replay in ours) / sum(replay.longest for replay in easy)
    )
    machine = board.tasks[track].log(name).processors
    on_time = capacity_is_kept(tmp_path, track, name, gaps, (submit, run, width), machine)
    assert on_time == 5


def capacity_is_kept(
    folder: Path, track: str, name: str, gaps: float, log_of: tuple[list[int], ...], machine: int
) -> int:
    """Return in how many replays no more processors are taken than there are.

    Submissions are those of the log, multiplied about the first of them.
    """
    submit, run, width = (np.array(column) for column in log_of)
    kept = 0
    for place, factor in enumerate((1.0, 0.98, 0.99, 1.01, 1.02)):
        stretched = submit[0] + np.floor((submit - submit[0]) * round(gaps * factor, 6)).astype(int)
        wait = np.load(folder / "ours/schedules" / track / name / "0.npz")[f"{place}/wait"]
        start = stretched + wait
        moments = np.concatenate([start, start + run])
        change = np.concatenate([width, -width])
        order = np.lexsort((change, moments))
        kept += int(np.cumsum(change[order]).max() <= machine)
    return kept
