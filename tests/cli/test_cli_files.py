"""Files that commands write: what they are refused for, whatever the command."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from commands import COMMANDS, run
from mistakes import why_not

from hpcgym.cli.files import Written, WrittenFolder, check_files
from hpcgym.cli.running import ExplainedCommand

#: Parameters that are files or folders, and not files to write.
READ = {"carbon", "failures", "price", "recording", "published", "speedups_file", "file", "past"}
FOLDERS = {"figures", "folder", "folders", "models", "tensorboard", "results", "weeks_of"}

SPEEDUPS = "code,a,b\na,0.9,1.1\nb,0.8,0.7\n"
READ_HERE = "choose another name to write to"


def marked(command: Any, kind: type) -> dict[str, Any]:
    """The parameters of a command that are marked so."""
    return {name: mark for name, mark in command.written.items() if isinstance(mark, kind)}


OUTPUTS = [
    pytest.param(words, name, id=f"{' '.join(words)} {name}")
    for words, command in COMMANDS.items()
    for name, mark in marked(command, Written).items()
    if not mark.goes_on
]


def ending_of(words: tuple[str, ...], name: str) -> str:
    return str(marked(COMMANDS[words], Written)[name].endings[0])


def line_of(words: tuple[str, ...], given: dict[str, Any], *more: str) -> str:
    """Return the line that a command with some parameters, and jobs for all others, ends in."""
    arguments: list[str] = []
    for parameter in COMMANDS[words].params:
        if (
            parameter.name in given
            or parameter.name == "workload"
            or (parameter.required and parameter.name != "force")
        ):
            arguments += [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
            arguments.append(str(given.get(parameter.name, "lublin:jobs=10")))
    (line,) = run(*words, *arguments, *more).stderr.splitlines()
    return str(line)


def check(words: tuple[str, ...], force: bool = False, **given: Any) -> None:
    """Check files as before a command runs, whose other parameters have no value."""
    blank = dict.fromkeys(parameter.name for parameter in COMMANDS[words].params)
    check_files(COMMANDS[words].written, {**blank, "force": force, **given})


@pytest.fixture(autouse=True)
def _without_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HPCGYM_DATA", raising=False)


# --- Every command --------------------------------------------------------------------------------


def test_every_parameter_that_is_a_file_is_known_to_be_read_or_written() -> None:
    """A new one belongs to READ or FOLDERS above, or is Written and so is checked."""
    assert len(COMMANDS) > 20
    for words, command in COMMANDS.items():
        assert isinstance(command, ExplainedCommand), words
        written = marked(command, Written)
        paths = {
            parameter.name for parameter in command.params if isinstance(parameter.type, click.Path)
        }
        assert paths <= {*written, *READ, *FOLDERS}, words
        forced = any(not mark.goes_on for mark in written.values())
        assert any(parameter.name == "force" for parameter in command.params) == forced, words
    assert len(OUTPUTS) >= 14


@pytest.mark.parametrize(("words", "name"), OUTPUTS)
def test_what_may_be_written_is_said_before_the_work(
    words: tuple[str, ...], name: str, here: Path
) -> None:
    ending = ending_of(words, name)
    file, link, pipe, new = (here / f"{stem}{ending}" for stem in ("mine", "link", "pipe", "new"))
    file.write_text("mine")
    link.symlink_to(file)
    os.mkfifo(pipe)
    assert f"{file} is there already: --force overwrites it" in line_of(words, {name: file})
    assert f"{link} is there already" in line_of(words, {name: link})
    check(words, force=True, **{name: file})
    for path in (pipe, new):
        check(words, **{name: path})
    assert file.read_text() == "mine"
    assert sorted(os.listdir(here)) == sorted([file.name, link.name, pipe.name])
    assert "there is no folder none" in why_not(check, words, **{name: Path(f"none/a{ending}")})
    there = Path(f"/proc/a{ending}")
    assert f"{there} cannot be written: " in why_not(check, words, **{name: there})
    Path(f"folder{ending}").mkdir()
    wrong = ["cannot be written: Is a directory"] * 2
    if marked(COMMANDS[words], Written)[name].folder:
        wrong = ["is there already: --force overwrites it", "is no data set"]
    for problem, more in zip(wrong, ((), ("--force",)), strict=True):
        assert f"folder{ending} {problem}" in line_of(words, {name: f"folder{ending}"}, *more)


#: What commands read, of which each has one.
REAL = (
    *(
        "workload",
        "workloads",
        "source",
        "generator",
        "recording",
        "results",
        "machine",
        "folder",
        "folders",
    ),
    *("policy", "speedups"),
)


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """What is in a folder: which file a name is of, and what it holds."""
    return {path.name: (path.lstat().st_ino, path.read_text()) for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "name"), OUTPUTS)
@pytest.mark.parametrize("how", ["same", "other spelling", "symlink", "hard link"])
def test_a_file_that_is_read_is_never_written(
    words: tuple[str, ...], name: str, how: str, here: Path
) -> None:
    command, ending = COMMANDS[words], ending_of(words, name)
    file, output = here / f"mine{ending}", here / f"link{ending}"
    file.write_text("mine")
    if how == "symlink":
        output.symlink_to(file.name)
    elif how == "hard link":
        output.hardlink_to(file)
    else:
        output = file if how == "same" else Path("../", here.name, file.name)
    marks = (Written, WrittenFolder)
    own = {"force", "format", "context"}.union(*(marked(command, mark) for mark in marks))
    kinds = (click.Path, click.types.StringParamType)
    texts = [parameter.name for parameter in command.params if isinstance(parameter.type, kinds)]
    texts = [text for text in texts if text not in own]
    assert texts
    needed = next(parameter for parameter in (*texts, "workload") if parameter in REAL)
    before = contents(here)
    assert READ_HERE in line_of(words, {name: output, needed: file}, "--force")
    assert contents(here) == before
    for parameter in texts:  # the others may name a file too
        given = {name: output, parameter: str(file)}  # as --errors
        assert READ_HERE in why_not(partial(check, words, force=True, **given))


@pytest.mark.parametrize(
    "words", [words for words, command in COMMANDS.items() if len(marked(command, Written)) > 1]
)
def test_two_files_to_write_are_two(words: tuple[str, ...], here: Path) -> None:
    first, second, *_ = marked(COMMANDS[words], Written)
    first_file, other = here / f"a{ending_of(words, first)}", here / f"b{ending_of(words, second)}"
    other.symlink_to(first_file)
    wrong = "are one file: choose another name for one"
    assert wrong in line_of(words, {first: first_file, second: other}, "--force")
    assert not first_file.exists()


# --- What is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "output", "given"),
    [
        ("generate", "output", {"generator": "codes:speedups=a.csv,jobs=5,processes=4"}),
        ("simulate", "output_file", {"workload": "codes:jobs=5,speedups=./a.csv"}),
        ("simulate", "output_file", {"workload": "codes:jobs=20,speedups= a.csv"}),
        ("simulate", "output_file", {"workload": "a"}),  # of HPCGYM_DATA
    ],
)
def test_files_are_read_by_other_names(
    words: str, output: str, given: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCGYM_DATA", str(here))
    file = "a.swf" if given.get("workload") == "a" else "a.csv"
    Path(file).write_text(SPEEDUPS)
    assert f"read here: {READ_HERE}" in line_of((words,), {output: file, **given}, "--force")
    assert Path(file).read_text() == SPEEDUPS


def test_traces_are_read_by_their_names(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is to be fetched first, too."""
    monkeypatch.setenv("HPCGYM_DATA", str(here))
    (file := here / "KTH-SP2.swf").write_text("mine")
    given = {"workload": "kth-sp2", "output_file": file}
    assert "KTH-SP2.swf is read here" in line_of(("simulate",), given, "--force")
    monkeypatch.setattr("hpcgym.workload.archive.cache_folder", lambda: here)
    file = here / "CTC-SP2-1996-3.1-cln.swf.gz"
    assert "is read here" in why_not(check, ("simulate",), workload="CTC-SP2", output_file=file)


def test_an_open_file_that_is_read_is_no_output(here: Path) -> None:
    """As ``hpcgym simulate log.swf --output /dev/stdout >> log.swf``."""
    (path := here / "log.swf").write_text("mine")
    with path.open("a") as file:
        if not Path(f"/proc/self/fd/{file.fileno()}").exists():
            pytest.skip("needs /proc")
        (output := here / "out.swf").symlink_to(f"/proc/self/fd/{file.fileno()}")
        said = why_not(check, ("simulate",), force=True, workload=str(path), output_file=output)
        assert "is read here" in said


def test_force_overwrites_and_the_second_run_without_it_does_not(here: Path) -> None:
    Path("pairs.csv").write_text(SPEEDUPS)
    command = ("machines", "--speedups", "pairs.csv", "--output", "pairs.json")
    codes = [run(*words).exit_code for words in (command, command, (*command, "--force"))]
    assert codes == [0, 1, 0]
    assert Path("pairs.json").read_text().startswith("{")
    assert sorted(os.listdir(here)) == ["pairs.csv", "pairs.json"]
