"""The pages of the environments: docstrings of their classes, with the chapters that they share.

The decorator :func:`page` puts a chapter of ``chapters.md`` where a docstring says its title in
braces, or has none of its own, and the tables that follow from the code: ``help()`` of a class
tells all. In ``docs/environments``, which ``scripts/pages.py`` writes, the page of an environment
has what is its own, ``shared.md`` the chapters, once, and ``power-cap.md`` those of limits.
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


#: Class -> its docstring as it is written.
_WRITTEN: dict[type, str] = {}


def page(cls: Class) -> Class:
    """Complete the docstring of an environment's class; a decorator."""
    if not cls.__doc__:  # python -OO leaves none
        return cls
    name = own_name(cls)
    _WRITTEN[cls] = inspect.cleandoc(cls.__doc__)
    text = _filled(_whole(_WRITTEN[cls], cls, name), _chapters())
    arguments = {"arguments": "\n".join(_arguments(cls, text))}
    cls.__doc__ = _with_values(_filled(text, arguments | _tables() | _names(cls)))
    return cls


def _names(cls: type) -> dict[str, str]:
    return {"id": id_of(own_name(cls)), "class": cls.__name__}


def _tables() -> dict[str, str]:
    """Return the tables that follow from the code, by their names in chapters."""
    usual = [(f"`{one}`", WINDOW_FEATURES[one]) for one in USUAL_FEATURES if one in WINDOW_FEATURES]
    last = [f"`{one}`" for one in USUAL_FEATURES if one not in WINDOW_FEATURES]
    usual.append((", ".join(last), "expressions"))
    known = {one: feature.meaning for one, feature in FEATURES.items()} | USER_FEATURES
    weighed = [(f"`{feature}`", meaning) for feature, meaning in known.items()]
    return {
        "columns": "\n".join(map(_row, usual)),
        "policy features": "\n".join(map(_row, weighed)),
    }


def _with_values(text: str) -> str:
    """Return a page on which settings stand below the argument that they are of."""
    before, heading, rest = text.partition("## Arguments\n\n")
    told, more, after = rest.partition("\n\n## ")
    told = _with_settings(told.splitlines()[2:])
    return f"{before}{heading}{_chapters()['Values']}\n\n{told}{more}{after}"


def _with_settings(given: list[str]) -> str:
    """Return rows of arguments as tables: of arguments, and of the settings of each."""
    tables: dict[str, list[str]] = {}
    rows = {row.split("`")[1]: row for row in given}
    shared = [name for name in arguments() if name in rows and name != "render_mode"]
    for name in dict.fromkeys([*shared, *rows]):
        tables.setdefault(OF_VALUES.get(name, ""), []).append(rows[name])
    top = "| argument | default | meaning |\n|---|---|---|\n"
    told = top + "\n".join(tables.pop(""))
    top = top.replace("argument", "setting")
    for value, below in tables.items():
        told += f"\n\n### Settings of `{value}`\n\n{top}" + "\n".join(below)
    return told


def _whole(text: str, cls: type, name: str) -> str:
    """Return a docstring with all headings of a page, and chapters where it has none itself."""
    own = _titled(text)
    limited = _limited(cls)
    version = id_of(name).rpartition("-")[-1]
    mores = [f" of {name}", f" of {version}", *[" under limits"] * limited, ""]
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
    return _rows(_chapters()["Arguments"])


def _rows(text: str) -> dict[str, str]:
    """Return what the last cell of each row says of the argument that it begins with."""
    return dict(re.findall(r"^\| `(\w+)` \| (?:.* \| )?(.*) \|$", text, re.MULTILINE))


def _default(value: object) -> str:
    return f"`{_shown(value)}`"


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


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
            told = "those above"
            if name != "features":
                told = _default(parameters[name].default)
            rows.append(_row((f"`{name}`", told, meaning)))
    return rows


def _row(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


# --- The pages in docs ----------------------------------------------------------------------------

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
    name, limited = own_name(cls), _limited(cls)
    reference, own = f"Reference of {name}", _titled(_WRITTEN[cls])
    chapters = dict.fromkeys(_chapters(), "")
    if reference in chapters:
        chapters[reference] = _chapters()[reference]
        own.setdefault("Reference", f"{{{reference}}}")
    # rows of its own, below the head of a table whose others are on the shared page
    chapters |= {"Keys": _head("key", "when"), "Fields": _head("field", "flat", "shape")}
    if name == _LIMITED:
        for heading in HEADINGS:
            title = f"{heading} under limits"
            if heading != "Arguments" and title in chapters:
                own.setdefault(heading, f"{{{title}}}")
        chapters |= {title: text for title, text in _chapters().items() if "under limits" in title}
        chapters["Info under limits"] = ""
    parts = [re.split("^## ", _WRITTEN[cls], flags=re.MULTILINE)[0].strip()]
    for heading in HEADINGS:
        told = _filled(own.get(heading, ""), chapters)
        told = re.sub(r"### [^\n]*\n*(?=### |\Z)", "", told.strip())  # below which nothing is left
        told = re.sub(r"\n{3,} *", "\n\n", told).strip()
        if heading == "Arguments":
            told = _own_arguments(cls, told)
        if told:
            parts.append(f"## {heading}\n\n{told}")
    text = _as_lists(_filled("\n\n".join(parts), _tables() | _names(cls)))
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
    return f"{_row((*columns, 'what'))}\n|{'---|' * (len(columns) + 1)}"


def _limited(cls: type) -> bool:
    return getattr(cls, "action_kind", "") == "power"


def _own_arguments(cls: type, rows: str) -> str:
    """Return the arguments that the pages before lack, and the defaults that are others here."""
    before = [one for one in (_usual(), *[_with_limits()] * _limited(cls)) if one is not cls]
    known = _rows(_chapters()["Arguments under limits"]) if own_name(cls) == _LIMITED else {}
    lacked, others = [rows] if rows else [], []
    for name, one in arguments_of(cls).items() if before else ():
        if name not in _rows(rows) and name in known:
            lacked.append(_row((f"`{name}`", _default(one.default), known[name])))
        elif name not in _rows(rows) and not any(_has(it, name, one.default) for it in before):
            others.append(f"`{name}={_shown(one.default)}`")
    head = "| argument | default | meaning |\n|---|---|---|\n"
    told = [head + "\n".join(lacked)] * bool(lacked)
    told += [f"Other defaults: {', '.join(others)}."] * bool(others)
    return "\n\n".join(told)


def _usual() -> type:
    """Return the environment whose defaults are on the shared page."""
    from hpcgym.envs.queue_ordering import QueueOrdering

    return QueueOrdering


def _with_limits() -> type:
    """Return the environment whose defaults are on the page of limits."""
    from hpcgym.envs.power_limits import PowerCapEnv

    return PowerCapEnv


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
    chapters, cls = _chapters(), _usual()
    env_id, parts = id_of("QueueOrdering"), []
    version = env_id.rpartition("-")[-1]
    for heading in HEADINGS:
        titles = [heading, *_BELOW.get(heading, ())]
        if f"{heading} of {version}" in chapters:
            titles.append(f"{heading} of {version}")
        told = []
        for title in titles:
            text = chapters.get(title, "")
            if title == "Arguments":
                text = chapters["Values"] + "\n\n{arguments}"
            if text:
                told += [f"### {title}"] * (not title.startswith(heading)) + [text]
        if told:
            parts.append("\n\n".join([f"## {heading}", *told]))
    rows = {"arguments": _with_settings(_arguments(cls, ""))}
    names = {"id": env_id, "class": cls.__name__}
    text = _filled("\n\n".join(parts), {**chapters, **rows, **_tables(), **names})
    text = _as_lists(text)
    return (
        "# What the environments share\n\n"
        f"<!-- Written by scripts/pages.py from hpcgym/envs/chapters.md. -->\n\n{text}\n"
    )
