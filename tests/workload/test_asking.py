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
    with pytest.raises(WorkloadError, match=r"unknown queue 'bath'; did you mean 'batch'"):
        LOG.query("queue == 'bath'")


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
    with pytest.raises(WorkloadError, match="cannot be made of a int"):
        hpcgym.simulate(3)  # type: ignore[arg-type]


def test_metrics_are_attributes_and_have_groups() -> None:
    result = hpcgym.simulate(LOG, "saf")
    assert result.metrics.mean_bsld == result.metrics["mean_bsld"]
    assert "mean_bsld" in dir(result.metrics)
    with pytest.raises(AttributeError, match="no metric 'mean_bslds'; did you mean 'mean_bsld'"):
        _ = result.metrics.mean_bslds
    assert result.by("class")["jobs"].sum() == 300
    assert "mean_bsld" in result._repr_html_()


def test_rules_that_differ_are_told() -> None:
    saf = hpcgym.simulate(LOG, "saf", threshold="80h").scheduler
    assert repr(saf) == "Scheduler(policy='saf', backfill_order='spf', threshold=288000)"
    assert eval(repr(saf), {"Scheduler": hpcgym.Scheduler}) == saf
    assert repr(hpcgym.Scheduler()) == "Scheduler()"


def test_a_mask_has_a_value_for_each_job() -> None:
    with pytest.raises(WorkloadError, match="a mask of 2 jobs does not fit 300 jobs"):
        LOG[[True, False]]
    assert len(LOG[[]]) == 0


@pytest.mark.parametrize("rows", [slice(None, None, -1), np.array([5, 3, 9]), [3, 3], [-1, 0]])
def test_indices_rise(rows: object) -> None:
    with pytest.raises(WorkloadError, match="jobs stay in order of submission, each once"):
        LOG[rows]
    assert LOG[[3, -1]].job_number.tolist() == LOG.job_number[[3, -1]].tolist()


def test_wrong_questions_have_an_answer() -> None:
    with pytest.raises(WorkloadError, match="a condition is a text, such as 'user == 3', not 3"):
        LOG.query(3)
    with pytest.raises(AttributeError, match=r"no attribute 'jobs'; a table of jobs is to_pandas"):
        _ = LOG.jobs


def test_a_name_of_what_is_unknown_for_all_jobs() -> None:
    with (
        pytest.warns(WorkloadWarning),
        pytest.raises(WorkloadError, match="group is unknown for all jobs of"),
    ):
        LOG.query("group == 'batch'")


test_mistakes = mistakes_of(globals(), errors=WorkloadError)
