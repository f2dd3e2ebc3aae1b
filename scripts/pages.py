#!/usr/bin/env python3
"""Write what the code says into docs: environments, what goes together, the documents' items."""

import re
import sys
from pathlib import Path
from typing import Any

import gymnasium

from hpcgym.benchmarks.studies.documents import all_items, page_text, record
from hpcgym.envs.backfill import Backfill
from hpcgym.envs.co_schedule import CoSchedule
from hpcgym.envs.core.base import arguments_of, own_name
from hpcgym.envs.ids import id_of
from hpcgym.envs.inspector import Inspector
from hpcgym.envs.job_selection import JobSelection
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.page import (
    HEADINGS,
    chapters,
    default_of,
    filled,
    is_limited,
    names_in,
    row_of,
    rows_in,
    rows_of_arguments,
    shown,
    tables,
    titled,
    with_settings,
)
from hpcgym.envs.power_limits import EnergyBudgetEnv, PowerCapEnv
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.envs.submit import Submit
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
    "submit.md": Submit,
}


# --- Pages of environments ------------------------------------------------------------------------

#: Chapters of the shared page, below the headings; others have the heading's own name.
_BELOW = {
    "Decision points": ("Quotas and windows", "Stopped jobs"),
    "Info": (),
    "Starting State": ("Around slices", "Extracts"),
}
#: The environment whose page has the chapters of both that have limits.
_LIMITED = "PowerCap"


def markdown(cls: type) -> str:
    """Return the page of an environment in ``docs/environments``: what is its own."""
    name, limited = own_name(cls), is_limited(cls)
    written = vars(cls)["__doc__"].written
    reference, own = f"Reference of {name}", titled(written)
    # chapters that stand on the shared page are left out here
    parts_of_page = dict.fromkeys(chapters(), "")
    if reference in parts_of_page:
        parts_of_page[reference] = chapters()[reference]
        own.setdefault("Reference", f"{{{reference}}}")
    # rows of its own, below the head of a table whose others are on the shared page
    parts_of_page |= {"Keys": _head("key", "when"), "Fields": _head("field", "flat", "shape")}
    if name == _LIMITED:
        for heading in HEADINGS:
            title = f"{heading} under limits"
            if heading != "Arguments" and title in parts_of_page:
                own.setdefault(heading, f"{{{title}}}")
        for title, text in chapters().items():
            if "under limits" in title:
                parts_of_page[title] = text
        parts_of_page["Info under limits"] = ""
    parts = [re.split("^## ", written, flags=re.MULTILINE)[0].strip()]
    for heading in HEADINGS:
        chapter = filled(own.get(heading, ""), parts_of_page)
        chapter = re.sub(
            r"### [^\n]*\n*(?=### |\Z)", "", chapter.strip()
        )  # below which nothing is left
        chapter = re.sub(r"\n{3,} *", "\n\n", chapter).strip()
        if heading == "Arguments":
            chapter = _own_arguments(cls, chapter)
        if chapter:
            parts.append(f"## {heading}\n\n{chapter}")
    text = _as_lists(filled("\n\n".join(parts), tables() | names_in(cls)))
    others = "[all environments](shared.md)"
    if limited and name != _LIMITED:
        others = f"[{_LIMITED}](power-cap.md), {others}"
    return (
        f"# {name}\n\n"
        f"<!-- Written by scripts/pages.py from {cls.__module__}. -->\n\n"
        f"![A state](../pictures/{name}.png)\n\n"
        f"More: {others}, `help({cls.__name__})`."
        f"\n\n{text}\n"
    )


def _head(*columns: str) -> str:
    return f"{row_of((*columns, 'what'))}\n|{'---|' * (len(columns) + 1)}"


def _own_arguments(cls: type, rows: str) -> str:
    """Return the arguments that the pages before lack, and the defaults that are others here."""
    # the environments whose defaults are on the shared page, and on that of limits
    before = [
        other for other in (QueueOrdering, *[PowerCapEnv] * is_limited(cls)) if other is not cls
    ]
    known = rows_in(chapters()["Arguments under limits"]) if own_name(cls) == _LIMITED else {}
    lacked, others = [rows] if rows else [], []
    for name, argument in arguments_of(cls).items() if before else ():
        if name not in rows_in(rows) and name in known:
            lacked.append(row_of((f"`{name}`", default_of(argument.default), known[name])))
        elif name not in rows_in(rows) and not any(
            _has(it, name, argument.default) for it in before
        ):
            others.append(f"`{name}={shown(argument.default)}`")
    head = "| argument | default | meaning |\n|---|---|---|\n"
    parts = [head + "\n".join(lacked)] * bool(lacked)
    parts += [f"Other defaults: {', '.join(others)}."] * bool(others)
    return "\n\n".join(parts)


def _has(cls: type, name: str, default: object) -> bool:
    """Return whether an environment has an argument with this default."""
    own = arguments_of(cls)
    return name in own and own[name].default == default


#: When an info has a key.
_WHEN = r"([^|\n]*always|at the end|with [^|\n]*)"


def _as_lists(tables: str) -> str:
    """Return tables of arguments, of infos and of two columns as lists; no others."""
    tables = re.sub(rf"(?m)^\| (`\w+`) \| {_WHEN} \| (.*) \|$", r"- \1 (\2): \3", tables)
    tables = tables.replace("| key | when | what |\n|---|---|---|\n", "")
    text = re.sub(r"(?m)^\| [^|\n]+ \| [^|\n]+ \|\n\|---\|---\|\n", "", tables)
    text = re.sub(r"(?m)^\| ([^|\n]+) \| ([^|\n]+) \|$", r"- \1: \2", text)
    text = re.sub(r"(?m)^\| (argument|setting) .*\n\|---.*\n", "", text)
    text = re.sub(r"(?m)^\| `(\w+)` \| `(.*?)` \| (.*) \|$", r"- `\1=\2`: \3", text)
    text = re.sub(r"(?m)^\| (`\w*features`) \| (.*?) \| (.*) \|$", r"- \1, by default \2: \3", text)
    same = re.compile(r"(?m)^(- [^:\n]*): (.*)\n- ([^:\n]*): \2$")
    while same.search(text):
        text = same.sub(r"\1, \3: \2", text)
    return text


def shared_markdown() -> str:
    """Return the page in ``docs/environments`` of what all environments share."""
    env_id, parts = id_of(own_name(QueueOrdering)), []
    version = env_id.rpartition("-")[-1]
    for heading in HEADINGS:
        titles = [heading, *_BELOW.get(heading, ())]
        if f"{heading} of {version}" in chapters():
            titles.append(f"{heading} of {version}")
        parts_of_chapter = []
        for title in titles:
            text = chapters().get(title, "")
            if title == "Arguments":
                text = chapters()["Values"] + "\n\n{arguments}"
            if text:
                parts_of_chapter += [f"### {title}"] * (not title.startswith(heading)) + [text]
        if parts_of_chapter:
            parts.append("\n\n".join([f"## {heading}", *parts_of_chapter]))
    rows = {"arguments": with_settings(rows_of_arguments(QueueOrdering, ""))}
    names = {"id": env_id, "class": QueueOrdering.__name__}
    text = filled("\n\n".join(parts), {**chapters(), **rows, **tables(), **names})
    text = _as_lists(text)
    return (
        "# What the environments share\n\n"
        f"<!-- Written by scripts/pages.py from hpcgym/envs/chapters.md. -->\n\n{text}\n"
    )


# --- All pages ------------------------------------------------------------------------------------


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
