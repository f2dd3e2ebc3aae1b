"""Cases, and how factors are combined into them: all pairs of values, or all combinations."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

Row = dict[str, str]  # factor -> the name of its value
Factors = Mapping[str, Sequence[str]]  # factor -> the names of its values, the usual one first
Excluded = Callable[[Row], bool]  # of a row that may have only some factors yet


class Case(NamedTuple):
    """One thing that is simulated.

    Attributes
    ----------
    name : group/factor=value,... of the values that are not the usual ones.
    run : simulates it and returns what is to be hashed, by name.
    """

    name: str
    run: Callable[[], Mapping[str, Any]]


class Group(NamedTuple):
    """Cases whose names begin with the same word; they are found when somebody looks.

    Attributes
    ----------
    name : the word; several groups may have it.
    cases : to be gone through once.
    """

    name: str
    cases: Iterable[Case]


def named(group: str, factors: Factors, row: Row) -> str:
    """Return the name of a case."""
    unusual = [f"{key}={row[key]}" for key, values in factors.items() if row[key] != values[0]]
    return f"{group}/{','.join(unusual) or 'usual'}"


def cases_of(group: str, factors: Factors, rows: Iterable[Row], run: Callable[[Row], Any]) -> Group:
    """Return a group with a case for each row."""
    cases = (Case(named(group, factors, row), partial(run, row)) for row in rows)
    return Group(group, cases)


def product(factors: Factors, excluded: Excluded = lambda row: False) -> Iterator[Row]:
    """Yield all combinations."""
    for values in itertools.product(*factors.values()):
        row = dict(zip(factors, values, strict=True))
        if not excluded(row):
            yield row


def pairwise(
    factors: Factors, excluded: Excluded = lambda row: False, rounds: int = 1
) -> Iterator[Row]:
    """Yield rows in which any two values of two factors meet, unless they are excluded.

    Greedy: a row begins with the first pair that has not been met, and each other factor takes the
    value that meets most new ones, the first of equals in an order that is drawn. ``rounds`` covers
    all pairs as often, each time by other rows.
    """
    seen = set()
    for seed in range(rounds):
        rng = random.Random(seed)
        left = _all_pairs(factors)
        while left:
            first, second = next(iter(left))
            row = _filled(dict([first, second]), factors, excluded, left, rng)
            if row is None:  # the two never meet
                del left[first, second]
                continue
            for pair in _pairs_of(row, factors):
                left.pop(pair, None)
            key = tuple(row[factor] for factor in factors)
            if key not in seen:
                seen.add(key)
                yield {factor: row[factor] for factor in factors}


Item = tuple[str, str]  # factor and value
Pairs = dict[tuple[Item, Item], None]  # in the order of the factors; a dict, for sets have no order


def _all_pairs(factors: Factors) -> Pairs:
    """Return all pairs of values of two factors."""
    return {
        ((one, a), (other, b)): None
        for one, other in itertools.combinations(factors, 2)
        for a in factors[one]
        for b in factors[other]
    }


def _pairs_of(row: Row, factors: Factors) -> Iterator[tuple[Item, Item]]:
    """Yield the pairs that meet in a row."""
    yield from itertools.combinations([(factor, row[factor]) for factor in factors], 2)


def _filled(
    row: Row, factors: Factors, excluded: Excluded, left: Pairs, rng: random.Random
) -> Row | None:
    """Return a row with all factors that has the values of ``row``, None if there is none."""
    if excluded(row):
        return None
    open_factors = [factor for factor in factors if factor not in row]
    for _ in range(20):  # other orders, where one ends at a factor without a value that goes
        rng.shuffle(open_factors)
        trial = dict(row)
        for factor in open_factors:
            found = _with_best(trial, factor, factors, excluded, left, rng)
            if found is None:
                break
            trial = found
        else:
            return trial
    return None


def _with_best(
    row: Row, factor: str, factors: Factors, excluded: Excluded, left: Pairs, rng: random.Random
) -> Row | None:
    """Return the row with the value of a factor that meets most new pairs, None if none goes."""
    places = {name: place for place, name in enumerate(factors)}
    best, most = None, -1
    values = list(factors[factor])
    rng.shuffle(values)
    for value in values:
        tried = {**row, factor: value}
        if excluded(tried):
            continue
        item = (factor, value)
        new = sum(
            (((item, other) if places[factor] < places[other[0]] else (other, item)) in left)
            for other in row.items()
        )
        if new > most:
            best, most = tried, new
    return best
