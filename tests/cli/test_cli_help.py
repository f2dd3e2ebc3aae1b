"""Help: what stands at the top, and under which headings options stand."""

from __future__ import annotations

import re

import pytest
from commands import COMMANDS, succeed

from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, IMPROVED
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.studies.documents import all_items
from hpcgym.cli.running import PANELS
from hpcgym.machine import machine_names
from hpcgym.scheduler.allocations import ALLOCATIONS
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.policies import POLICIES
from hpcgym.workload.cleaning import FILTERS, RECIPES

#: Those with many options: each has a heading.
LARGE = [words for words, command in COMMANDS.items() if len(command.params) > 10]
#: What only one command has, and stands first in its help.
OWN = {
    ("explain",): {"job", "by", "most", "seconds"},
    ("replay",): {"on"},
}


def test_every_heading_is_a_known_one() -> None:
    used = {one.rich_help_panel for command in COMMANDS.values() for one in command.params}
    assert used == {None, *PANELS}


@pytest.mark.parametrize("words", LARGE, ids=" ".join)
def test_options_of_large_commands_have_headings(words: tuple[str, ...]) -> None:
    params = COMMANDS[words].params
    bare = {
        one.name
        for one in params
        if one.param_type_name == "option" and one.rich_help_panel is None
    }
    assert bare == OWN.get(words, set())


def test_an_option_stands_under_one_heading_everywhere() -> None:
    headings: dict[tuple[str, str], set[str | None]] = {}
    for command in COMMANDS.values():
        for one in command.params:
            if one.param_type_name == "option":
                told = headings.setdefault((one.opts[0], one.help), set())
                told.add(one.rich_help_panel)
    assert len(headings) > 100
    assert [name for name, told in headings.items() if len(told) > 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_and_begins_with_an_example(
    words: tuple[str, ...], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = succeed(*words, "-h").stdout
    assert text == succeed(*words, "--help").stdout
    top, _, rest = text.partition("\n\n    hpcgym ")
    assert top.startswith(f"Usage: hpcgym {' '.join(words)} ")
    assert len(top.splitlines()) < 10
    body = rest.partition("\n\n")[2].partition("\nRunning:\n")[0]
    wide = [line for line in body.splitlines() if len(line) > width and " " in line.strip()]
    assert [line for line in wide if not line.lstrip().startswith(("-", "hpcgym"))] == []


#: Command -> names that its help lists.
_NAMES = [name for name in DISPATCHERS if not name.endswith(IMPROVED)]  # those without are the same
LISTED = {
    ("simulate",): {
        *(*SCHEDULERS, *_NAMES, *COSCHEDULERS, *POLICIES, *ESTIMATES, *RECIPES, *FILTERS),
        *(*ALLOCATIONS, *machine_names(), "popularity-filler"),
    },
    ("sweep", "run"): {*SCHEDULERS, *COSCHEDULERS, *RECIPES},
    ("train", "xnes"): {"processors", "f4", "fairshare", "energy_fairshare"},
    ("train", "record"): {*POLICIES, *_NAMES, *machine_names(), *RECIPES},
}


@pytest.mark.parametrize("words", LISTED, ids=" ".join)
def test_help_lists_all_names(words: tuple[str, ...]) -> None:
    text = succeed(*words, "--help").stdout
    assert [
        one for one in LISTED[words] if not re.search(rf"[ (,]{re.escape(one)}[ ,.:)[\n]", text)
    ] == []
    if words == ("simulate",):
        told = " ".join(text.split())
        assert told.count("needs the extra cp") == len(CP_DISPATCHERS)
        assert "32 nodes of 16 core, 16 GB, 2 gpu; 32 nodes of 16 core, 16 GB, 2 mic" in told


#: What every study takes.
OF_STUDIES = ("folder", "quick", "executor", "workers", "format")
STUDIES = [
    words for words in COMMANDS if words[0] == "reproduce" and words != ("reproduce", "items")
]


def test_all_studies_are_known() -> None:
    named = {one.command.split()[2] for one in all_items(None) if one.command}
    assert named <= {words[1] for words in STUDIES}
    assert len(named) > 4


@pytest.mark.parametrize("words", STUDIES, ids=" ".join)
def test_studies_have_the_same_options(words: tuple[str, ...]) -> None:
    told = {}
    for studied in (words, STUDIES[0]):
        params = {one.name: one for one in COMMANDS[studied].params}
        told[studied] = [
            (params[name].opts, params[name].help, params[name].metavar) for name in OF_STUDIES
        ]
        defaults = [params[name].default for name in OF_STUDIES]
        assert defaults == [None, False, "processes", None, "table"]
    assert told[words] == told[STUDIES[0]]
