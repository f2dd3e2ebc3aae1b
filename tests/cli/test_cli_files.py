"""Files that commands write: what they are refused for, whatever the command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from commands import COMMANDS
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.cli.files import Resumed, Written, WrittenFolder, check_files
from hpcgym.cli.running import ExplainedCommand
from hpcgym.errors import HpcgymError

#: Parameters that are files or folders, and not files to write.
READ = {"carbon", "failures", "price", "recording", "published", "speedups_file", "file"}
FOLDERS = {"figures", "folder", "folders", "tensorboard", "results"}

SPEEDUPS = "code,a,b\na,0.9,1.1\nb,0.8,0.7\n"


def hints(command: Any) -> dict[str, Any]:
    return get_type_hints(command.callback, include_extras=True)


def marked(command: Any, kind: type) -> dict[str, Any]:
    """The parameters of a command that are marked so."""
    found = {}
    for name, hint in hints(command).items():
        if get_origin(hint) is Annotated:
            found[name] = next((one for one in get_args(hint)[1:] if isinstance(one, kind)), None)
    return {name: mark for name, mark in found.items() if mark is not None}


def is_path(hint: Any) -> bool:
    return hint is Path or any(map(is_path, get_args(hint)))


OUTPUTS = [
    pytest.param(words, name, id=f"{' '.join(words)} {name}")
    for words, command in COMMANDS.items()
    for name in marked(command, Written)
]


def option(command: Any, name: str) -> list[str]:
    """How a parameter is named on the command line: not at all if it is an argument."""
    (found,) = [one for one in command.params if one.name == name]
    return [] if found.param_type_name == "argument" else [found.opts[0]]


def call(words: tuple[str, ...], given: dict[str, Any], *more: str) -> Any:
    """Call a command with some parameters, and the file ``read`` for all others that it needs."""
    command = COMMANDS[words]
    arguments: list[str] = []
    for one in command.params:
        if one.name in given:
            arguments += [*option(command, one.name), str(given[one.name])]
        elif one.name == "workload" or (one.required and one.name != "force"):
            arguments += [*option(command, one.name), "lublin:jobs=10"]
    return CliRunner().invoke(app, [*words, *arguments, *more])


def refused(result: Any, message: str) -> None:
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert message in line


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HPCGYM_DATA", raising=False)


# --- Every command --------------------------------------------------------------------------------


def test_every_parameter_that_is_a_file_is_known_to_be_read_or_written() -> None:
    """A new one belongs to READ or FOLDERS above, or is Written and so is checked."""
    assert len(COMMANDS) > 20
    for words, command in COMMANDS.items():
        assert isinstance(command, ExplainedCommand), words
        written, resumed = marked(command, Written), marked(command, Resumed)
        paths = {name for name, hint in hints(command).items() if is_path(hint)}
        assert paths <= {*written, *resumed, *READ, *FOLDERS}, words
        assert ("force" in hints(command)) == bool(written), words
    assert len(OUTPUTS) >= 14


@pytest.mark.parametrize(("words", "name"), OUTPUTS)
def test_a_file_that_is_there_stays(words: tuple[str, ...], name: str, tmp_path: Path) -> None:
    ending = marked(COMMANDS[words], Written)[name].endings[0]
    file = tmp_path / f"mine{ending}"
    file.write_text("mine")
    refused(call(words, {name: file}), f"{file} is there already: --force overwrites it")
    link = tmp_path / f"link{ending}"
    link.symlink_to(file)
    refused(call(words, {name: link}), f"{link} is there already")
    assert file.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == sorted([file.name, link.name])


@pytest.mark.slow
@pytest.mark.parametrize(("words", "name"), OUTPUTS)
@pytest.mark.parametrize("how", ["same", "other spelling", "symlink", "hard link"])
def test_a_file_that_is_read_is_never_written(
    words: tuple[str, ...], name: str, how: str, tmp_path: Path
) -> None:
    command = COMMANDS[words]
    ending = marked(command, Written)[name].endings[0]
    file, output = tmp_path / f"mine{ending}", tmp_path / f"link{ending}"
    file.write_text("mine")
    if how == "symlink":
        output.symlink_to(file.name)
    elif how == "hard link":
        output.hardlink_to(file)
    else:
        output = file if how == "same" else Path("../", tmp_path.name, file.name)
    marks = (Written, WrittenFolder, Resumed)
    own = {"force", "format", "context"}.union(*(marked(command, mark) for mark in marks))
    texts = [one.name for one in command.params if one.name not in own and is_text(command, one)]
    assert texts
    needed = next(one for one in (*texts, "workload") if one in REAL)
    before = contents(tmp_path)
    refused(call(words, {name: output, needed: file}, "--force"), "choose another name to write to")
    assert contents(tmp_path) == before
    for one in texts:  # the others may name a file too
        with pytest.raises(HpcgymError, match="choose another name to write to"):
            check_files(command.callback, values(words, {name: output, one: str(file)}, force=True))


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """What is in a folder: which file a name is of, and what it holds."""
    return {path.name: (path.lstat().st_ino, path.read_text()) for path in folder.iterdir()}


#: What commands read, of which each has one.
REAL = (
    *("workload", "source", "generator", "recording", "results", "machine", "folder", "folders"),
    "policy",
)


def is_text(command: Any, parameter: Any) -> bool:
    hint = hints(command).get(parameter.name)
    kinds = {*get_args(hint), *get_args(get_args(hint)[0])}
    return str in kinds or Path in kinds


def values(words: tuple[str, ...], given: dict[str, Any], *, force: bool) -> dict[str, Any]:
    """The values of all parameters of a command, as they are when it runs."""
    blank = dict.fromkeys(one.name for one in COMMANDS[words].params)
    return {**blank, "force": force, **given}


@pytest.mark.parametrize(
    "words", [words for words, one in COMMANDS.items() if len(marked(one, Written)) > 1]
)
def test_two_files_to_write_are_two(words: tuple[str, ...], tmp_path: Path) -> None:
    first, second, *_ = marked(COMMANDS[words], Written).items()
    one, other = (tmp_path / f"a{mark.endings[0]}" for _, mark in (first, second))
    if one == other:
        other = tmp_path / f"b{second[1].endings[0]}"
    other.symlink_to(one)
    result = call(words, {first[0]: one, second[0]: other}, "--force")
    refused(result, "are one file: choose another name for one")
    assert not one.exists()


@pytest.mark.parametrize(("words", "name"), OUTPUTS)
def test_force_pipes_and_new_names_are_let_through(
    words: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    command = COMMANDS[words]
    ending = marked(command, Written)[name].endings[0]
    file, pipe, new = (tmp_path / f"{one}{ending}" for one in ("file", "pipe", "new"))
    file.write_text("mine")
    os.mkfifo(pipe)
    check_files(command.callback, values(words, {name: file}, force=True))
    check_files(command.callback, values(words, {name: pipe}, force=False))
    check_files(command.callback, values(words, {name: new}, force=False))
    assert file.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == sorted([file.name, pipe.name])


@pytest.mark.parametrize(("words", "name"), OUTPUTS)
def test_where_nothing_can_be_written_is_said_before_the_work(
    words: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    ending = marked(COMMANDS[words], Written)[name].endings[0]
    refused(call(words, {name: f"none/a{ending}"}), "there is no folder none")
    refused(call(words, {name: f"/proc/a{ending}"}), f"/proc/a{ending} cannot be written: ")
    (tmp_path / f"folder{ending}").mkdir()
    for more in ((), ("--force",)):
        result = call(words, {name: f"folder{ending}"}, *more)
        refused(result, f"folder{ending} cannot be written: Is a directory")


# --- What is read ---------------------------------------------------------------------------------


def test_arguments_of_generators_are_read(tmp_path: Path) -> None:
    Path("pairs.csv").write_text(SPEEDUPS)
    for words, name, text in (
        (("generate",), "output", "codes:speedups=pairs.csv,jobs=5,processes=4"),
        (("simulate",), "output_file", "codes:jobs=5,speedups=./pairs.csv"),
    ):
        source = "generator" if words == ("generate",) else "workload"
        result = call(words, {name: "pairs.csv", source: text}, "--force")
        refused(result, "pairs.csv is read here: choose another name to write to")
    assert Path("pairs.csv").read_text() == SPEEDUPS


def test_traces_are_read_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is to be fetched first, too."""
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (file := tmp_path / "data" / "KTH-SP2.swf").write_text("mine")
    result = call(("simulate",), {"workload": "kth-sp2", "output_file": file}, "--force")
    refused(result, "KTH-SP2.swf is read here")
    (file := tmp_path / "data" / "own.swf").write_text("mine")  # no trace of the archive
    result = call(("simulate",), {"workload": "own", "output_file": file}, "--force")
    refused(result, "own.swf is read here")
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr("hpcgym.workload.archive.cache_folder", lambda: tmp_path / "cache")
    file = tmp_path / "cache" / "CTC-SP2-1996-3.1-cln.swf.gz"
    given = values(("simulate",), {"workload": "CTC-SP2", "output_file": file}, force=True)
    with pytest.raises(HpcgymError, match="is read here"):
        check_files(COMMANDS["simulate",].callback, given)


def test_blanks_before_a_name_hide_no_input() -> None:
    Path("s.json").write_text("mine")
    given = {"workload": "codes:jobs=20,speedups= s.json", "output_file": Path("s.json")}
    refused(call(("simulate",), given, "--force"), "s.json is read here")


def test_an_open_file_that_is_read_is_no_output(tmp_path: Path) -> None:
    """As ``hpcgym simulate log.swf --output /dev/stdout >> log.swf``."""
    (path := tmp_path / "log.swf").write_text("mine")
    with path.open("a") as file:
        if not Path(f"/proc/self/fd/{file.fileno()}").exists():
            pytest.skip("needs /proc")
        (output := tmp_path / "out.swf").symlink_to(f"/proc/self/fd/{file.fileno()}")
        given = values(("simulate",), {"workload": str(path), "output_file": output}, force=True)
        with pytest.raises(HpcgymError, match="is read here"):
            check_files(COMMANDS["simulate",].callback, given)


def test_who_resumes_overwrites_what_is_resumed_and_nothing_else(tmp_path: Path) -> None:
    Path("mine.pt").write_text("mine")
    Path("other.pt").write_text("other")
    Path("link.pt").symlink_to("mine.pt")
    for agent in ("maskable-ppo", "clone"):
        words = ("train", agent)
        check = COMMANDS[words].callback
        for output in ("mine.pt", "link.pt", "new.pt"):
            given = {"resume": Path("mine.pt"), "output": Path(output)}
            check_files(check, values(words, given, force=False))
        given = {"resume": Path("mine.pt"), "output": Path("other.pt")}
        with pytest.raises(HpcgymError, match=r"other\.pt is there already: --force overwrites it"):
            check_files(check, values(words, given, force=False))
        with pytest.raises(HpcgymError, match=r"it, --resume other\.pt goes on with it"):
            check_files(check, values(words, {"output": Path("other.pt")}, force=False))
    assert Path("mine.pt").read_text() == "mine"


# --- What is written ------------------------------------------------------------------------------


def test_force_overwrites_and_the_second_run_without_it_does_not(tmp_path: Path) -> None:
    Path("pairs.csv").write_text(SPEEDUPS)
    command = ("speedups", "pairs.csv", "--output", "pairs.json")
    for arguments, code in ((command, 0), (command, 1), ((*command, "--force"), 0)):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == code, result.output
    assert Path("pairs.json").read_text().startswith("{")
    assert sorted(os.listdir(tmp_path)) == ["pairs.csv", "pairs.json"]
