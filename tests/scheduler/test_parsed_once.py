"""What a user types is parsed once, when a scheduler is made, and travels as values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import hpcgym
from hpcgym.scheduler.restrictions import Preemption, Quota, Window


def count(monkeypatch: pytest.MonkeyPatch, *parsers: tuple[Any, str]) -> Counter[str]:
    """Return how often each parser has run, from now on."""
    runs: Counter[str] = Counter()

    def counting(name: str, parse: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            runs[name] += 1
            return parse(*args, **options)

        return counted

    for owner, parser in parsers:
        name = f"{owner.__name__}.{parser}"
        monkeypatch.setattr(owner, parser, counting(name, getattr(owner, parser)))
    return runs


def test_a_simulation_parses_each_rule_once(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = hpcgym.load_workload("lublin:jobs=20,processors=8,seed=1")
    runs = count(monkeypatch, (Quota, "parse"), (Window, "parse"), (Preemption, "parse"))
    rules = {"quota": "user:jobs=10", "maintenance": "90000/90060"}
    hpcgym.simulate(jobs, policy="saf", **rules)
    assert runs == {"Quota.parse": 1, "Window.parse": 1}
