"""The pages of the environments: docstrings of their classes, with the chapters that they share.

The decorator :func:`page` puts a chapter of ``chapters.md`` where a docstring says its title in
braces, and the tables that follow from the code. ``scripts/pages.py`` writes the pages into
``docs/environments``, and a test fails if they differ.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib.resources import files
from typing import TypeVar

from hpcgym.envs import VERSIONS
from hpcgym.envs.core.observation import USUAL_FEATURES, WINDOW_FEATURES
from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES

Class = TypeVar("Class", bound=type)


def page(cls: Class) -> Class:
    """Complete the docstring of an environment's class; a decorator."""
    if not cls.__doc__:  # python -OO leaves none
        return cls
    text = _filled(inspect.cleandoc(cls.__doc__), _chapters())
    usual = [(k, f"`{name}`", WINDOW_FEATURES[name]) for k, name in enumerate(USUAL_FEATURES)]
    known = {name: feature.meaning for name, feature in FEATURES.items()} | USER_FEATURES
    weighed = [(f"`{name}`", meaning) for name, meaning in known.items()]
    name = cls.__name__.removesuffix("Env")
    parts = {
        "columns": "\n".join(map(_row, usual)),
        "policy features": "\n".join(map(_row, weighed)),
        "arguments": "\n".join(_arguments(cls, text)),
        "id": f"hpcgym/{name}-v0",
        "class": cls.__name__,
        "v1": ", ".join(f"`{k}={v!r}`" for k, v in VERSIONS.get(f"hpcgym/{name}-v1", {}).items()),
    }
    cls.__doc__ = _filled(text, parts)
    return cls


@cache
def _chapters() -> dict[str, str]:
    """Return the text of each chapter by its title."""
    text = files("hpcgym.envs").joinpath("chapters.md").read_text(encoding="utf-8")
    _, *titled = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {title: told.strip() for title, told in zip(titled[::2], titled[1::2], strict=True)}


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
    parameters = inspect.signature(cls).parameters
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
    name = cls.__name__.removesuffix("Env")
    return (
        f"# {name}\n\n"
        f"<!-- The docstring of {cls.__module__}.{cls.__name__}, written by"
        " scripts/pages.py: change it there. -->\n\n"
        f"![A state of the environment as it draws itself](../pictures/{name}.png)\n\n"
        f"{cls.__doc__}\n"
    )
