"""The docstrings of the environments: what a class says, with the chapters that all share.

The decorator :func:`page` puts a chapter of ``chapters.md`` where a docstring says its title in
braces, or has none of its own, and the tables that follow from the code: ``help()`` of a class
tells all. It does so when somebody reads the docstring. ``scripts/pages.py`` writes the same as
pages of ``docs/environments``.
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


class Page:
    """The docstring of an environment's class, which is completed when it is read.

    Attributes
    ----------
    written : the docstring as it stands in the code.
    """

    def __init__(self, written: str) -> None:
        self.written = inspect.cleandoc(written)

    def __get__(self, env: object, cls: type) -> str:
        """Return the complete docstring."""
        text = filled(_whole(self.written, cls), chapters())
        arguments = {"arguments": "\n".join(rows_of_arguments(cls, text))}
        return _with_values(filled(text, arguments | tables() | names_in(cls)))


def page(cls: Class) -> Class:
    """Complete the docstring of an environment's class when it is read; a decorator."""
    if cls.__doc__:  # python -OO leaves none
        cls.__doc__ = Page(cls.__doc__)  # type: ignore[assignment]
    return cls


def names_in(cls: type) -> dict[str, str]:
    """Return the names that stand for themselves in chapters: the id and the class."""
    return {"id": id_of(own_name(cls)), "class": cls.__name__}


def tables() -> dict[str, str]:
    """Return the tables that follow from the code, by their names in chapters."""
    usual = [
        (f"`{name}`", WINDOW_FEATURES[name]) for name in USUAL_FEATURES if name in WINDOW_FEATURES
    ]
    last = [f"`{name}`" for name in USUAL_FEATURES if name not in WINDOW_FEATURES]
    usual.append((", ".join(last), "expressions"))
    known = {name: feature.meaning for name, feature in FEATURES.items()} | USER_FEATURES
    weighed = [(f"`{feature}`", meaning) for feature, meaning in known.items()]
    return {
        "columns": "\n".join(map(row_of, usual)),
        "policy features": "\n".join(map(row_of, weighed)),
    }


def _with_values(text: str) -> str:
    """Return a page on which settings stand below the argument that they are of."""
    before, heading, rest = text.partition("## Arguments\n\n")
    rows, more, after = rest.partition("\n\n## ")
    rows = with_settings(rows.splitlines()[2:])
    return f"{before}{heading}{chapters()['Values']}\n\n{rows}{more}{after}"


def with_settings(given: list[str]) -> str:
    """Return rows of arguments as tables: of arguments, and of the settings of each."""
    of_values: dict[str, list[str]] = {}
    rows = {row.split("`")[1]: row for row in given}
    shared = [name for name in arguments() if name in rows and name != "render_mode"]
    for name in dict.fromkeys([*shared, *rows]):
        of_values.setdefault(OF_VALUES.get(name, ""), []).append(rows[name])
    top = "| argument | default | meaning |\n|---|---|---|\n"
    text = top + "\n".join(of_values.pop(""))
    top = top.replace("argument", "setting")
    for value, below in of_values.items():
        text += f"\n\n### Settings of `{value}`\n\n{top}" + "\n".join(below)
    return text


def _whole(text: str, cls: type) -> str:
    """Return a docstring with all headings of a page, and chapters where it has none itself."""
    own, name = titled(text), own_name(cls)
    limited = is_limited(cls)
    version = id_of(name).rpartition("-")[-1]
    mores = [f" of {name}", f" of {version}", *[" under limits"] * limited, ""]
    parts = [re.split("^## ", text, flags=re.MULTILINE)[0].strip()]
    for heading in HEADINGS:
        chapter = own.get(heading, "")
        if heading == "Arguments":
            own_rows = [chapter, "{Arguments under limits}" if limited else "", "{arguments}"]
            rows = ["| argument | default | meaning |", "|---|---|---|", *filter(None, own_rows)]
            chapter = "\n".join(rows)
        for more in mores:
            if not chapter and f"{heading}{more}" in chapters():
                chapter = f"{{{heading}{more}}}"
        parts.append(f"## {heading}\n\n{chapter}")
    return "\n\n".join(parts)


def titled(text: str) -> dict[str, str]:
    """Return what stands below each heading of the second level."""
    _, *parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {title: part.strip() for title, part in zip(parts[::2], parts[1::2], strict=True)}


@cache
def chapters() -> dict[str, str]:
    """Return the text of each chapter by its title."""
    return titled(files("hpcgym.envs").joinpath("chapters.md").read_text(encoding="utf-8"))


@cache
def arguments() -> dict[str, str]:
    """Return what each argument is, in the order of the pages."""
    return rows_in(chapters()["Arguments"])


def rows_in(text: str) -> dict[str, str]:
    """Return what the last cell of each row says of the argument that it begins with."""
    return dict(re.findall(r"^\| `(\w+)` \| (?:.* \| )?(.*) \|$", text, re.MULTILINE))


def default_of(value: object) -> str:
    """Return a default in ticks, as pages show it."""
    return f"`{shown(value)}`"


def shown(value: object) -> str:
    """Return a value as Python has it, texts in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def filled(text: str, parts: dict[str, str]) -> str:
    """Return a text with parts, and theirs, in the place of their names; other braces stay."""
    for name, part in parts.items():
        if f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", filled(part, parts))
    return text


def rows_of_arguments(cls: type, text: str) -> list[str]:
    """Return the rows of the arguments that a page does not name itself, with their defaults."""
    rows = []
    parameters = arguments_of(cls)
    for name, meaning in arguments().items():
        if name in parameters and f"\n| `{name}` | " not in text.partition("## Arguments")[2]:
            default = "those above"
            if name != "features":
                default = default_of(parameters[name].default)
            rows.append(row_of((f"`{name}`", default, meaning)))
    return rows


def row_of(cells: tuple[object, ...]) -> str:
    """Return the row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def is_limited(cls: type) -> bool:
    """Return whether an environment is one of limits of power or energy."""
    return getattr(cls, "action_kind", "") == "power"
