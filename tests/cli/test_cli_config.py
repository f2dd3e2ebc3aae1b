"""``--config``: options of commands in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import JOBS, as_json, run, succeed

from hpcgym.files.recorded import record_of_file


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def told(text: str, *words: Any) -> Any:
    """What a command prints as JSON with a file of options."""
    Path("mine.toml").write_text(text)
    return as_json("--config", "mine.toml", *words)


def alike(first: Any, second: Any) -> bool:
    """Whether two outputs are, but for when and how they were asked for."""
    for one in (first, second):
        for key in ("date", "command", "files"):
            one["provenance"].pop(key)
    return bool(first == second)


def test_a_file_says_the_same_as_the_command_line() -> None:
    text = """
        [simulate]
        policy = "wfp3"
        backfill-order = "sjbf"
        threshold = 18000
        processors = 40
        hold = 0.1
        [compare]
        scheduler = "fcfs"
    """
    words = ["--policy", "wfp3", "--backfill-order", "sjbf", "--threshold", "18000"]
    words += ["--processors", "40", "--hold", "0.1", "--format", "json"]
    plain = json.loads(succeed("simulate", JOBS, *words).stdout)
    assert alike(told(text, "simulate", JOBS), plain)


def test_the_command_line_wins() -> None:
    text = """
        [compare]
        scheduler = ["easy", "saf", "spf"]
        threshold = ["5h", "none"]
    """
    rows = told(text, "compare", JOBS)["results"]
    assert len(rows) == 6
    rows = told(text, "compare", JOBS, "--scheduler", "fcfs", "--threshold", "2h")["results"]
    assert [row["scheduler"]["name"] for row in rows] == ["fcfs"]
    rows = told(text, "compare", JOBS, "--scheduler", "fcfs", "--threshold", "2h,3h")["results"]
    assert [row["scheduler"]["name"] for row in rows] == [
        "fcfs, threshold=2h",
        "fcfs, threshold=3h",
    ]
    assert [row["scheduler"]["threshold"] for row in rows] == [7200, 10800]


def test_one_value_will_do_where_there_may_be_several() -> None:
    rows = told("[compare]\nscheduler = 'saf'\nprocessors = 40", "compare", JOBS)["results"]
    assert [row["scheduler"]["name"] for row in rows] == ["saf"]


def test_commands_of_groups_have_tables_in_tables() -> None:
    text = "[train.xnes]\nbudget = 3\noutput = 'a.json'\nnumber = 2\njobs = 20\n"
    text += "episodes = 'windows'\n[evaluate]\nworkload = 'lublin:jobs=9,processors=4'"
    Path("mine.toml").write_text(text)
    succeed("--config", "mine.toml", "train", "xnes", "--workload", JOBS)
    assert Path("a.json").is_file()


def test_files_are_verified_without_the_file_of_options() -> None:
    text = "[simulate]\nscheduler = 'saf'\nthreshold = '2h'\n"
    text += "output = 'a.csv'\ncap = []\n"
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
        done = run("--config=mine.toml", "simulate", JOBS)
        assert done.exit_code == code
    assert Path("a.csv").read_text() != "mine"


def test_no_file_is_read_unless_it_is_named() -> None:
    Path("hpcgym.toml").write_text("[simulate]\nscheduler = 'nonsense'")
    succeed("simulate", JOBS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[simulat]", "mine.toml: hpcgym has no command simulat; did you mean 'simulate'?"),
        ("[train.xness]", "hpcgym has no command train xness; did you mean 'xnes'?"),
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
        ("[simulate", "mine.toml"),
        (None, "mine.toml: no such file"),
    ],
)
def test_what_a_file_cannot_say(text: str | None, message: str) -> None:
    if text is not None:
        Path("mine.toml").write_text(text)
    done = run("--config", "mine.toml", "simulate", JOBS)
    assert done.exit_code == 1, done.output
    (line,) = done.stderr.splitlines()
    assert message in line
    assert "mine.toml" in line
