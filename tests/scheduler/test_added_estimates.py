"""An estimate that is a formula is added in one statement: a row of one table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from online import EASY, assert_same, cases, oracle

from hpcgym import HpcgymError, Scheduler, simulate
from hpcgym.baselines.labels import describe
from hpcgym.cli import names
from hpcgym.compilation import jit_part
from hpcgym.engine.answers.formulas import FORMULAS, Formula
from hpcgym.engine.answers.histories import DECAY, LAST, LOGARITHMS, NUMBER, WEIGHT
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.sweep.batch import BatchSimulator
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.slow


@jit_part
def median_of_three(requested, known):
    if known.memory[NUMBER] < 3:
        return np.float64(requested)
    a, b, c = known.memory[LAST], known.memory[LAST + 1], known.memory[LAST + 2]
    return max(min(a, b), min(max(a, b), c))


@jit_part
def fifth_last(requested, known):
    if known.memory[NUMBER] < known.last:
        return math.nan  # the requested time
    return known.memory[LAST + known.last - 1] - 0.5


@jit_part
def ratio_of_class(requested, known):
    ratios = known.ratios[known.of_class]
    return requested * math.exp(ratios[LOGARITHMS] / max(ratios[WEIGHT], 1.0))


@pytest.fixture(scope="module", autouse=True)
def _added() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, formula in {
            "median": Formula("the middle one", "the median of three", median_of_three, 3),
            "fifth": Formula("the fifth one", "the last but {last}", fifth_last, 5),
            "class-ratio": Formula("by class", "those of a class", ratio_of_class, by_class=True),
        }.items():
            patch.setitem(FORMULAS, name, formula)
        yield


class Median:
    """The same in Python: the median of three run times of the user."""

    def __init__(self) -> None:
        self.runs: dict[int, list[float]] = defaultdict(list)

    def predict_one(self, x: dict[str, Any]) -> float:
        last = self.runs[x["user"]][-3:]
        return sorted(last)[1] if len(last) == 3 else float(x["requested"])

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        self.runs[x["user"]].append(y)


class Fifth(Median):
    """The run time of the last job but four, half a second less."""

    def predict_one(self, x: dict[str, Any]) -> float:
        runs = self.runs[x["user"]]
        return runs[-5] - 0.5 if len(runs) >= 5 else float(x["requested"])


class ClassRatio:
    """The geometric mean of ratios of the user's jobs of that width, the latest counting most."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, float], tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))

    def predict_one(self, x: dict[str, Any]) -> float:
        count, total = self.sums[x["user"], x["processors"]]
        return float(x["requested"] * math.exp(total / count if count else 0))

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        key = x["user"], x["processors"]
        count, total = self.sums[key]
        self.sums[key] = DECAY * count + 1, DECAY * total + math.log(y / x["requested"])

    def __deepcopy__(self, memo: Any) -> ClassRatio:
        copy = ClassRatio()
        copy.sums.update(self.sums)
        return copy


SLOW: dict[str, Any] = {"median": Median, "fifth": Fifth, "class-ratio": ClassRatio}


def slowly(name: str) -> Any:
    """An estimate as the oracle takes it."""
    return SLOW[name]() if name in SLOW else name


@settings(max_examples=300)
@given(cases(), *[st.sampled_from([*SLOW, *SLOW, "ave2", "typical-ratio"])] * 2)
def test_it_predicts_as_a_slow_one_does(
    case: tuple[Workload, dict[str, Any], dict[str, Any]], first: str, second: str
) -> None:
    workload, fast, slow = case
    fast |= {"estimate": first, "policy_estimate": second}
    slow |= {"estimate": slowly(first), "policy_estimate": slowly(second)}
    result = simulate(workload, **fast)
    assert_same(result, oracle(workload, slow))
    assert simulate(workload, **slow).start.tolist() == result.start.tolist()


@pytest.mark.parametrize("name", SLOW)
def test_it_predicts_hundreds_of_jobs(name: str) -> None:
    for backfill in ("easy", "conservative"):
        rules = {
            "policy": "saf",
            "backfill": backfill,
            "backfill_order": "sjbf",
            "threshold": None,
            "correction": "predicted-again",
            "passes": "per-timestamp",
        }
        result = simulate(EASY, **rules, estimate=name, policy_estimate=name)
        assert len(set(result.predicted_run_time.tolist())) > 30
        slow = {"estimate": slowly(name), "policy_estimate": slowly(name)}
        assert_same(result, oracle(EASY, {**rules, **slow}))


def test_one_goes_on_with_what_was_learned() -> None:
    first, second = EASY.take(slice(0, 150)), EASY.take(slice(150, 250))
    for name in SLOW:
        learned = [simulate(first, estimate=one).learned for one in (name, slowly(name))]
        again = simulate(second, estimate=name, learned=learned[0])
        slow = simulate(second, estimate=slowly(name), learned=learned[1])
        assert again.predicted_run_time.tolist() == slow.predicted_run_time.tolist()
        fresh = simulate(second, estimate=name)
        assert again.predicted_run_time.tolist() != fresh.predicted_run_time.tolist()


def test_it_is_named_and_said_in_words() -> None:
    assert "the median of three" in describe(Scheduler(estimate="median"))
    assert "the last but 5" in describe(Scheduler(policy_estimate="fifth", policy="saf"))
    assert ("fifth", "the fifth one") in names.estimates()
    with pytest.raises(HpcgymError, match="did you mean 'median'"):
        Scheduler(estimate="mediam")


def test_what_is_compiled_beforehand_refuses_it() -> None:
    with pytest.raises(HpcgymError, match="estimate='fifth' and environments"):
        QueueOrdering(EASY, estimate="fifth")
    with pytest.raises(HpcgymError, match="policy_estimate='median' and a batch"):
        BatchSimulator([EASY], ["area"], Scheduler(policy_estimate="median"))
