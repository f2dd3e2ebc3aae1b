"""What tests of drawn restrictions share: quotas, windows, jobs that follow others or stop them."""

from __future__ import annotations

import pytest

#: Marks of such tests: what is drawn may restrict none of the jobs that are drawn.
DRAWN = [
    pytest.mark.filterwarnings("ignore::hpcgym.errors.RuleWarning"),
    pytest.mark.filterwarnings("ignore:.*EASY's reservation is of nodes by name"),
]
