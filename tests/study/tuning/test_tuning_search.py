"""The search itself, told losses that are known: no simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.study.tuning.space import Space
from hpcgym.study.tuning.trials import FIRST_LOOK, WIDTHS, Candidates, SearchResults, searching
from hpcgym.study.tuning.tune import simplest

UNITS = np.array([1.0, 1.0])
SPACE = Space(features="area,wait", estimates=["requested", "ave2"])


def loss(rules: dict[str, Any], seeds: tuple[int, ...], noise: float) -> float:
    """Least for weights over areas by ave2, with a threshold of 10 hours; noisy."""
    policy = rules["policy"]
    wrong = 3.0 if not isinstance(policy, dict) else abs(policy.get("area", 0) + 1)
    wrong += rules["policy_estimate"] != "ave2"
    wrong += abs(np.log(rules.get("threshold", 1e7) / 36_000)) / 3 + ("hold" in rules)
    drawn = [np.random.default_rng([seed, len(str(rules))]).normal() for seed in seeds]
    return float(1 + wrong + noise * np.mean(drawn))


def run(
    budget: int = 600, seed: int = 0, noise: float = 0.05
) -> tuple[SearchResults, list[Candidates]]:
    asked: list[Candidates] = []

    def answer(candidates: Candidates) -> Any:
        asked.append(candidates)
        return np.array([loss(rules, candidates.seeds, noise) for rules in candidates.rules])

    return searching(SPACE, UNITS, answer, budget=budget, seed=seed), asked


def test_it_finds_the_best_rules() -> None:
    search, _ = run()
    best = min(search.finalists, key=lambda rules: loss(rules, (0,), 0.0))
    assert loss(best, (0,), 0.0) < 1.1
    assert best["policy_estimate"] == "ave2"
    assert 30_000 < best["threshold"] < 43_000
    assert all(rules not in search.finalists[:k] for k, rules in enumerate(search.finalists))


def test_the_same_losses_lead_the_same_way_and_other_seeds_do_not() -> None:
    assert run()[0] == run()[0]
    assert run()[0].finalists != run(seed=1)[0].finalists


def test_rounds_get_fewer_arms_and_equal_parts_of_the_budget() -> None:
    _, asked = run(budget=900)
    assert max(len(candidates.rules) for candidates in asked) <= 256  # which is not long in coming
    assert sum(
        len(candidates.rules) for candidates in asked if candidates.stage == FIRST_LOOK
    ) >= len(SPACE.arms())
    for number in (1, 2, 3):
        stage = [
            len(candidates.rules) for candidates in asked if candidates.stage == f"round {number}"
        ]
        tried = sum(stage[:-1])  # the last compares the middles with where runs were best
        assert WIDTHS[number - 1] <= stage[-1] <= 2 * WIDTHS[number - 1]
        # arms without numbers take nothing, and a generation may go beyond
        assert tried <= 300 + 8 * WIDTHS[number - 1]


def test_no_two_generations_see_the_same_jitter() -> None:
    search, asked = run()
    asked_on: dict[tuple[int, ...], set[str]] = {}
    for candidates in asked:
        asked_on.setdefault(candidates.seeds, set()).add(candidates.stage)
    seeds = [seed for some in asked_on for seed in some]
    assert len(seeds) == len(set(seeds))
    assert not {*search.seeds} & {*seeds}
    assert [len(stages) for stages in asked_on.values()] == [1] * len(asked_on)


def test_it_ends_where_arms_have_no_numbers() -> None:
    space = Space(orders=["saf", "spf"], levers=())
    tried: list[int] = []

    def answer(candidates: Candidates) -> Any:
        tried.append(len(candidates.rules))
        return np.arange(len(candidates.rules), dtype=float)

    search = searching(space, np.ones(6), answer, budget=100, seed=0)
    assert 0 < len(search.finalists) <= WIDTHS[0]
    assert sum(tried) < 400


# --- The choice -----------------------------------------------------------------------------


def test_the_simplest_that_weeks_do_not_tell_from_the_best() -> None:
    weeks = np.array([[1.0, 2.0, 3.0, 1.0, 2.0], [1.2, 1.8, 3.2, 1.2, 1.8], [2.0, 3, 4, 2, 3]])
    losses = weeks.mean(axis=1)
    # 0.04 above the best, and the standard error over the weeks is 0.1
    assert simplest(losses, weeks, [5, 1, 0]) == 1
    assert simplest(losses, weeks, [1, 1, 0]) == 0
    # surely worse, however simple
    assert simplest(losses, weeks, [5, 6, 0]) == 0


def test_what_breaks_bounds_is_not_taken_for_its_simplicity() -> None:
    weeks = np.array([[1.0, 2.0, 3.0, 1.0, 2.0], [1.2, 1.8, 3.2, 1.2, 1.8]])
    assert simplest(weeks.mean(axis=1) + np.array([0.0, 2.0]), weeks, [5, 1]) == 0


def test_few_weeks_tell_nothing_apart() -> None:
    weeks = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 3.0, 5.0]])
    assert simplest(weeks.mean(axis=1), weeks, [3, 2, 0]) == 1
