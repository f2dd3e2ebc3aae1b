"""Priorities that are changed: the order comes out, and no fewer changes would do."""

from __future__ import annotations

from itertools import combinations, pairwise

from drawing import given
from drawing import strategies as st

from hpcgym.drive.driving import HIGHEST, LOWEST, changes

#: What jobs have: Slurm's own priorities, some that were set, and ones without room between them.
VALUES = st.one_of(
    st.integers(1, LOWEST),
    st.integers(LOWEST + 1, HIGHEST - 1),
    st.integers(LOWEST + 1, LOWEST + 9),
)


def _longest(values: list[int]) -> int:
    """How many of the values that were set fall, at most; by trying all."""
    for size in range(len(values), 0, -1):
        for part in combinations(values, size):
            if all(LOWEST < v < HIGHEST for v in part) and all(a > b for a, b in pairwise(part)):
                return size
    return 0


@given(st.lists(VALUES, max_size=9))
def test_the_order_comes_out(given: list[int]) -> None:
    jobs = [str(number) for number in range(len(given))]
    present = dict(zip(jobs, given, strict=True))
    new = changes(jobs, present)
    after = [new.get(job, present[job]) for job in jobs]
    assert all(a > b for a, b in pairwise(after))
    assert list(new) == [job for job in jobs if job in new]
    assert all(LOWEST < value < HIGHEST for value in new.values())
    if all(a > b for a, b in pairwise(given)):
        assert new == {}
    else:
        assert all(value > LOWEST for value in after)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9))
def test_no_fewer_changes_would_do(steps: list[int]) -> None:
    """With room between all values, those that stand right stay: as many as can."""
    given = [LOWEST + 1000 * (step + 1) for step in steps]
    new = changes([str(number) for number in range(len(given))], dict(_named(given)))
    assert len(new) == len(given) - _longest(given)


def _named(values: list[int]) -> list[tuple[str, int]]:
    return [(str(number), value) for number, value in enumerate(values)]


def test_thousands_of_jobs() -> None:
    """Each of 500 comes between the others, and now and then all must get new priorities."""
    present: dict[str, int] = {}
    order: list[str] = []
    total = 0
    for number in range(500):
        order.insert(0 if number % 3 else len(order) // 2, str(number))
        present[str(number)] = LOWEST - number
        new = changes(order, present)
        present |= new
        total += len(new)
        assert all(present[a] > present[b] for a, b in pairwise(order))
    assert total < 500 * 60
