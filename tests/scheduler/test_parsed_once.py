"""What a user types is parsed once, when a scheduler is made, and travels as values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import hpcgym
from hpcgym.scheduler.backfilling import SlurmBackfill
from hpcgym.scheduler.policies import index
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
    hpcgym.simulate(jobs)  # named schedulers are parsed as they are first asked for
    of_rules = [(one, "parse") for one in (Quota, Window, Preemption, SlurmBackfill)]
    runs = count(monkeypatch, *of_rules, (index, "read_expression"))
    rules = {"quota": "user:jobs=10", "maintenance": "90000/90060"}
    scheduler = hpcgym.Scheduler("wait - area / 3600", backfill="slurm:bf_interval=60")
    hpcgym.simulate(jobs, scheduler, **rules)
    once = [
        "Quota.parse",
        "Window.parse",
        "SlurmBackfill.parse",
        f"{index.__name__}.read_expression",
    ]
    assert runs == dict.fromkeys(once, 1)
