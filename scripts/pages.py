#!/usr/bin/env python3
"""Write what the code says into docs: environments, what goes together, the documents' items."""

import sys
from pathlib import Path
from typing import Any

import gymnasium

from hpcgym.benchmarks.studies.documents import all_items, page_text, record
from hpcgym.envs.backfill import Backfill
from hpcgym.envs.co_schedule import CoSchedule
from hpcgym.envs.ids import id_of
from hpcgym.envs.inspector import Inspector
from hpcgym.envs.job_selection import JobSelection
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.page import markdown, shared_markdown
from hpcgym.envs.power_limits import EnergyBudgetEnv, PowerCapEnv
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.scheduler.capabilities import table

FOLDER = Path(__file__).parents[1] / "docs" / "environments"
SEMANTICS = FOLDER.parent / "semantics.md"
DOCUMENTS = FOLDER.parent / "documents.md"

#: Heading of what does not go together: the table below it is the end of the page.
APART = "## What does not go together\n"

PAGES = {
    "job-selection.md": JobSelection,
    "mixed-policy.md": MixedPolicy,
    "queue-ordering.md": QueueOrdering,
    "backfill.md": Backfill,
    "inspector.md": Inspector,
    "power-cap.md": PowerCapEnv,
    "energy-budget.md": EnergyBudgetEnv,
    "co-schedule.md": CoSchedule,
}


def draw(environment: type) -> None:
    """Draw a busy state of an environment."""
    from matplotlib import image

    name = environment.__name__.removesuffix("Env")
    env = gymnasium.make(id_of(name), render_mode="rgb_array")
    _, info = env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(60):
        *_, over, cut, info = env.step(env.action_space.sample(info.get("action_mask")))
        if over or cut:
            _, info = env.reset()
    picture: Any = env.render()
    image.imsave(FOLDER.parent / "pictures" / f"{name}.png", picture)


def main() -> None:
    """Write the pages that differ.

    With ``--pictures`` draw those of the environments anew. With ``--verdicts FOLDER COMPUTED``
    record the verdicts of the studies' results in that folder, and when they were computed, such as
    "2026-11-26, ddc49538": the day and the commit.
    """
    if sys.argv[1:] == ["--pictures"]:
        for environment in PAGES.values():
            draw(environment)
    if sys.argv[1:2] == ["--verdicts"]:
        results, computed = sys.argv[2:]
        record(Path(results), computed)
    texts = {FOLDER / name: markdown(environment) for name, environment in PAGES.items()}
    texts[FOLDER / "shared.md"] = shared_markdown()
    by_hand, heading, rest = SEMANTICS.read_text().partition(APART)
    texts[SEMANTICS] = by_hand + heading + rest.partition("|")[0] + table() + "\n"
    texts[DOCUMENTS] = page_text(all_items(), results=False)
    for file, text in texts.items():
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"wrote {file}")


if __name__ == "__main__":
    main()
