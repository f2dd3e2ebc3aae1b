"""What a schedule with shared nodes says of itself: times, tables, energy, logs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

import hpcgym
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.machine.speedups import Heatmap
from hpcgym.schedule.metrics import processors_in_use
from hpcgym.schedule.result import Result
from hpcgym.validation.books import check_books
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload import Workload, assign_codes, load_workload, with_codes

#: a gains a quarter beside b, which is a fifth slower then; alone on half sockets nothing changes.
PAIR = Heatmap(("a", "b"), [[1.0, 1.25], [0.8, 1.0]], alone=[1.0, 1.0])
POWER = NodePower(idle_w=50, busy_w=100)


def made(*rows: tuple[int, int, int, str]) -> Workload:
    """A workload of rows (submit, run, processors, code), which request twice their run times."""
    submit, run, processors, codes = zip(*rows, strict=True)
    return with_codes(
        few_jobs(
            8,
            np.array(submit),
            np.array(run),
            np.array(processors),
            2 * np.array(run),
            user_id=np.arange(len(rows)) % 2,
            name="made",
        ),
        codes,
    )


def two_nodes(power: NodePower | None = POWER, **flat: float) -> Cluster:
    return Cluster(groups=[NodeGroup("n", 2, {"core": 4}, sockets=2, power=power)], **flat)


def together(
    *rows: tuple[int, int, int, str],
    cluster: Cluster | None = None,
    speedups: Heatmap = PAIR,
    scheduler: str = "easy-co",
) -> Result:
    return hpcgym.simulate(
        made(*rows), scheduler, cluster=cluster or two_nodes(), speedups=speedups
    )


@pytest.fixture(scope="module")
def pair() -> Result:
    """100 s of a: 80 s beside b. 100 s of b: 64 of them by then, 36 s alone."""
    return together((0, 100, 4, "a"), (0, 100, 4, "b"))


@pytest.fixture(scope="module", params=["easy-co", "filler-co", "easy-spread", "easy"])
def many(request: pytest.FixtureRequest) -> Result:
    heatmap = hpcgym.generate_speedups(6, 1.05, 0.2, seed=4)
    log = load_workload("lublin:jobs=250,processors=144,seed=5,load=0.9,users=7")
    machine = Cluster(groups=[NodeGroup("n", 9, {"core": 16}, sockets=2, power=POWER)])
    work = assign_codes(log, heatmap.codes, seed=6)
    return hpcgym.simulate(work, request.param, cluster=machine, speedups=heatmap)


def test_the_table_has_what_is_known_of_sharing(pair: Result) -> None:
    table = pair.jobs
    assert table["shape"].tolist() == ["part", "part"]
    assert table["code"].tolist() == ["a", "b"]
    assert table["job_speedup"].tolist() == [1.25, 100 / 116]
    for name in ("start_time", "end_time", "wait_time", "run_time", "reserved_start"):
        assert table[name].dtype == np.float64
    spread = together((0, 100, 4, "a"), scheduler="easy-spread").jobs
    compact = together((0, 100, 4, "a"), scheduler="easy").jobs
    assert [spread["shape"][0], compact["shape"][0]] == ["spread", "compact"]


def test_two_jobs_share_what_their_nodes_draw(pair: Result) -> None:
    # two busy nodes, 200 W: half each up to 80 s, then b alone
    energy = pair.energy
    assert energy.by_job.energy_j.tolist() == [8000.0, 8000.0 + 36 * 200]
    assert energy.by_user.energy_j.tolist() == [8000.0, 15200.0]
    assert energy.by_node.busy_j.tolist() == [11600.0, 11600.0]
    assert energy.total_j == pair.metrics["energy_j"] == 23200.0
    assert energy.overhead_j == 0
    table = pair.power
    assert table.time.tolist() == [0, 80, 116]
    assert table.watts.tolist() == [200, 200, 0]


def test_a_node_is_shared_by_cores_in_use() -> None:
    # b has two processes on the first node, one on the second: 1/2 and 1/3 of what they draw
    energy = together((0, 100, 4, "a"), (0, 100, 3, "b")).energy
    a, b = energy.by_job.energy_j
    assert a == pytest.approx(80 * (50 + 200 / 3), rel=1e-14)
    assert b == pytest.approx(80 * (50 + 100 / 3) + 36 * 200, rel=1e-14)


def test_flat_powers_of_processors() -> None:
    flat = two_nodes(None, idle_power_w=1.0, busy_power_w=10.0)
    result = together((0, 100, 3, "a"), (0, 100, 4, "b"), cluster=flat)
    busy = 3 * 80 + 4 * 116
    assert result.metrics["energy_busy_j"] == 10 * busy
    assert result.metrics["energy_idle_j"] == 8 * 116 - busy
    assert result.energy.by_job.energy_j.tolist() == [2400, 4640]
    assert result.energy.total_j == pytest.approx(result.metrics["energy_j"], rel=1e-14)
    assert result.power.watts.tolist() == [71, 44, 0]


def test_books_close(many: Result) -> None:
    assert check_books(many) == []
    assert "energy" in validate_schedule(many)
    energy, power = many.energy, many.power
    whole = math.fsum((power.watts[:-1] * np.diff(power.time)).tolist())
    for table in (energy.by_state, energy.by_node, energy.by_group):
        assert math.fsum(table.energy_j) == pytest.approx(whole, rel=1e-12)
    for table in (energy.by_job, energy.by_user):
        assert math.fsum(table.energy_j) + energy.overhead_j == pytest.approx(whole, rel=1e-12)
        assert math.fsum(table.with_overhead_j) == pytest.approx(whole, rel=1e-12)
    assert many.metrics["energy_j"] == pytest.approx(whole, rel=1e-12)
    assert power.time.iloc[-1] == many.end.max()


def test_a_log_has_whole_seconds_and_nobody_overlaps(many: Result, tmp_path: Path) -> None:
    log = many.as_workload()
    start = log.submit_time + log.wait_time
    assert np.abs(start - many.start).max() <= 0.5
    assert (log.run_time >= 1).all()
    long = many.run_time >= 1.5
    assert np.abs(start + log.run_time - many.end)[long].max() <= 0.5
    times, used = processors_in_use(many)
    assert used.max() <= many.cluster.processors
    many.to_swf(tmp_path / "log.swf")
    read = load_workload(tmp_path / "log.swf", clean="none")
    assert read.run_time.tolist() == log.run_time.tolist()
    assert read.wait_time.tolist() == log.wait_time.tolist()
    assert read.executable.tolist() == many.workload.executable.tolist()
    assert times[-1] == many.end.max()


def test_a_log_by_hand() -> None:
    log = together((0, 10, 4, "a"), (0, 10, 4, "b"), (0, 10, 8, "a")).as_workload()
    # the third begins when all have ended, at 11.6 s, and has nobody beside: 21.6 s
    assert log.wait_time.tolist() == [0, 0, 12]
    assert log.run_time.tolist() == [8, 12, 10]


@pytest.mark.parametrize("scheduler", ["easy-co", "easy"])
def test_extracts_are_traces_like_any_other(scheduler: str) -> None:
    result = together((0, 100, 4, "a"), (0, 100, 4, "b"), scheduler=scheduler)
    part = result.as_workload().extract(50)
    later = hpcgym.simulate(part, "easy", cluster=two_nodes())
    assert later.end.tolist() == np.rint(result.end).tolist()


test_mistakes = mistakes_of(globals(), fixtures=("pair",))
