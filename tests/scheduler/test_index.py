"""Index policies: the scores that the registry stands for, and what is no policy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of

from hpcgym.reference.jobs import Job
from hpcgym.reference.orders import POLICIES as SLOW_POLICIES
from hpcgym.reference.orders import score_of
from hpcgym.scheduler.policies import (
    FEATURES,
    POLICIES,
    USER_FEATURES,
    WEIGHTED_FEATURES,
    Ranking,
    rank,
)
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.index import parse_policy, weight_text
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

NOW = 5000
ROWS = [(0, 1, 10), (0, 8, 3600), (100, 3, 77), (2500, 1, 86400), (4999, 16, 1), (5000, 2, 60)]
JOBS = [Job(submit, q, p, p) for submit, q, p in ROWS]


@pytest.fixture(scope="module")
def columns() -> JobColumns:
    submit, processors, requested = zip(*ROWS, strict=True)
    return JobColumns(few_jobs(16, submit, requested, processors))


def scores(ranking: Ranking) -> list[float]:
    """Return the scores at time NOW."""
    waiting = np.array([NOW - submit for submit, _, _ in ROWS], float)
    if ranking.by_submission:
        return waiting.tolist()
    assert ranking.score is not None
    x = np.zeros(1) if ranking.patience is None else waiting / ranking.patience
    score = ranking.score * x**3 if ranking.cubed else ranking.score + x
    return score.tolist()


@pytest.mark.parametrize("policy", sorted(SLOW_POLICIES))
def test_scores_are_those_of_the_definition(policy: str, columns: JobColumns) -> None:
    expected = [score_of(policy)(job, NOW) for job in JOBS]
    ours = scores(rank(policy, columns))
    if policy == "unicef":  # serial jobs, infinite there
        ours = [math.inf if score > 1e100 else score for score in ours]
    if policy == "lcfs":  # submit time - now is submit time, for an order
        ours = [score - NOW for score in ours]
    assert ours == pytest.approx(expected, rel=1e-15)


def test_the_oracle_knows_all_policies() -> None:
    by_usage = {name for name, policy in POLICIES.items() if policy.looks_at_usage}
    assert by_usage == {"fairshare", "energy-fairshare", "fs+efs"}  # see share_strategies.py
    assert set(SLOW_POLICIES) == set(POLICIES) - by_usage
    for name, policy in POLICIES.items():
        assert set(policy.weights) <= {*FEATURES, *USER_FEATURES}
        assert policy.meaning
        assert name == name.lower()


@settings(deadline=None)
@given(st.tuples(*[st.floats(-1e6, 1e6, allow_subnormal=False)] * 6).filter(any))
def test_weights_are_a_weighted_sum(weights: tuple[float, ...]) -> None:
    submit, processors, requested = zip(*ROWS, strict=True)
    table = {
        "submit_time": submit,
        "requested_processors": processors,
        "requested_time": requested,
    }
    columns = JobColumns(Workload.from_columns(table, processors=16))
    ranking = rank(weights, columns)
    ours = scores(ranking)
    for (submitted, q, p), score in zip(ROWS, ours, strict=True):
        wait = NOW - submitted
        terms = (q, p, wait, p / q, (wait + p) / p, p * q)
        parts = [w * term for w, term in zip(weights, terms, strict=True)]
        if set(np.flatnonzero(weights)) == {2}:
            # waiting alone is an order of submission, whatever its weight
            parts = [wait if weights[2] > 0 else submitted]
        assert score == pytest.approx(math.fsum(parts), rel=1e-9, abs=1e-9 * max(map(abs, parts)))


def test_each_way_of_giving_weights_is_the_same(columns: JobColumns) -> None:
    weights = (0.5, 0.0, 2.0, 0.0, 0.1, -1.0)
    named = dict(zip(WEIGHTED_FEATURES, weights, strict=True))
    for policy in (weights, list(weights), np.array(weights), named, "0.5,0,2,0,.1,-1"):
        assert parse_policy(policy) == parse_policy(weights)
        assert scores(rank(policy, columns)) == scores(rank(weights, columns))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_weight_is_exact(weight: float) -> None:
    assert float(weight_text(weight)) == weight
    assert weight_text(3.0) == "3"


test_mistakes = mistakes_of(globals(), Scheduler, fixtures=("columns",))
