"""Completion at TAB: what it proposes, and where the script of a shell lies."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from commands import run, succeed


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("hpcgym sim", ["simulate"]),
        ("hpcgym tra", ["traces", "train"]),
        ("hpcgym traces ", ["list", "show", "fetch"]),
        ("hpcgym simulate KTH-SP2 --policy-", ["--policy-estimate"]),
        ("hpcgym compare KTH-SP2 --format ma", ["markdown"]),
    ],
)
def test_commands_options_and_choices_are_proposed(words: str, proposed: list[str]) -> None:
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    text = run(env={**typed, "_HPCGYM_COMPLETE": "bash_complete"}).stdout
    assert [line.partition(",")[2] for line in text.splitlines()] == proposed


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        ("bash", ".hpcgym-complete.bash"),
        ("zsh", ".hpcgym-complete.zsh"),
        ("fish", ".config/fish/completions/hpcgym.fish"),
    ],
)
def test_a_shell_finds_the_script(shell: str, script: str, tmp_path: Path) -> None:
    user = {"SHELL": f"/usr/bin/{shell}", "HOME": str(tmp_path)}
    for _ in range(2):
        assert script in succeed("--install-completion", env=user).stdout
    text = (tmp_path / script).read_text()
    assert "_HPCGYM_COMPLETE" in text
    assert succeed("--show-completion", env=user).stdout == f"{text}\n"
    begins = tmp_path / f".{shell}rc"
    assert shell == "fish" or begins.read_text() == f". {tmp_path / script}\n"
    if program := shutil.which(shell):
        checked = subprocess.run(
            [program, "-n", tmp_path / script], capture_output=True, check=True
        )
        assert checked.stderr == b""


def test_another_shell_is_told() -> None:
    assert (
        "bash, zsh, fish, not tcsh" in run("--show-completion", env={"SHELL": "/bin/tcsh"}).stderr
    )
