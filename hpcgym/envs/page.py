"""The pages of the environments: docstrings of their classes, with the chapters that they share.

The decorator :func:`page` puts a chapter of ``chapters.md`` where a docstring says its title in
braces, or has none of its own, and the tables that follow from the code. ``scripts/pages.py``
writes the pages into ``docs/environments``, and a test fails if they differ.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib.resources import files
from typing import TypeVar

from hpcgym.envs.core.base import OF_VALUES, arguments_of, own_name
from hpcgym.envs.core.observation import USUAL_FEATURES, WINDOW_FEATURES
from hpcgym.envs.ids import id_of
from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES

Class = TypeVar("Class", bound=type)

HEADINGS = (
    "Description", "Decision points", "Action Space", "Observation Space", "Info", "Rewards",
    "Starting State", "Episode End", "Determinism", "Arguments", "Vectorized environment",
    "Reference", "Version History",
)  # fmt: skip


def page(cls: Class) -> Class:
    """Complete the docstring of an environment's class; a decorator."""
    if not cls.__doc__:  # python -OO leaves none
        return cls
    name = own_name(cls)
    text = _filled(_whole(inspect.cleandoc(cls.__doc__), cls, name), _chapters())
    usual = [
        (k, f"`{one}`", WINDOW_FEATURES.get(one, "x / (4 + abs(x)) of this expression"))
        for k, one in enumerate(USUAL_FEATURES)
    ]
    known = {one: feature.meaning for one, feature in FEATURES.items()} | USER_FEATURES
    weighed = [(f"`{feature}`", meaning) for feature, meaning in known.items()]
    parts = {
        "columns": "\n".join(map(_row, usual)),
        "policy features": "\n".join(map(_row, weighed)),
        "arguments": "\n".join(_arguments(cls, text)),
        "id": id_of(name),
        "class": cls.__name__,
    }
    cls.__doc__ = _with_values(_filled(text, parts))
    return cls


def _with_values(text: str) -> str:
    """Return a page on which settings stand below the argument that they are of."""
    before, heading, rest = text.partition("## Arguments\n\n")
    told, more, after = rest.partition("\n\n## ")
    tables: dict[str, list[str]] = {}
    rows = {row.split("`")[1]: row for row in told.splitlines()[2:]}
    shared = [name for name in arguments() if name in rows and name != "render_mode"]
    for name in dict.fromkeys([*shared, *rows]):
        tables.setdefault(OF_VALUES.get(name, ""), []).append(rows[name])
    top = "| argument | default | meaning |\n|---|---|---|\n"
    told = top + "\n".join(tables.pop(""))
    top = top.replace("argument", "setting")
    for value, below in tables.items():
        told += f"\n\n### Settings of `{value}`\n\n{top}" + "\n".join(below)
    return f"{before}{heading}{_chapters()['Values']}\n\n{told}{more}{after}"


def _whole(text: str, cls: type, name: str) -> str:
    """Return a docstring with all headings of a page, and chapters where it has none itself."""
    own = _titled(text)
    limited = getattr(cls, "action_kind", "") == "power"
    mores = [f" of {name}", *[" of v1"] * id_of(name).endswith("-v1")]
    mores += [*[" under limits"] * limited, ""]
    parts = [re.split("^## ", text, flags=re.MULTILINE)[0].strip()]
    for heading in HEADINGS:
        told = own.get(heading, "")
        if heading == "Arguments":
            own_rows = [told, "{Arguments under limits}" if limited else "", "{arguments}"]
            rows = ["| argument | default | meaning |", "|---|---|---|", *filter(None, own_rows)]
            told = "\n".join(rows)
        for more in mores:
            if not told and f"{heading}{more}" in _chapters():
                told = f"{{{heading}{more}}}"
        parts.append(f"## {heading}\n\n{told}")
    return "\n\n".join(parts)


def _titled(text: str) -> dict[str, str]:
    """Return what stands below each heading of the second level."""
    _, *titled = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {title: told.strip() for title, told in zip(titled[::2], titled[1::2], strict=True)}


@cache
def _chapters() -> dict[str, str]:
    """Return the text of each chapter by its title."""
    return _titled(files("hpcgym.envs").joinpath("chapters.md").read_text(encoding="utf-8"))


@cache
def arguments() -> dict[str, str]:
    """Return what each argument is, in the order of the pages."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", _chapters()["Arguments"], re.MULTILINE)
    return dict(rows)


def _filled(text: str, parts: dict[str, str]) -> str:
    """Return a text with parts, and theirs, in the place of their names; other braces stay."""
    for name, part in parts.items():
        if f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", _filled(part, parts))
    return text


def _arguments(cls: type, text: str) -> list[str]:
    """Return the rows of the arguments that a page does not name itself, with their defaults."""
    rows = []
    parameters = arguments_of(cls)
    for name, meaning in arguments().items():
        if name in parameters and f"\n| `{name}` | " not in text.partition("## Arguments")[2]:
            value = parameters[name].default
            shown = f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"
            told = "the table above" if name == "features" else shown
            rows.append(_row((f"`{name}`", told, meaning)))
    return rows


def _row(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def markdown(cls: type) -> str:
    """Return the page of an environment as it stands in ``docs/environments``."""
    name = own_name(cls)
    return (
        f"# {name}\n\n"
        f"<!-- The docstring of {cls.__module__}.{cls.__name__}, written by"
        " scripts/pages.py: change it there. -->\n\n"
        f"![A state of the environment as it draws itself](../pictures/{name}.png)\n\n"
        f"{cls.__doc__}\n"
    )
