"""Rules of a site: which of them hold, of those given and those that others bring along."""

from __future__ import annotations

from hpcgym.scheduler.asked_for import OF_JOBS, OF_MACHINES, SITE_RULES, settled
from hpcgym.scheduler.rules import RULES


def test_all_are_rules_of_schedulers() -> None:
    assert {*OF_JOBS, *OF_MACHINES} < {*SITE_RULES} <= {*RULES}


def test_what_is_given_comes_first_then_what_was_brought_first() -> None:
    brought = [{"quota": None, "dependencies": "after"}, {"quota": "user:jobs=1", "threshold": 5}]
    assert settled(OF_JOBS, {}, brought) == {"dependencies": "after", "quota": "user:jobs=1"}
    assert settled(OF_JOBS, {"quota": None, "hold": 0.1}, brought) == {
        "quota": None,
        "dependencies": "after",
    }
