"""Weeks of a small trace, one after the other."""

from __future__ import annotations

import numpy as np

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.benchmarks.studies.weeks import cut_weeks, weekly_slowdowns
from hpcgym.naming import WEEK_S
from hpcgym.simulation.run import learn_before

#: A trace of five weeks, the last four of which are simulated: few jobs, of a slower machine.
DRAWN = load_workload("lublin:jobs=1500,processors=64,seed=1,load=0.95")
TIMES = ("submit_time", "run_time", "requested_time")
WEEKS = cut_weeks(DRAWN.with_columns(**{name: 12 * DRAWN.columns[name] for name in TIMES}), 0)


def test_weeks_begin_with_what_was_learned_before_them() -> None:
    scheduler = Scheduler("saf", backfill_order="spf", policy_estimate="typical-ratio")
    values = weekly_slowdowns(WEEKS, scheduler)
    fresh = [float(simulate(week, scheduler).bsld.mean()) for week in WEEKS.values()]
    assert values[0] == fresh[0]
    assert values[1:] != fresh[1:]
    first, second, *_ = WEEKS
    learned = learn_before(WEEKS[first], scheduler, (first + 1) * WEEK_S)
    assert values[1] == simulate(WEEKS[second], scheduler, learned=learned).bsld.mean()


def test_a_week_hangs_on_no_later_one() -> None:
    scheduler = Scheduler("saf", backfill_order="spf", policy_estimate="ave2")
    before = weekly_slowdowns(WEEKS, scheduler)
    last = list(WEEKS)[-1]
    longer = WEEKS[last].with_columns(run_time=WEEKS[last].requested_time)
    after = weekly_slowdowns({**WEEKS, last: longer}, scheduler)
    assert after[:-1] == before[:-1]
    assert np.isfinite(before).all()
    assert after[-1] != before[-1]
