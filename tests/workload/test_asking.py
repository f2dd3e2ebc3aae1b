"""Jobs chosen by masks, slices and conditions; results as attributes and by groups."""

from __future__ import annotations

import numpy as np
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym import WorkloadError
from hpcgym.errors import WorkloadWarning

LOG = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=2")


def test_masks_slices_and_conditions_choose_the_same_jobs() -> None:
    mask = (LOG.user_id == LOG.user_id[0]) & (LOG.requested_processors > 2)
    kept = LOG.query(f"user == {LOG.user_id[0]} and processors > 2")
    assert 0 < len(kept) < len(LOG)
    for part in (LOG[mask], LOG[np.flatnonzero(mask)], LOG[np.flatnonzero(mask).tolist()], kept):
        assert part.job_number.tolist() == LOG.job_number[mask].tolist()
    assert LOG[:7].job_number.tolist() == LOG.job_number[:7].tolist()
    assert len(LOG.query("user_id == -5")) == 0


def test_times_in_conditions_may_be_durations() -> None:
    hours = LOG.query("requested > 2h and run_time < 1d 12h")
    assert 0 < len(hours) < len(LOG)
    assert len(hours) == len(LOG.query("requested_time > 7200 and run_time < 129600"))


def test_names_in_conditions_stand_in_quotes() -> None:
    batch = LOG.query("queue == 'batch'")
    assert 0 < len(batch) < len(LOG)
    assert set(batch.queue) == {1}
    assert len(LOG.query("queue in ['batch', 'interactive'] and requested > 0s")) == len(LOG)
    assert len(LOG.query("queue.isin(['batch'])")) == len(batch)
    assert len(LOG.query("queue != 'batch'")) == len(LOG) - len(batch)
    assert len(LOG.query(f"user == '{LOG.user_id[0]}'")) == sum(LOG.user_id == LOG.user_id[0])


def test_conditions_on_what_no_job_has_warn() -> None:
    with pytest.warns(WorkloadWarning, match="wait is unknown for all jobs of lublin"):
        assert len(LOG.query("wait > 2h")) == 0


def test_the_first_jobs_as_a_table() -> None:
    table = LOG.head(3)
    assert len(table) == 3
    assert "run_time" in table
    assert not (table == -1).all().any()
    assert "<table" in LOG._repr_html_()


def test_simulate_takes_what_loads() -> None:
    named = hpcgym.simulate("lublin:jobs=300,processors=64,seed=2", "saf")
    loaded = hpcgym.simulate(LOG, "saf")
    assert named.start.tolist() == loaded.start.tolist()
    frame = hpcgym.simulate(LOG.to_pandas(), "saf", processors=64)
    assert frame.start.tolist() == loaded.start.tolist()
    small = hpcgym.simulate("lublin:jobs=300,processors=64,seed=2", "saf", processors=32)
    assert small.cluster.processors == 32
    assert len(small.workload) < 300


def test_metrics_are_attributes_and_have_groups() -> None:
    result = hpcgym.simulate(LOG, "saf")
    assert result.metrics.mean_bsld == result.metrics["mean_bsld"]
    assert "mean_bsld" in dir(result.metrics)
    assert result.by("class")["jobs"].sum() == 300
    assert "mean_bsld" in result._repr_html_()


def test_rules_that_differ_are_told() -> None:
    saf = hpcgym.simulate(LOG, "saf", threshold="80h").scheduler
    assert repr(saf) == "Scheduler(policy='saf', backfill_order='spf', threshold=288000)"
    assert eval(repr(saf), {"Scheduler": hpcgym.Scheduler}) == saf
    assert repr(hpcgym.Scheduler()) == "Scheduler()"


def test_no_job_and_the_last_job() -> None:
    assert len(LOG[[]]) == 0
    assert LOG[[3, -1]].job_number.tolist() == LOG.job_number[[3, -1]].tolist()


test_mistakes = mistakes_of(globals(), np, errors=(AttributeError, WorkloadError))
