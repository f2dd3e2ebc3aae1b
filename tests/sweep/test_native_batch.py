"""Batches on the native engine have the metrics of the kernels that it replaces, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded
from strategies import holds
from test_batch import batches

from hpcgym.scheduler.policies import FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep import BatchSimulator
from hpcgym.sweep.batch import METRICS
from hpcgym.workload.model import Workload


def values_of(engine: str, threads: int, vectors: Any, *given: Any, **rules: Any) -> Any:
    """The metrics of a batch on one engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPCGYM_ENGINE", engine)
        batch = BatchSimulator(*given, **rules)
    assert (batch._slices is not None) == (engine == "native")
    return batch.run(vectors, list(METRICS), threads=threads)


@settings(max_examples=150)
@given(batches(), st.data())
def test_metrics_are_those_of_the_kernels(
    case: tuple[list[Workload], dict[str, Any], list[Any]], data: st.DataObject
) -> None:
    parts, rules, _ = case
    if rules["backfill"] not in ("none", "easy", "until-shadow"):
        rules["backfill"] = "easy"
    if rules["passes"] == "per-timestamp" and data.draw(st.booleans()):
        rules["hold"] = data.draw(holds())
    if data.draw(st.booleans()):
        found = [parts_of(data, recorded(data, part), rules, last=False)[0] for part in parts]
        parts = [part for part in found if part is not None] or parts
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    shape = data.draw(st.sampled_from([(3, len(FEATURES)), (3, len(parts), len(FEATURES))]))
    vectors = rng.integers(-3, 4, shape) * (
        rng.random(shape) < data.draw(st.sampled_from([0.3, 1]))
    )
    scheduler = Scheduler(**{**rules, "policy": "fcfs"})
    threads = data.draw(st.sampled_from([1, 2]))
    ours, theirs = (
        values_of(engine, threads, vectors, parts, tuple(FEATURES), scheduler, tau=20)
        for engine in ("native", "numba")
    )
    assert np.array_equal(ours, theirs, equal_nan=True)
