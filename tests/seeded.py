"""Random cases from numpy, by a seed: what the tests use of hypothesis, without its shrinking.

hypothesis takes tens of milliseconds to draw a workload of 40 jobs, and most of a test's time. Here
it is one. The names and what they mean are those of hypothesis, so that a test says only what it
draws; ``drawing.py`` gives it one or the other.

A case is drawn from the name of its test and its number alone. A failing one is printed: as a value
that can be kept, and with ``HPCGYM_CASE``, which runs it again.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from hpcgym.workload.model import Workload

#: Another seed draws other cases: ``--hypothesis-seed``.
seed = 0
#: Cases of a test that does not say how many.
CASES = 100
#: Drawn cases a test may reject for each that it takes.
_REJECTED = 50


class RejectedError(Exception):
    """A case that ``assume`` or a filter rejects."""


def assume(holds: object) -> bool:
    """Go on if a case is one, else draw another."""
    if not holds:
        raise RejectedError
    return True


class Source:
    """Random numbers of one case, some hundred at once: numpy takes long for a single one."""

    def __init__(self, *seeds: int) -> None:
        self._generator = np.random.default_rng(seeds)
        self._numbers: list[float] = []

    def uniform(self) -> float:
        """Return a number from 0 to below 1."""
        if not self._numbers:
            self._numbers = self._generator.random(256).tolist()
        return self._numbers.pop()

    def below(self, n: int) -> int:
        """Return a whole number from 0 to below ``n``."""
        if n > 1 << 50:
            return int.from_bytes(self._generator.bytes(n.bit_length() // 8 + 8), "little") % n
        return int(self.uniform() * n)


class Strategy:
    """Says how a value is drawn; each of those below is one."""

    def __init__(self, draw: Callable[[Source], Any]) -> None:
        self.draw = draw

    def map(self, change: Callable[[Any], Any]) -> Strategy:
        """Change what is drawn."""
        return Strategy(lambda source: change(self.draw(source)))

    def flatmap(self, change: Callable[[Any], Strategy]) -> Strategy:
        """Draw once more, by what has been drawn."""
        return Strategy(lambda source: change(self.draw(source)).draw(source))

    def filter(self, holds: Callable[[Any], Any]) -> Strategy:
        """Draw until something holds."""

        def draw(source: Source) -> Any:
            for _ in range(_REJECTED):
                value = self.draw(source)
                if holds(value):
                    return value
            raise RejectedError

        return Strategy(draw)

    def __or__(self, other: Strategy) -> Strategy:
        return one_of(self, other)


def just(value: Any) -> Strategy:
    """Draw a value."""
    return Strategy(lambda source: value)


def none() -> Strategy:
    """Draw None."""
    return just(None)


def sampled_from(values: Iterable[Any]) -> Strategy:
    """Draw one of some values."""
    chosen: Sequence[Any] = values if isinstance(values, Sequence) else list(values)
    if not len(chosen):
        raise ValueError("there is nothing to draw from")
    return Strategy(lambda source: chosen[source.below(len(chosen))])


def booleans() -> Strategy:
    """Draw False or True."""
    return sampled_from((False, True))


def one_of(*strategies: Any) -> Strategy:
    """Draw by one of some strategies, which may be given as a list."""
    chosen = strategies if isinstance(strategies[0], Strategy) else tuple(strategies[0])
    return Strategy(lambda source: chosen[source.below(len(chosen))].draw(source))


def integers(min_value: int | None = None, max_value: int | None = None) -> Strategy:
    """Draw a whole number, more often than others the least and the greatest."""
    least = min_value if min_value is not None else -(1 << 40)
    greatest = max_value if max_value is not None else max(least, 0) + (1 << 40)

    def draw(source: Source) -> int:
        chance = source.uniform()
        if chance < 0.1:
            return least if chance < 0.05 else greatest
        most = greatest - least + 1
        if chance < 0.2:  # small ones of a wide range
            most = min(most, 16)
        return least + source.below(most)

    return Strategy(draw)


_FLOATS = (0.0, 1.0, -1.0, 0.5, 1 / 3, 1e-9, 1e5, -1e5)


def floats(min_value: float | None = None, max_value: float | None = None, **_: Any) -> Strategy:
    """Draw a number: a bound, a round one, or any between."""
    least = -1e300 if min_value is None else min_value
    greatest = 1e300 if max_value is None else max_value
    special = [number for number in (*_FLOATS, least, greatest) if least <= number <= greatest]

    def draw(source: Source) -> float:
        if source.uniform() < 0.2:
            return special[source.below(len(special))]
        if greatest - least > 1e6 and source.uniform() < 0.7:  # all magnitudes
            size = 10 ** (source.uniform() * 12 - 6)
            return min(max(size if source.uniform() < 0.5 else -size, least), greatest)
        value = least / 2 + (greatest / 2 - least / 2) * source.uniform()
        return min(max(value + least / 2, least), greatest)

    return Strategy(draw)


def tuples(*strategies: Strategy) -> Strategy:
    """Draw a value by each strategy."""
    return Strategy(lambda source: tuple([strategy.draw(source) for strategy in strategies]))


def _some(
    values: Strategy, min_size: int, max_size: int | None, key: Callable[[Any], Hashable] | None
) -> Strategy:
    """Draw a list, whose keys differ if there is one."""
    most = min_size + 8 if max_size is None else max_size

    def draw(source: Source) -> list[Any]:
        size = min_size + source.below(most - min_size + 1)
        if key is None:
            return [values.draw(source) for _ in range(size)]
        drawn: dict[Hashable, Any] = {}
        for _ in range(_REJECTED + 4 * size):
            if len(drawn) == size:
                break
            value = values.draw(source)
            drawn.setdefault(key(value), value)
        if len(drawn) < min_size:
            raise RejectedError
        return list(drawn.values())

    return Strategy(draw)


def lists(
    values: Strategy, *, min_size: int = 0, max_size: int | None = None, unique: bool = False
) -> Strategy:
    """Draw a list, of any length that is allowed."""
    return _some(values, min_size, max_size, (lambda value: value) if unique else None)


def sets(values: Strategy, *, min_size: int = 0, max_size: int | None = None) -> Strategy:
    """Draw a set."""
    return _some(values, min_size, max_size, lambda value: value).map(set)


def dictionaries(
    keys: Strategy, values: Strategy, *, min_size: int = 0, max_size: int | None = None
) -> Strategy:
    """Draw a dictionary."""
    return _some(tuples(keys, values), min_size, max_size, lambda pair: pair[0]).map(dict)


def fixed_dictionaries(entries: dict[Any, Strategy]) -> Strategy:
    """Draw a value for each key."""
    return Strategy(
        lambda source: {key: strategy.draw(source) for key, strategy in entries.items()}
    )


def permutations(values: Iterable[Any]) -> Strategy:
    """Draw the values in some order."""
    chosen = list(values)

    def draw(source: Source) -> list[Any]:
        left = list(chosen)
        return [left.pop(source.below(len(left))) for _ in chosen]

    return Strategy(draw)


def builds(target: Callable[..., Any], *positional: Strategy, **named: Strategy) -> Strategy:
    """Draw the arguments of a call, and make it."""
    return Strategy(
        lambda source: target(
            *[strategy.draw(source) for strategy in positional],
            **{name: strategy.draw(source) for name, strategy in named.items()},
        )
    )


def composite(function: Callable[..., Any]) -> Callable[..., Strategy]:
    """Make a strategy of a function that draws."""

    @functools.wraps(function)
    def strategy(*args: Any, **kwargs: Any) -> Strategy:
        return Strategy(
            lambda source: function(
                lambda strategy, label=None: strategy.draw(source), *args, **kwargs
            )
        )

    return strategy


class Data:
    """What a test draws from as it goes on; it keeps what it gave, to be printed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.drawn: list[Any] = []

    def draw(self, strategy: Strategy, label: str | None = None) -> Any:
        """Draw by a strategy."""
        value = strategy.draw(self._source)
        self.drawn.append(value)
        return value


DataObject, DrawFn, SearchStrategy = Data, Callable, Strategy


def recursive(
    base: Strategy, extend: Callable[[Strategy], Strategy], *, max_leaves: int = 100
) -> Strategy:
    """Draw by ``base``, or by what ``extend`` makes of it, up to so many times over."""
    levels = [base]
    while 2 ** len(levels) <= max_leaves:
        levels.append(extend(one_of(*levels)))
    return one_of(*levels)


def data() -> Strategy:
    """Draw what the test itself draws from."""
    return Strategy(Data)


class settings:  # noqa: N801  as in hypothesis
    """How many cases a test draws; whatever else hypothesis may be told is not for here."""

    def __init__(
        self, parent: settings | None = None, *, max_examples: int | None = None, **_: Any
    ) -> None:
        self.max_examples = max_examples or (parent.max_examples if parent else CASES)

    def __call__(self, test: Any) -> Any:
        test.settings = self
        return test


def event(*_: object) -> None:
    """Count nothing."""


def given(*positional: Strategy, **named: Strategy) -> Callable[[Any], Any]:
    """Call a test with each of its cases; arguments without a strategy are pytest's."""

    def decorate(test: Any) -> Any:
        parameters = inspect.signature(test).parameters
        last = list(parameters)[len(parameters) - len(positional) :]
        strategies = dict(zip(last, positional, strict=True)) | named

        def draw(number: int) -> dict[str, Any]:
            source = Source(seed, zlib.crc32(_name(test).encode()), number)
            return {name: strategy.draw(source) for name, strategy in strategies.items()}

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            only = os.environ.get("HPCGYM_CASE")
            wanted = run.settings.max_examples
            taken = 0
            for number in itertools.count(int(only or 0)):
                arguments: dict[str, Any] = {}
                try:
                    arguments |= draw(number)
                    test(**fixtures, **arguments)
                    taken += 1
                except RejectedError:
                    if number > _REJECTED * (taken + 1):
                        raise AssertionError(f"of {number} cases {taken} were accepted") from None
                except BaseException as error:
                    error.add_note(_told(number, draw, arguments))
                    raise
                if taken >= wanted or only:
                    return

        run.settings = getattr(test, "settings", settings())  # type: ignore[attr-defined]
        run.is_seeded = True  # type: ignore[attr-defined]
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [parameter for name, parameter in parameters.items() if name not in strategies]
        )
        return run

    return decorate


def _name(test: Any) -> str:
    """Return what a test draws by: its name, with its parameters."""
    running = os.environ.get("PYTEST_CURRENT_TEST", "")
    return running.rsplit("/")[-1].rpartition(" ")[0] or test.__qualname__


def _told(number: int, draw: Callable[[int], dict[str, Any]], arguments: dict[str, Any]) -> str:
    """Return a failing case as text: what was drawn before the test, and by the test."""
    lines = [f"case {number}; HPCGYM_CASE={number} runs it alone"]
    try:
        drawn = draw(number)  # again: the test may have changed what it got
    except BaseException:
        drawn = arguments
    for name, value in drawn.items():
        if isinstance(value, Data):
            lines += [f"drawn from {name}: {_as_code(value)}" for value in arguments[name].drawn]
        else:
            lines.append(f"{name} = {_as_code(value)}")
    return "\n".join(lines)


def _as_code(value: Any) -> str:
    """Return a value as Python that makes it, as far as it has some."""
    if isinstance(value, Workload):
        columns = {name: column.tolist() for name, column in value.columns.items()}
        columns_told = {name: column for name, column in columns.items() if set(column) != {-1}}
        return f"Workload.from_columns({columns_told}, processors={value.processors})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()}, np.{value.dtype})"
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        inner = ", ".join(map(_as_code, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {_as_code(part)}" for key, part in value.items()) + "}"
    return repr(value)
