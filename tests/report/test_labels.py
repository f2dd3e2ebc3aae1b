"""Results and schedulers have names that people know."""

from dataclasses import replace

import pytest

from hpcgym.baselines import SCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.report.labels import (
    describe,
    drawable,
    labelled,
    named,
    scheduler_name,
    scheduler_names,
    subtitle,
)
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

WEIGHTS = (0.1, -0.2, 0.0, 0.0, 0.0, 0.7)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_bundle_keeps_its_name_whatever_its_passes(name):
    from dataclasses import replace

    for passes in ("per-event", "per-timestamp"):
        assert scheduler_name(replace(SCHEDULERS[name], passes=passes)) == name


def test_other_schedulers_are_named_by_their_rules():
    scheduler = Scheduler(policy=WEIGHTS, backfill="easy", threshold=72_000)
    text = scheduler_name(scheduler)
    assert text == describe(scheduler)
    assert "weights (0.1, -0.2, 0, 0, 0, 0.7)" in text
    assert "threshold 72,000 s" in text
    assert "no backfilling" in describe(Scheduler(policy="saf", backfill="none"))
    text = describe(Scheduler(estimate="ave2", correction="incremental"))
    assert "incremental correction" in text
    assert "correction" not in describe(Scheduler())


def test_all_that_differs_from_slurm_s_usual_backfilling_is_told():
    usual = "Slurm's backfilling every 30 s over 500 jobs, requested times"
    assert describe(Scheduler(backfill="slurm")).endswith(usual)
    other = describe(Scheduler(backfill="slurm:bf_resolution=30+bf_window_linear=10"))
    assert other.endswith("500 jobs, bf_resolution 30, bf_window_linear 10, requested times")


def test_a_policy_can_be_given_in_any_way():
    text = "weights (0.1, -0.2, 0, 0, 0, 0.7)"
    assert text in describe(Scheduler(policy=WEIGHTS))
    assert "weights (1,0,0,0,0,0)" in describe(Scheduler(policy="1,0,0,0,0,0"))
    assert "weights wait 1, area -0.5" in describe(Scheduler(policy={"wait": 1, "area": -0.5}))
    assert "predicted run times given" in describe(Scheduler(estimate=[5, 6, 7]))
    assert scheduler_name(Scheduler(estimate=[5, 6, 7])) == describe(Scheduler(estimate=[5, 6, 7]))


def test_estimates_are_said_in_words():
    texts = {name: describe(Scheduler(estimate=name)) for name in ESTIMATES}
    assert len(set(texts.values())) == len(ESTIMATES)
    for name, text in texts.items():
        assert name not in text.split(", ")


def test_estimates_with_numbers_of_their_own():
    assert "queue by FCFS, EASY backfilling by FCFS, the user's last run time, " in describe(
        Scheduler(estimate="ave1")
    )
    assert "mean of the user's last 12 run times" in describe(Scheduler(estimate="ave12"))
    text = describe(Scheduler(policy_estimate="regression:over=absolute,l2=0"))
    assert text.endswith(
        "policies by run times learned by regression (over=absolute, under=squared, weight=1, l2=0)"
    )


def test_a_result_without_jobs_has_metrics_and_no_picture(schedule):
    from hpcgym import simulate

    empty = simulate(schedule().workload.take(slice(0)))
    assert list(named(empty)) == ["easy"]
    with pytest.raises(HpcgymError, match="nothing to draw: easy has no jobs"):
        drawable(empty)


def test_results_of_one_scheduler_get_different_names(schedule):
    first, second = schedule(), schedule("lublin:jobs=50,processors=64,seed=7")
    jobs = [one.workload.name for one in (first, second)]
    rows = [f"easy, {jobs[0]}", f"easy, {jobs[1]}", f"easy, {jobs[0]} (2)"]
    assert list(named([first, second, first])) == rows
    small = schedule("lublin:jobs=50,processors=32")
    assert list(named([second, small])) == ["easy, 64 processors", "easy, 32 processors"]
    assert list(named(first)) == ["easy"]
    assert named({"mine": first}) == {"mine": first}


def test_names_tell_passes_where_only_these_differ(schedule):
    first = schedule()
    other = replace(first, scheduler=first.scheduler.but(passes="per-event"))
    saf = schedule(scheduler="saf")
    rows = ["easy, per-timestamp passes", "easy, per-event passes", "saf"]
    assert list(named([first, other, saf])) == rows


def test_names_tell_shares_where_only_these_differ():
    fair = SCHEDULERS["fairshare"]
    half_lives = [fair.but(fair_share={"half_life_s": 86_400 * days}) for days in (2, 3)]
    shares = [f"fair share {one.describe()['fair_share']}" for one in half_lives]
    rows = ["fairshare, equal shares", *(f"fairshare, {one}" for one in shares)]
    assert scheduler_names([fair, *half_lives]) == rows
    assert scheduler_names([half_lives[0], SCHEDULERS["easy"]]) == ["fairshare", "easy"]


def test_a_name_has_the_rules_behind_it_that_are_not_its_own():
    saf = SCHEDULERS["saf"]
    told = {
        "saf": saf.but(passes="per-event", allocation="best-fit", correction="incremental"),
        "saf (backfill fcfs)": saf.but(backfill_order="fcfs"),
        "saf (no backfilling)": saf.but(backfill="none", backfill_order="fcfs", estimate="ave2"),
        "saf (no backfilling, estimate ave2, kill correction)": saf.but(
            backfill="none", estimate="ave2", correction="kill"
        ),
        "saf (policies by user-ratio, threshold 60 s)": saf.but(
            policy_estimate="user-ratio", threshold=60
        ),
    }
    for row, scheduler in told.items():
        assert labelled("saf", saf, scheduler) == row
    assert labelled("saf", saf, saf.but(quota="user:jobs=1"), ["hold"]) == "saf"
    other = saf.but(passes="per-event", allocation="best-fit", threshold=60)
    row = "saf (per-event passes, best-fit allocation)"
    assert labelled("saf", saf, other, ["passes", "allocation"]) == row
    assert labelled("saf", saf.but(quota="user:jobs=1"), saf) == "saf (no quota)"
    easy = SCHEDULERS["easy"]
    assert labelled("easy", easy, easy.but(policy_estimate="user-ratio")) == "easy"
    assert labelled("easy", easy, easy.but(estimate="ave2")) == "easy (estimate ave2)"


def test_the_subtitle_names_workload_machine_scheduler_and_passes(schedule, make):
    result = schedule()
    text = subtitle({"easy": result})
    assert text == (
        f"{result.workload.name} · 300 jobs · 64 processors · easy · per-timestamp passes"
    )
    assert "easy" not in subtitle({"easy": result, "saf": schedule(scheduler="saf")})
    assert "1 job · 1 processor · " in subtitle(named(make([(0, 5, 1)], processors=1)))


def test_what_is_no_result_is_said_in_a_line():
    from hpcgym import load_workload, simulate, validate_schedule
    from hpcgym.workload import interesting_extracts

    workload = load_workload("lublin:jobs=50,processors=8,load=1.2")
    result = simulate(workload)
    for given in (workload, [workload], {"mine": workload}):
        with pytest.raises(HpcgymError, match=r"^results must be .* returns, not a Workload"):
            drawable(given)
    with pytest.raises(HpcgymError, match=r"^validate_schedule takes .*, not a Workload$"):
        validate_schedule(workload)
    with pytest.raises(HpcgymError, match=r"^interesting_extracts takes .*, not a Result$"):
        interesting_extracts(result)
    with pytest.raises(HpcgymError, match=r"^simulate takes a workload .*, not a DataFrame$"):
        simulate(result.jobs)
    with pytest.raises(HpcgymError, match=r"or the \.swf file of hpcgym simulate --output$"):
        interesting_extracts(workload)


def test_an_extract_tells_how_many_jobs_it_did_not_start():
    from hpcgym import load_workload, simulate

    trace = simulate(load_workload("lublin:jobs=50,processors=8,load=1.2")).as_workload()
    part = trace.extract(int(trace.submit_time[25]))
    running = int(part.initial.running.sum())
    assert running > 0
    text = subtitle({"easy": simulate(part)})
    assert f"{len(part)} jobs, of which {running} run at the beginning · " in text
    assert repr(part.initial).startswith(f"Initial(begin={part.initial.begin}: {running} jobs run")
    assert len(repr(part.initial)) < 120


def test_the_subtitle_of_several_tells_the_rules_that_all_have():
    workload = load_workload("lublin:jobs=30,processors=16")
    rules = {"threshold": 600, "estimate": "ave2", "policy": "saf"}
    names = ("easy", "easy-sjbf")
    text = subtitle({name: simulate(workload, name, **rules) for name in names})
    assert text.endswith("passes · queue by SAF · estimate ave2 · threshold 600 s")
    usual = subtitle({name: simulate(workload, name) for name in names})
    assert usual.endswith(" · per-timestamp passes")
    mixed = {"easy": simulate(workload, "easy"), "prb": simulate(workload, "prb")}
    assert subtitle(mixed).endswith(" · per-timestamp passes")
    own = {name: simulate(workload, name, policy=lambda view: -view.duration) for name in names}
    assert " · queue by " in subtitle(own)


def test_the_subtitle_names_all_machines():
    workload = load_workload("lublin:jobs=30,processors=16")
    sizes = {f"easy on {size}": simulate(workload, processors=size) for size in (16, 24, 32)}
    assert " · 16 processors, 24 processors and 32 processors · " in subtitle(sizes)
