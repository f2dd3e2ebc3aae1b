"""Property tests draw the same cases in each run, others when asked to, and print what fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import seeded
import seeded as st
from mistakes import why_not

from hpcgym import Workload

ANYTHING = st.recursive(
    st.one_of(
        st.integers(), st.integers(3, 5), st.floats(-1, 1), st.booleans(), st.none(),
        st.lists(st.sampled_from("abc"), min_size=2, max_size=4, unique=True),
        st.dictionaries(st.integers(0, 9), st.just(1), max_size=3),
        st.permutations(range(4)),
    ),
    lambda inner: st.tuples(inner, inner),
    max_leaves=4,
)  # fmt: skip


def drawn(test: Any = None, *strategies: Any, cases: int = 30) -> list[Any]:
    """Return the cases of a test."""
    cases_drawn: list[Any] = []

    @seeded.settings(max_examples=cases)
    @seeded.given(*(strategies or (ANYTHING,)))
    def keep(case: Any) -> None:
        cases_drawn.append(case)
        if test:
            test(case)

    keep()
    return cases_drawn


def test_the_same_cases_in_each_run_and_others_by_another_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = drawn()
    assert len({repr(case) for case in first}) > 20
    assert repr(drawn()) == repr(first)
    monkeypatch.setattr(seeded, "seed", 7)
    others = drawn()
    assert len({repr(case) for case in others} - {repr(case) for case in first}) > 15
    assert repr(drawn()) == repr(others)


@pytest.mark.parametrize(
    ("strategy", "holds"),
    [
        (st.integers(3, 5), lambda case: case in (3, 4, 5)),
        (st.lists(st.integers(0, 9), min_size=2, max_size=4), lambda case: 2 <= len(case) <= 4),
        (st.sets(st.integers(0, 9), min_size=9), lambda case: len(case) >= 9),
        (st.floats(-2, 1e9), lambda case: -2 <= case <= 1e9),
        (st.permutations("abc"), lambda case: sorted(case) == ["a", "b", "c"]),
        (st.integers(0, 9).filter(lambda n: n % 2), lambda case: case % 2),
    ],
)
def test_values_are_what_was_asked_for(strategy: Any, holds: Any) -> None:
    values = drawn(None, strategy, cases=200)
    assert all(map(holds, values))
    assert len({repr(case) for case in values}) > 2


def test_rejected_cases_do_not_count() -> None:
    taken: list[int] = []

    def take(case: int) -> None:
        seeded.assume(case > 4)
        taken.append(case)

    drawn(take, st.integers(0, 9), cases=20)
    assert len(taken) == 20
    none = why_not(drawn, lambda case: seeded.assume(False), errors=AssertionError)
    assert none.endswith("cases 0 were accepted")


def test_a_failing_case_is_printed_and_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"submit_time": [0, 7], "run_time": [5, 5], "requested_processors": [1, 2]}
    workload = Workload.from_columns(columns, processors=4, name="two")

    @seeded.settings(max_examples=50)
    @seeded.given(st.just(workload), st.integers(0, 9), st.data())
    def fails(jobs: Workload, number: int, data: seeded.Data) -> None:
        values = data.draw(st.just(np.array([number])))
        seen.append(number)
        assert values[0] < 9

    seen: list[int] = []
    with pytest.raises(AssertionError) as caught:
        fails()
    note = caught.value.__notes__[0]
    assert f"HPCGYM_CASE={len(seen) - 1} runs it alone" in note
    assert "number = 9" in note
    assert "drawn from data: np.array([9], np.int64)" in note
    again = next(line for line in note.splitlines() if line.startswith("jobs = "))
    kept: Workload = eval(again.removeprefix("jobs = "))
    assert kept.submit_time.tolist() == [0, 7]
    assert kept.processors == 4
    monkeypatch.setenv("HPCGYM_CASE", str(len(seen) - 1))
    seen.clear()
    with pytest.raises(AssertionError):
        fails()
    assert seen == [9]
