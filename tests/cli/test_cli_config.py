"""``--config``: options of commands in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import JOBS, as_json, digests, line, run, succeed

from hpcgym.files.recorded import record_of_file

RULES = ("--policy", "wfp3", "--backfill-order", "sjbf", "--threshold", "18000", "--hold", "0.1")


def told(text: str, *words: Any) -> Any:
    """What a command prints as JSON with a file of options."""
    Path("mine.toml").write_text(text)
    return as_json("--config", "mine.toml", *words)


def rows(text: str, *words: Any) -> list[str]:
    return [row["scheduler"]["name"] for row in told(text, "compare", JOBS, *words)["results"]]


def test_a_file_says_the_same_as_the_command_line() -> None:
    text = "[simulate]\npolicy = 'wfp3'\nbackfill-order = 'sjbf'\nthreshold = 18000\nhold = 0.1\n"
    text += "processors = 40\n[compare]\nscheduler = 'fcfs'\n"
    found, plain = told(text, "simulate", JOBS), as_json("simulate", JOBS, *RULES)
    assert found["scheduler"] == plain["scheduler"]
    assert digests(found) == digests(as_json("simulate", JOBS, *RULES, "--processors", 40))


def test_the_command_line_wins() -> None:
    text = "[compare]\nscheduler = ['easy', 'saf', 'spf']\nthreshold = ['5h', 'none']\n"
    assert len(rows(text)) == 6
    assert rows(text, "--scheduler", "fcfs", "--threshold", "2h") == ["fcfs"]
    several = [f"fcfs, threshold={text}" for text in ("2h", "3h")]
    assert rows(text, "--scheduler=fcfs", "--threshold", "2h,3h") == several
    assert rows("[compare]\nscheduler = 'saf'\nprocessors = 40") == ["saf"]  # one will do


def test_commands_of_groups_have_tables_in_tables() -> None:
    text = "[train.xnes]\nbudget = 3\noutput = 'a.json'\nnumber = 2\njobs = 20\n"
    text += "episodes = 'windows'\n[evaluate]\nworkload = 'lublin:jobs=9,processors=4'"
    Path("mine.toml").write_text(text)
    succeed("--config", "mine.toml", "train", "xnes", "--workload", JOBS)
    assert Path("a.json").is_file()


def test_files_are_verified_without_the_file_of_options() -> None:
    text = "[simulate]\nscheduler = 'saf'\nthreshold = '2h'\noutput = 'a.csv'\ncap = []\n"
    told(text, "simulate", JOBS, "--threshold=1h")
    Path("mine.toml").unlink()
    assert record_of_file(Path("a.csv"))["command"] == [
        *("simulate", "--scheduler=saf", "--output=a.csv"),
        *(JOBS, "--threshold=1h", "--format", "json"),
    ]
    assert succeed("verify", "a.csv").stdout == "a.csv: equal\n"


def test_switches() -> None:
    Path("a.csv").write_text("mine")
    for value, code in (("false", 1), ("true", 0)):
        Path("mine.toml").write_text(f"[simulate]\nforce = {value}\noutput = 'a.csv'")
        assert run("--config=mine.toml", "simulate", JOBS).exit_code == code
    assert Path("a.csv").read_text() != "mine"


def test_no_file_is_read_unless_it_is_named() -> None:
    Path("hpcgym.toml").write_text("[simulate]\nscheduler = 'nonsense'")
    succeed("simulate", JOBS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[simulat]", "mine.toml: hpcgym has no command simulat; did you mean 'simulate'?"),
        ("[train.xness]", "mine.toml: hpcgym has no command train xness; did you mean 'xnes'?"),
        ("[simulate]\nbackfil = 1", "hpcgym simulate has no option --backfil; did you mean 'back"),
        ("[simulate]\nworkload = 'x'", "hpcgym simulate has no option --workload"),
        ("simulate = 1", "simulate is a command: its options stand below [simulate]"),
        ("[simulate]\nforce = 1", "mine.toml: simulate.force must be true or false, not 1"),
        ("[simulate]\nprocessors = true", "simulate.processors must be a text or a number"),
        ("[simulate]\nprocessors = [1, 2]", "simulate.processors takes one value, not a list"),
        ("[compare]\nscheduler = [['a']]", "compare.scheduler must be a text or a number"),
        ("[simulate]\nprocessors = 'x'", "Invalid value for '--processors'"),
        ("[simulate]\nformat = 'xml'", "Invalid value for '--format'"),
        ("[simulate]\nfrom = 'x'", "Invalid value for '--from'"),
        ("[simulate]\nscheduler = 'eazy'", "unknown scheduler or dispatcher 'eazy'"),
        ("[simulate]\nscheduler = ''", "unknown scheduler or dispatcher ''"),
        ("[simulate]\nfair-share = 'formula=x'", "fair_share: unknown formula 'x'"),
        ("[simulate]\nhold = 'share=3'", "hold: share"),
        ("[simulate", "mine.toml is not TOML"),
        (None, "mine.toml: no such file"),
    ],
)
def test_what_a_file_cannot_say(text: str | None, message: str) -> None:
    if text is not None:
        Path("mine.toml").write_text(text)
    said = line("--config", "mine.toml", "simulate", JOBS)
    assert message in said
    assert "mine.toml" in said
