"""Schedulers have names that people know."""

from dataclasses import replace

import pytest

from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.labels import (
    describe,
    in_short,
    labelled,
    rules_of_all,
    scheduler_name,
    scheduler_names,
)
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.rules import POWER, Scheduler

WEIGHTS = (0.1, -0.2, 0.0, 0.0, 0.0, 0.7)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_bundle_keeps_its_name_whatever_its_passes(name):
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


def test_names_tell_shares_where_only_these_differ():
    fair = SCHEDULERS["fairshare"]
    half_lives = [fair.but(fair_share={"half_life_s": 86_400 * days}) for days in (2, 3)]
    shares = [f"fair share {scheduler.describe()['fair_share']}" for scheduler in half_lives]
    rows = ["fairshare, equal shares", *(f"fairshare, {share}" for share in shares)]
    assert scheduler_names([fair, *half_lives]) == rows
    assert scheduler_names([half_lives[0], SCHEDULERS["easy"]]) == ["fairshare", "easy"]


def test_a_name_has_the_rules_behind_it_that_are_not_its_own():
    saf = SCHEDULERS["saf"]
    rules = {
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
    for row, scheduler in rules.items():
        assert labelled("saf", saf, scheduler) == row
    assert labelled("saf", saf, saf.but(quota="user:jobs=1"), ["hold"]) == "saf"
    other = saf.but(passes="per-event", allocation="best-fit", threshold=60)
    row = "saf (per-event passes, best-fit allocation)"
    assert labelled("saf", saf, other, ["passes", "allocation"]) == row
    assert labelled("saf", saf.but(quota="user:jobs=1"), saf) == "saf (no quota)"
    easy = SCHEDULERS["easy"]
    assert labelled("easy", easy, easy.but(policy_estimate="user-ratio")) == "easy"
    assert labelled("easy", easy, easy.but(estimate="ave2")) == "easy (estimate ave2)"


@pytest.mark.parametrize(
    ("scheduler", "name"),
    [
        *((scheduler, name) for name, scheduler in COSCHEDULERS.items()),
        (COSCHEDULERS["easy-co"].but(pairs_above=1), "easy-co, pairs above 1"),
        (COSCHEDULERS["easy-co"].but(allocation="part:3"), "easy-co, part:3 allocation"),
        (Scheduler(allocation="compact"), "easy, compact allocation"),
        *((Scheduler(power=rule), f"easy, {rule} power") for rule in POWER if rule != "none"),
        (Scheduler(dispatcher="prb"), "prb"),
        (Scheduler(dispatcher="prb", allocation="best-fit"), "prb, best-fit allocation"),
        (Scheduler(dispatcher="prb", correction="next-second"), "prb"),
        (Scheduler(dispatcher="pcp20", allocation="worst-fit"), "pcp20"),  # it chooses nodes itself
    ],
)
def test_what_has_a_name_is_called_by_it(scheduler: Scheduler, name: str) -> None:
    assert scheduler_name(scheduler) == name


def test_long_rules_are_told_in_short():
    """As those of a site's slurm.conf and its QOS; only lists of all rules have the whole text."""
    order = " + ".join(f"{k} * wait - {k} * processors" for k in range(1, 20))
    quota = "; ".join(f"queue={name}/user:processors={k}" for k, name in enumerate("abcdefg", 1))
    rules = Scheduler(policy=order, quota=quota)
    shortened = in_short(f"queue by {order}"), in_short(f"quota {quota}")
    assert [text[-1] for text in shortened] == ["…", "…"]
    for text in (describe(rules), ", ".join(rules_of_all([rules, rules]))):
        assert [text_within in text for text_within in (*shortened, order, quota)] == [
            True,
            True,
            False,
            False,
        ]
    assert labelled("mine", Scheduler(policy=order), rules) == f"mine ({shortened[1]})"
    assert all(text_within in describe(rules, whole=True) for text_within in (order, quota))
    assert (rules.describe()["policy"], rules.describe()["quota"]) == (order, quota)
