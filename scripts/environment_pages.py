#!/usr/bin/env python3
"""Write the pages of the environments, which are docstrings, into docs/environments."""

from pathlib import Path

from hpcgym.envs.co_schedule import CoSchedule
from hpcgym.envs.job_selection import JobSelection
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.pages.page import markdown
from hpcgym.envs.power_limits import EnergyBudgetEnv, PowerCapEnv
from hpcgym.envs.queue_ordering import QueueOrdering

FOLDER = Path(__file__).parents[1] / "docs" / "environments"

PAGES = {
    "job-selection.md": JobSelection,
    "mixed-policy.md": MixedPolicy,
    "queue-ordering.md": QueueOrdering,
    "power-cap.md": PowerCapEnv,
    "energy-budget.md": EnergyBudgetEnv,
    "co-schedule.md": CoSchedule,
}


def main() -> None:
    """Write the pages that differ."""
    for name, environment in PAGES.items():
        file, text = FOLDER / name, markdown(environment)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"wrote {file}")


if __name__ == "__main__":
    main()
