"""Searches on replays: what a scheduler is worth, what is met, when they end, and go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.agents import replays
from hpcgym.agents.evolution import CmaEs, PairedEs
from hpcgym.agents.practice import maker
from hpcgym.agents.rule_es import RuleEs
from hpcgym.schedule.gains import felt, used
from hpcgym.workload.stretching import stretched

WORKLOAD = "lublin:jobs=1500,processors=32,seed=3,load=0.5"
SMALL: dict[str, Any] = {"generations": 3, "population": 4, "worlds": 0}


def make_of(workload: object = WORKLOAD) -> Any:
    return maker(workload, "hpcgym/QueueOrdering-v2", {})


# --- What a scheduler is worth --------------------------------------------------------------------


def test_easy_is_worth_nothing_and_what_starves_costs() -> None:
    met = replays.meet(load_workload(WORKLOAD))
    assert replays.value(met, Scheduler()) == 0.0
    assert replays.value(met, Scheduler("saf")) > 0
    lazy = Scheduler("-log(max(requested,1))-3*log(processors)", backfill="none")
    ours = simulate(met.jobs, lazy)
    waits = np.sort(ours.wait)[-1] / 3600 / max(2 * met.easy.longest_wait_h, 72)
    areas = np.asarray(ours.workload.requested_processors * ours.run_time, float)
    weighted = float((areas * ours.wait).sum() / areas.sum()) / 3600
    uses = np.array([waits, weighted / (2 * met.easy.area_weighted_wait_h)])
    weeks = (met.jobs.submit_time - met.jobs.submit_time[0]) // 604_800
    easy = simulate(met.jobs, Scheduler())
    logs = [
        np.log(easy.bsld[weeks == week].mean() / ours.bsld[weeks == week].mean())
        for week in np.unique(weeks)
        if (weeks == week).sum() >= 20
    ]
    cost = 2 * np.log(np.maximum(uses / 0.9, 1)).sum()
    assert cost > 0
    assert replays.value(met, lazy) == pytest.approx(np.mean(logs) - cost)


def test_where_nothing_waits_under_easy_a_wait_of_minutes_keeps_the_gate() -> None:
    met = replays.meet(few_jobs(64, range(0, 1000, 50), [100] * 20, [1] * 20))
    assert replays.value(met, Scheduler("saf")) == met.easy.area_weighted_wait_h == 0
    waits = Scheduler("saf", quota="user:jobs=1")
    slowdown = simulate(met.jobs, waits).bsld.mean()
    assert replays.value(met, waits) == pytest.approx(-np.log(slowdown))


def test_values_are_means_over_cases_with_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met = [replays.meet(load_workload(WORKLOAD).take(slice(0, n))) for n in (700, 900)]
    rules = [Scheduler("saf"), Scheduler("sjf"), Scheduler()]
    told = []
    for threads in (1, 3):
        monkeypatch.setattr(replays, "threads_here", lambda number=threads: number)
        told.append(replays.values(met, rules))
    alone = [np.mean([replays.value(case, rule) for case in met]) for rule in rules]
    assert told[0] == told[1] == pytest.approx(alone)


# --- What is met ----------------------------------------------------------------------------------


def test_logs_are_more_or_less_crowded() -> None:
    jobs = load_workload(WORKLOAD)
    slow = stretched(jobs, 2.0)
    assert (np.diff(slow.submit_time) == 2 * np.diff(jobs.submit_time)).all()
    assert (slow.run_time == jobs.run_time).all()
    practice = replays._Cases({"log": jobs}, RuleEs(worlds=2).plan, 10**9)
    rng, cut = np.random.default_rng(0), jobs.row_at(0.75)
    factors, names = [], set()
    for _ in range(20):
        first, *worlds = (make() for make in practice.drawn(rng))
        assert len(first) == cut
        ends = [part.submit_time - part.submit_time[0] for part in (first, jobs.take(slice(cut)))]
        factors.append(ends[0][-1] / ends[1][-1])
        names |= {world.name for world in worlds}
    assert 0.8 <= min(factors) < 0.85
    assert 1.05 < max(factors) <= 1.1001
    assert len(names) == 40
    assert {name.partition(" ")[0] for name in names} > {"lublin-128", "lublin-1024"}
    (alone,) = practice._apart
    assert alone.submit_time[0] == jobs.submit_time[cut]


def test_it_ends_with_its_steps_or_its_generations() -> None:
    told: list[int] = []
    jobs = len(make_of().logs[load_workload(WORKLOAD).name])
    steps = 60 * jobs
    agent = RuleEs(population=4, generations=90, worlds=0)
    agent.train(make_of(), 0, steps, lambda steps, values: told.append(steps))
    assert len(told) > 2
    assert told[-1] <= steps
    told.clear()
    RuleEs(**SMALL).train(make_of(), 0, 10**9, lambda steps, values: told.append(steps))
    assert len(told) == 3


def test_all_that_is_simulated_is_within_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def counting(jobs: Any, rule: Any) -> Any:
        done.append(len(jobs))
        return simulate(jobs, rule)

    monkeypatch.setattr(replays, "simulate", counting)
    for steps in (3_000, 40_000, 400_000):
        done.clear()
        RuleEs(population=4, generations=12, worlds=1).train(make_of(), 0, steps)
        assert 0 < sum(done) <= steps


# --- When it ends, and what it returns ------------------------------------------------------------


def test_the_mean_that_is_best_on_what_is_apart_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = iter([0.2, 0.1, 0.3, 0.2, 0.25, 0.1, 0.29, 0.0, 9.9])
    seen = []

    def judged(self: Any, rule: Scheduler) -> float:
        seen.append(rule)
        return next(values)

    monkeypatch.setattr(replays._Cases, "judged", judged)
    rows: list[Any] = []
    agent = RuleEs(**{**SMALL, "generations": 40})
    agent.train(make_of(), 0, 10**9, lambda steps, told: rows.append(told))
    assert len(seen) == 8  # what it begins with first; five that are no better, and it ends
    assert len(rows) == 28
    told = [row["train/judged"] for row in rows if "train/judged" in row]
    assert told == [0.1, 0.3, 0.2, 0.25, 0.1, 0.29, 0.0]
    assert agent.scheduler == seen[2]
    monkeypatch.setattr(replays._Cases, "judged", lambda self, rule: 0.0)
    agent.train(make_of(), 0, 10**9)
    assert agent.scheduler == seen[0]  # none is better than the beginning


def test_of_the_best_means_the_first_that_keeps_the_gate_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each of five replays, two of them more crowded; else what lies on the way to the best."""
    jobs = load_workload("lublin:jobs=1500,processors=32,seed=3,load=1.1")
    agent = RuleEs(scheduler="saf-typical", **SMALL)
    begun = agent.vector.copy()
    found = begun + np.linspace(-1, 1, len(begun))
    found[9] = -6.0  # who has waited comes last
    practice = replays._Cases({"log": jobs}, agent.plan, 10**9)
    everybody = np.ones(len(jobs), np.bool_)
    cases = [replays.meet(stretched(jobs, gaps)) for gaps in (0.98, 1.0, 1.02, 0.9, 0.8)]

    def uses(share: float) -> float:
        rule = agent.scheduler_of(begun + share * (found - begun))
        return max(
            max(used(case.easy, felt(simulate(case.jobs, rule), everybody))) for case in cases
        )

    def kept(*means: Any) -> list[float]:
        return agent._kept([*means, begun, begun - 1], begun, practice).tolist()

    monkeypatch.setattr("hpcgym.schedule.gains.FLOOR_H", 0.0)
    monkeypatch.setattr("hpcgym.schedule.gains.FLOOR_WEIGHTED_H", 0.0)
    tried = (1.0, 0.75, 0.5, 0.25, 0.0)
    by_share = {share: uses(share) for share in tried}
    least = min(tried, key=lambda share: by_share[share])
    for share in tried:
        most = by_share[share] * (1 + 1e-9)
        first = next(other for other in tried if by_share[other] <= most)
        monkeypatch.setattr("hpcgym.schedule.gains.MOST", 2.0 * most)
        assert kept(found) == (begun + first * (found - begun)).tolist()
        if by_share[1.0] > most:  # the second best does not have to be moved
            second = begun + share * (found - begun)
            assert kept(found, second) == second.tolist()
        monkeypatch.setattr("hpcgym.schedule.gains.MOST", 2.0)
    monkeypatch.setattr("hpcgym.schedule.gains.MOST", 1e-9)
    assert kept(found) == (begun + least * (found - begun)).tolist()
    assert kept() == begun.tolist()  # nothing is better than the beginning


def test_a_search_goes_on_from_what_was_told() -> None:
    rows: list[Any] = []

    def log(steps: int, told: Any) -> None:
        rows.append({key: str(number) for key, number in told.items()})

    settings = {**SMALL, "generations": 6, "worlds": 1}
    whole = RuleEs(**settings).train(make_of(), 0, 10**9, log)
    for known in (1, 4, 5):
        more: list[Any] = []
        again = RuleEs(**settings).train(
            make_of(), 0, 10**9, lambda steps, told, more=more: more.append(told), rows[:known]
        )
        assert len(more) == 6 - known
        assert (again.vector == whole.vector).all()


# --- Where a search looks next --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cma", "pairs"])
def test_searches_climb(kind: str) -> None:
    """A hill whose top is known, with a value for each vector that was asked for, in its order."""
    top = np.array([1.0, -2.0, 0.5])
    begin = np.zeros(3)
    search: Any = CmaEs(begin, 0.5, 10, 1) if kind == "cma" else PairedEs(begin, 0.3, 10, 0.2, 1)
    for _ in range(60):
        vectors = search.ask()
        assert len(vectors) == 10
        search.tell([-float(((vector - top) ** 2).sum()) for vector in vectors])
    assert np.abs(search.mean - top).max() < 0.35


def test_pairs_are_opposite_and_what_changes_nothing_moves_nothing() -> None:
    search = PairedEs(np.array([1.0, 2.0]), 0.3, 6, 0.2, 0)
    vectors = search.ask()
    assert np.allclose(np.add(vectors[::2], vectors[1::2]) / 2, [1.0, 2.0])
    search.tell([0.7] * 6)
    assert search.mean.tolist() == [1.0, 2.0]
    vectors = search.ask()
    search.tell([vector[0] for vector in vectors])
    assert search.mean[0] > 1.0
