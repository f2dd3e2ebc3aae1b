"""Schedules of real traces have the values that were published, computed here and never stored.

Glesser (2018), chapter 7: rows without learning of the original experiment, at full precision.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.schedule.result import Result
from hpcgym.workload.model import Workload

Rules = dict[str, Any]

FCFS: Rules = {"backfill_order": "fcfs"}
SJBF: Rules = {"backfill_order": "sjbf"}
CLAIRVOYANT: Rules = {"estimate": "clairvoyant"}
INCREMENTAL: Rules = {"estimate": "ave2", "correction": "incremental"}
REQUESTED: Rules = {"estimate": "ave2", "correction": "requested"}
DOUBLING: Rules = {"estimate": "ave2", "correction": "recursive-doubling"}
TWICE: Rules = {"estimate": "twice"}  # the requested time, twice: an array of predictions

#: KTH-SP2: rules; mean, max and RMS of the bounded slowdown; mean and max response time [s].
KTH_SP2: list[tuple[Rules, tuple[float, float, float, float, int]]] = [
    (FCFS, (92.57653973362949, 14805.2, 476.260314538994, 15696.798181243601, 309231)),
    (SJBF, (69.40540058030349, 14805.2, 427.20483073376704, 14764.0026684456, 372238)),
    (
        FCFS | CLAIRVOYANT,
        (71.7223851124418, 10017.2, 368.666676974225, 15187.607703381202, 356843),
    ),
    (
        SJBF | CLAIRVOYANT,
        (49.8477189313406, 9941.7, 326.20971934787, 14295.9468417542, 335193),
    ),
    (
        FCFS | INCREMENTAL,
        (85.4429055860284, 37556.9, 652.954648521279, 16041.5189424529, 443466),
    ),
    (
        SJBF | INCREMENTAL,
        (63.5006771704074, 30250.2, 535.363295504029, 15095.780028791101, 541044),
    ),
    (FCFS | REQUESTED, (65.7235894400489, 30299.8, 480.347924938395, 14647.1387942839, 363581)),
    (
        SJBF | REQUESTED,
        (62.8568827272923, 31392.6, 478.67549880824896, 14513.686633194098, 538605),
    ),
    (
        FCFS | DOUBLING,
        (76.9224423223752, 39964.7, 587.802669228861, 15352.4152592957, 685256),
    ),
    (SJBF | DOUBLING, (64.527474221916, 39889.4, 604.285181582292, 15085.663003405802, 687499)),
    (FCFS | TWICE, (79.9302510862489, 21370.4, 473.921092220989, 14900.169411186398, 382389)),
    (SJBF | TWICE, (58.9125322399729, 21395.5, 415.897513784309, 14063.917594185601, 382389)),
]

#: KTH-SP2 with per-timestamp passes: rules, mean bounded slowdown as printed.
PER_TIMESTAMP: list[tuple[Rules, str]] = [
    (FCFS, "92.6877"),
    (FCFS | CLAIRVOYANT, "71.7224"),
    (SJBF | CLAIRVOYANT, "49.8472"),
    (SJBF, "69.3936"),
    (SJBF | INCREMENTAL, "63.4347"),
    (FCFS | INCREMENTAL, "87.454"),
]

#: SDSC-SP2: rules, mean bounded slowdown. The thesis has 7 jobs more, of an older edition.
SDSC_SP2: list[tuple[Rules, float]] = [
    (FCFS, 87.8703241921987),
    (SJBF, 84.8889445442655),
    (FCFS | CLAIRVOYANT, 70.4779419668026),
    (SJBF | CLAIRVOYANT, 56.836221269454),
    (FCFS | INCREMENTAL, 100.018264706122),
    (SJBF | INCREMENTAL, 79.3962818520491),
    (FCFS | REQUESTED, 79.2120878729549),
    (SJBF | REQUESTED, 65.063601053285),
    (FCFS | DOUBLING, 83.9896266293925),
    (SJBF | DOUBLING, 98.0031571790094),
    (FCFS | TWICE, 82.13522465093959),
    (SJBF | TWICE, 77.9010408094305),
]


def name_of(value: object) -> str | None:
    """What a case is called: its rules."""
    return "-".join(value.values()) if isinstance(value, dict) else ""


def simulated(workload: Workload, rules: Rules, passes: str, **more: Any) -> Result:
    if rules.get("estimate") == "twice":
        rules = rules | {"estimate": 2 * workload.requested_time}
    return hpcgym.simulate(workload, "easy", passes=passes, **rules, **more)


@pytest.fixture(scope="module")
def kth_sp2(trace: Callable[[str], Path]) -> Workload:
    workload = hpcgym.load_workload(str(trace("KTH-SP2-1996-2.swf.gz")), clean="glesser")
    assert len(workload) == 28_481
    return workload


@pytest.fixture(scope="module")
def sdsc_sp2(trace: Callable[[str], Path]) -> Workload:
    workload = hpcgym.load_workload(str(trace("SDSC-SP2-1998-4.2-cln.swf.gz")), clean="glesser")
    assert len(workload) == 53_999
    return workload


@pytest.mark.parametrize(("rules", "published"), KTH_SP2, ids=name_of)
def test_kth_sp2(
    kth_sp2: Workload, rules: Rules, published: tuple[float, float, float, float, int]
) -> None:
    metrics = simulated(kth_sp2, rules, "per-event").metrics
    assert metrics["jobs"] == 28_481
    mean_bsld, max_bsld, rms_bsld, mean_response_s, max_response_s = published
    assert metrics["mean_bsld"] == pytest.approx(mean_bsld, rel=0, abs=1e-9)
    assert metrics["max_bsld"] == max_bsld
    assert metrics["rms_bsld"] == pytest.approx(rms_bsld, rel=0, abs=1e-9)
    assert metrics["mean_response_s"] == pytest.approx(mean_response_s, rel=0, abs=1e-9)
    assert metrics["max_response_s"] == max_response_s


@pytest.mark.parametrize("row", [5, pytest.param(8, marks=pytest.mark.slow)])
def test_the_reference_has_them_too(kth_sp2: Workload, row: int) -> None:
    rules, (mean_bsld, max_bsld, _, mean_response_s, _) = KTH_SP2[row]
    metrics = simulated(kth_sp2, rules, "per-event", engine="reference").metrics
    assert metrics["mean_bsld"] == pytest.approx(mean_bsld, rel=0, abs=1e-9)
    assert metrics["max_bsld"] == max_bsld
    assert metrics["mean_response_s"] == pytest.approx(mean_response_s, rel=0, abs=1e-9)


@pytest.mark.parametrize(("rules", "printed"), PER_TIMESTAMP, ids=name_of)
def test_kth_sp2_with_one_pass_a_timestamp(kth_sp2: Workload, rules: Rules, printed: str) -> None:
    mean_bsld = simulated(kth_sp2, rules, "per-timestamp").metrics["mean_bsld"]
    decimals = len(printed.partition(".")[2])
    assert f"{mean_bsld:.{decimals}f}" == printed


@pytest.mark.parametrize(("rules", "mean_bsld"), SDSC_SP2, ids=name_of)
def test_sdsc_sp2(sdsc_sp2: Workload, rules: Rules, mean_bsld: float) -> None:
    metrics = simulated(sdsc_sp2, rules, "per-event").metrics
    assert metrics["mean_bsld"] == pytest.approx(mean_bsld, rel=0.0015)


def test_the_rule_of_passes_alone_moves_the_mean(sdsc_sp2: Workload) -> None:
    """Two rules, not one under two names: on this trace they differ by 2 %."""
    means = [
        simulated(sdsc_sp2, SJBF, passes).metrics["mean_bsld"]
        for passes in ("per-event", "per-timestamp")
    ]
    assert np.round(means, 2).tolist() == [84.84, 82.95]


@pytest.mark.parametrize("scheduler", ["easy", "easy-sjbf", "easy++", "saf", "conservative"])
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_schedules_of_a_real_trace_are_valid(
    kth_sp2: Workload, scheduler: str, passes: str
) -> None:
    proved = hpcgym.validate_schedule(hpcgym.simulate(kth_sp2, scheduler, passes=passes))
    assert {"capacity", "energy", "progress"} <= set(proved)
