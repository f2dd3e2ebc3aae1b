"""The pages of the environments: that they are the docstrings, and that these say what is so.

Python in the pages is run by `test_repository.py`, but for what needs more than it has: that is
marked `py`, and run here.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pytest
from driving import BUSY, CLASSES, FOLLOWING, LIMITED, NAMES, SINGLE, VECTOR

from hpcgym import envs
from hpcgym.envs.co_schedule import CoSchedule
from hpcgym.envs.core.base import arguments_of
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.observation import (
    JOBS_AT,
    POWER_SIZE,
    PROGRESS_SIZE,
    QUEUE_AT,
    TIME_AT,
)
from hpcgym.envs.ids import id_of
from hpcgym.envs.page import arguments
from hpcgym.envs.submit import Submit

ALL = (*NAMES, *FOLLOWING, *LIMITED)
PAGES: dict[str, Any] = {
    **{name: CLASSES[name] for name in ALL},
    "CoSchedule": CoSchedule,
    "Submit": Submit,
}
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "environments"

HEADINGS = """Description, Decision points, Action Space, Observation Space, Info, Rewards, Starting
State, Episode End, Determinism, Arguments, Vectorized environment, Reference, Version History"""


def test_files_are_the_docstrings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(pages.PAGES.values()) == set(PAGES.values())
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    monkeypatch.setattr(pages, "SEMANTICS", tmp_path / "semantics.md")
    monkeypatch.setattr(pages, "DOCUMENTS", tmp_path / "documents.md")
    (tmp_path / "semantics.md").write_text("By hand.\n\n")
    pages.main()
    for name in (*pages.PAGES, "shared.md"):
        written = (FOLDER / name).read_text()
        assert written == (tmp_path / name).read_text(), "run scripts/pages.py"
    others = {file.name for file in FOLDER.iterdir()} - set(pages.PAGES)
    assert others == {"README.md", "shared.md"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_complete(name: str) -> None:
    text = PAGES[name].__doc__ or ""
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == " ".join(HEADINGS.split()).split(", ")
    assert id_of(name) in text
    assert not re.search(r"\{[A-Za-z][A-Za-z0-9 ]*\}", text)  # all is filled in


@pytest.mark.parametrize("name", PAGES)
def test_info_names_the_machine_beside_the_rules(name: str) -> None:
    """Else the same is simulated on a pool of the workload's processors, and nobody notices."""
    (info,) = re.findall(r"^## Info\n(.*?)(?=^## )", PAGES[name].__doc__, re.MULTILINE | re.DOTALL)
    assert "cluster=env.unwrapped.options.cluster" in info
    assert ("speedups=env.unwrapped.speedups" in info) == (name == "CoSchedule")


def table(text: str, heading: str) -> dict[str, list[str]]:
    """The rows of the tables under a heading: first cell without its ticks -> the others."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `"]
    return {cells[0].strip("`"): cells[1:] for cells in rows}


@pytest.mark.parametrize("name", PAGES)
def test_arguments_are_those_of_the_class(name: str) -> None:
    """Each is named, with its default."""
    parameters = arguments_of(PAGES[name])
    expected = {argument_name: parameter.default for argument_name, parameter in parameters.items()}
    shares = name == "CoSchedule"
    if name in (*NAMES, *FOLLOWING, "Submit"):
        del expected["power"]  # there are no limits to be kept
    rows = table(PAGES[name].__doc__ or "", "Arguments")
    assert set(rows) == set(expected)
    assert shares or set(arguments()) <= set(rows)
    for argument, (default, *_) in rows.items():
        if argument not in ("features", "policy_features"):  # told in words
            value = expected[argument]
            shown = f'"{value}"' if isinstance(value, str) else repr(value)
            assert default == f"`{shown}`", argument


@pytest.mark.parametrize("name", ALL)
def test_defaults_that_are_shown_are_those_that_hold(name: str) -> None:
    for cls in (CLASSES[name], getattr(envs, f"{name}Vector")):
        parameters = arguments_of(cls)
        shown = {argument: parameter.default for argument, parameter in parameters.items()}
        plain, given = cls(), cls(**shown)
        assert given.simulations.world(0).fingerprint == plain.simulations.world(0).fingerprint
        assert vars(given.options).keys() == vars(plain.options).keys()
        assert given.observation_space == plain.observation_space
        assert given.action_space == plain.action_space


@pytest.mark.parametrize("name", ALL)
def test_further_arguments_of_vector_environments(name: str) -> None:
    rows = table(CLASSES[name].__doc__ or "", "Vectorized environment")
    env = VECTOR[name](2, BUSY, jobs=20)
    assert rows["num_envs"][0] == f"`{VECTOR[name](workload=BUSY, jobs=20).num_envs}`"
    assert rows["copy"][0] == f"`{env.copy}`"
    assert rows["max_episode_steps"][0] == f"`{env.max_episode_steps}`"
    assert rows["autoreset_mode"][0] == f'`"{env.metadata["autoreset_mode"].value}"`'
    assert rows["threads"][0] == "`None`"
    assert set(rows) == {"num_envs", "copy", "max_episode_steps", "autoreset_mode", "threads"}


def place(cell: str, **of: int) -> int:
    """The place that a cell such as "22 + 14 w + i" names."""
    return sum(
        math.prod(of[factor] if factor in of else int(factor) for factor in term.split())
        for term in cell.split(" + ")
    )


def test_no_heading_is_empty() -> None:
    pages = [*FOLDER.glob("*.md")]
    assert len(pages) > len(CLASSES)
    for page in pages:
        text = re.sub(r"^```.*?^```", "code", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        parts = re.split(r"^(#+) .*$", text, flags=re.MULTILINE)
        depths = [*map(len, parts[1::2]), 0]
        for text_below, depth, deeper in zip(parts[2::2], depths, depths[1:], strict=False):
            assert text_below.strip() or deeper > depth, page


def assert_numbered(cell: str, size: int) -> None:
    """That a cell such as "0: ...; 1 to 8: ...; 9: ..." has each place once."""
    places: list[int] = []
    for numbers in re.findall(r"(?:^|; )(\d+(?: to \d+)?): ", cell):
        first, _, last = numbers.partition(" to ")
        places += range(int(first), int(last or first) + 1)
    assert places == [*range(size)]


@pytest.mark.parametrize("name", ALL)
def test_places_of_fields(name: str) -> None:
    """The table's places in the flat form are where the dict's fields are."""
    doc = " ".join((CLASSES[name].__doc__ or "").partition("## Obs")[2].split())
    rows = table(CLASSES[name].__doc__ or "", "Observation Space")
    dictionary, flat = SINGLE[name](BUSY, jobs=50), SINGLE[name](BUSY, jobs=50, observation="flat")
    fields, row = dictionary.reset(seed=0)[0], flat.reset(seed=0)[0]
    sizes = {"cluster": QUEUE_AT, "queue": TIME_AT - QUEUE_AT, "time": JOBS_AT - TIME_AT}
    assert ("power" in fields) == (name in LIMITED) == ("power" in rows)
    sizes["progress"] = PROGRESS_SIZE
    if name in LIMITED:
        sizes["power"] = POWER_SIZE
    for field, size in sizes.items():
        places, shape, meaning = rows[field]
        first, last = (place(end, w=128) for end in places.split(" to "))
        np.testing.assert_array_equal(row[first : last + 1], fields[field])
        assert shape == str(fields[field].shape) == f"({size},)"
        if field != "time":
            assert_numbered(meaning, size)
    for field, key in (("jobs", "jobs[i, k]"), ("mask", "mask[i]")):
        shape = rows[key][1].replace("w", "128")
        assert shape == str(fields[field].shape)
        for (i, *k), value in np.ndenumerate(fields[field]):
            assert row[place(rows[key][0], w=128, i=i, k=sum(k))] == value
    (size,) = re.findall(r"`Box\(-1, 1, \((.*?),\), float32\)`: the fields", doc)
    assert place(size, w=128) == row.size


def test_places_of_fields_where_jobs_share_nodes() -> None:
    rows = table(CoSchedule.__doc__ or "", "Observation Space")
    dictionary, flat = CoSchedule(jobs=50), CoSchedule(jobs=50, observation="flat")
    fields, row = dictionary.reset(seed=0)[0], flat.reset(seed=0)[0]
    for field, values in fields.items():
        places, shape, meaning = rows[field]
        first, last = map(int, places.split(" to "))
        assert shape == str(values.shape)
        if field != "mask":
            assert_numbered(meaning, values.shape[-1])
        np.testing.assert_array_equal(row[first : last + 1], values.ravel())
    assert f"({row.size},)" in " ".join((CoSchedule.__doc__ or "").split()).replace(", ", ",")


@pytest.mark.parametrize("name", PAGES)
def test_keys_of_info(name: str) -> None:
    """Those that are always there, also of many, and those of the end."""
    rows = table(PAGES[name].__doc__ or "", "Info")
    if name not in ("JobSelection", "Backfill", "CoSchedule"):
        del rows["action_mask"]
    more: dict[str, Any] = {"paid": "end"} if name in (*NAMES, *FOLLOWING, "Submit") else {}
    more |= {} if name == "CoSchedule" else {"workload": BUSY}
    env = PAGES[name](jobs=10, **more)
    always = {key for key, (when, *_) in rows.items() if "at the end" not in when}
    _, info = env.reset(seed=0)
    assert set(info) == always
    terminated, seen = False, set(info)
    while not terminated:
        action = env.action_space.sample() if env.action_space.shape else 0
        *_, terminated, _, info = env.step(action)
        seen |= set(info)
        assert ("episode_mean_bsld" in info) == terminated
    assert seen == set(rows)
    many = VECTOR[name](2, jobs=10, **more)
    assert {key for key in many.reset()[1] if not key.startswith("_")} == always


def test_names_of_slices() -> None:
    """Those that the page gives as examples have the form that is understood."""
    rows = table(CLASSES["JobSelection"].__doc__ or "", "Starting State")
    names = re.findall(r'"slice": "(.*?)"', "".join(rows))
    assert names == ["window 0017", "week 12", "month 3", "whole", "stream", "rows 300:556"]
    windows = Episodes(BUSY, jobs=10)
    assert windows.find({"slice": "window 0017"}).start == 170
    assert windows.find({"slice": "rows 30:40"}) == windows.find({"start": 30, "jobs": 10})
    assert Episodes(BUSY, "whole").find({"slice": "whole"}).stop == len(BUSY)
    assert Episodes(BUSY, "whole", part="test").find({"slice": "test"}).start == BUSY.row_at(0.5)


def more_python() -> list[str]:
    """The examples that need more than the library."""
    text = "".join(page.read_text() for page in sorted(FOLDER.glob("*.md")))
    return re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def prints(code: str) -> bool:
    return "print" in code


# those that print nothing are tried with the libraries that they are for, in test_libraries.py
@pytest.mark.parametrize("code", list(filter(prints, more_python())))
def test_examples_with_stable_baselines(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some save what they have trained
    pytest.importorskip("sb3_contrib")
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    exec(compile(code, "docs/environments", "exec"), {"__name__": "__page__"})
    assert capsys.readouterr().out


def test_there_are_such_examples() -> None:
    assert any(map(prints, more_python()))
