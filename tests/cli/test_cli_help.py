"""Help: what stands at the top, and under which headings options stand."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from commands import COMMANDS, as_csv, run, succeed

from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, IMPROVED
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.studies.documents import all_items
from hpcgym.cli.groups import HEADINGS
from hpcgym.cli.names import KINDS
from hpcgym.machine import machine_names
from hpcgym.scheduler.allocations import ALLOCATIONS
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.policies import POLICIES
from hpcgym.study import EXECUTORS
from hpcgym.workload.cleaning import FILTERS, RECIPES

#: Those with many options: each has a heading.
LARGE = [words for words, command in COMMANDS.items() if len(command.params) > 10]
#: What only one command has, and stands first in its help.
OWN = {
    ("explain",): {"job", "by", "most", "seconds"},
    ("replay",): {"on"},
}


def test_every_heading_is_a_known_one() -> None:
    used = {parameter.heading for command in COMMANDS.values() for parameter in command.params}
    assert used == {*HEADINGS}


@pytest.mark.parametrize("words", LARGE, ids=" ".join)
def test_options_of_large_commands_have_headings(words: tuple[str, ...]) -> None:
    params = COMMANDS[words].params
    bare = {parameter.name for parameter in params if parameter.heading == "Options"}
    assert bare == OWN.get(words, set())


def test_an_option_stands_under_one_heading_everywhere() -> None:
    headings: dict[tuple[str, str], set[str | None]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                headings_of_option = headings.setdefault((parameter.opts[0], parameter.help), set())
                headings_of_option.add(parameter.heading)
    assert len(headings) > 100
    assert [
        name for name, headings_of_option in headings.items() if len(headings_of_option) > 1
    ] == []


def test_short_help_says_what_options_take() -> None:
    """However long the first of several words is."""
    assert "--by user|group|code|..." in succeed("explain", "-h").stdout
    assert "--metric NAME..." in succeed("compare", "-h").stdout
    for words in COMMANDS:
        assert " |..." not in succeed(*words, "-h").stdout


def test_an_unknown_command_is_told_the_nearest() -> None:
    assert "Did you mean 'compare'?" in run("compar").stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_and_begins_with_an_example(
    words: tuple[str, ...], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert succeed(*words, "-h").stdout == succeed(*words, "--help").stdout
    text = succeed(*words, "--help-all").stdout
    top, _, rest = text.partition("\n\n    hpcgym ")
    assert top.startswith(f"Usage: hpcgym {' '.join(words)} ")
    assert len(top.splitlines()) < 10
    body = rest.partition("\n\n")[2].partition("\nRunning:\n")[0]
    wide = [line for line in body.splitlines() if len(line) > width and " " in line.strip()]
    assert [line for line in wide if not line.lstrip().startswith(("-", "hpcgym"))] == []


_NAMES = [name for name in DISPATCHERS if not name.endswith(IMPROVED)]  # those without are the same
#: Kind of names -> those that are listed.
LISTED: dict[str, Iterable[str]] = {
    "schedulers": SCHEDULERS,
    "dispatchers": _NAMES,
    "coschedulers": COSCHEDULERS,
    "policies": POLICIES,
    "pair-policies": ["popularity-filler"],
    "estimates": ESTIMATES,
    "allocations": ALLOCATIONS,
    "recipes": [*RECIPES, *FILTERS],
    "machines": machine_names(),
    "features": ["processors", "energy_fairshare"],
    "metrics": ["mean_bsld"],
    "executors": EXECUTORS,
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_names_are_listed_with_meanings(kind: str) -> None:
    rows = as_csv("list", kind)
    assert {row["name"] for row in rows} >= set(LISTED.get(kind, ()))
    assert all(row["meaning"] for row in rows)
    assert kind in succeed("list").stdout


def test_lists_tell_what_is_needed() -> None:
    lists = {kind: succeed("list", kind).stdout for kind in ("dispatchers", "machines")}
    assert lists["dispatchers"].count("needs the extra cp") == len(CP_DISPATCHERS)
    assert (
        "32 nodes of 16 core, 16 GB, 2 gpu; 32 nodes of 16 core, 16 GB, 2 mic" in lists["machines"]
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_short_help_fits_a_screen(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = succeed(*words, "-h").stdout
    assert len(text.splitlines()) <= 60
    whole = succeed(*words, "--help-all").stdout
    options = {
        parameter.opts[0]
        for parameter in COMMANDS[words].params
        if parameter.param_type_name == "option"
    }
    assert [name for name in options if name not in whole] == []
    if text == whole:
        return
    hidden = re.search(r"these and (\d+) more", text)
    shown = [line for line in text.splitlines() if re.match(r"  (-\w, )?--", line)]
    assert len(shown) + int(hidden[1] if hidden else 0) == len(options) + 1  # --help


#: What every study takes.
OF_STUDIES = ("folder", "quick", "executor", "format")
STUDIES = [
    words
    for words in COMMANDS
    if words[0] == "reproduce" and words[1] not in ("items", "sample")  # of all documents
]


def test_all_studies_are_known() -> None:
    named = {item.command.split()[2] for item in all_items() if item.command}
    assert named <= {words[1] for words in STUDIES}
    assert len(named) > 4


@pytest.mark.parametrize("words", STUDIES, ids=" ".join)
def test_studies_have_the_same_options(words: tuple[str, ...]) -> None:
    options = {}
    for studied in (words, STUDIES[0]):
        params = {parameter.name: parameter for parameter in COMMANDS[studied].params}
        options[studied] = [
            (params[name].opts, params[name].help, params[name].metavar) for name in OF_STUDIES
        ]
        defaults = [params[name].default for name in OF_STUDIES]
        assert defaults == [None, False, "processes", "table"]
    assert options[words] == options[STUDIES[0]]
