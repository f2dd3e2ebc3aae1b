"""Files of compiled code: as they were written, by the user, or as if they were not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hpcgym.compilation import files

CONTENT = bytes(range(100))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "code.nbc"
    files.write(path, CONTENT)
    return path


def test_a_file_is_read_as_written(path: Path) -> None:
    assert files.read(path) == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    files.write(path, b"")
    assert files.read(path) == b""
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert files.read(tmp_path / "missing") is None


def test_a_file_that_is_cut_anywhere_is_damaged(path: Path) -> None:
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert files.read(path) is None, end
    path.write_bytes(whole + b"\0")
    assert files.read(path) is None


def test_a_file_with_any_bit_changed_is_damaged(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        assert files.read(path) is None, place


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_a_file_that_others_can_write_is_not_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bits in (0o620, 0o602):
        path.chmod(bits)
        assert files.read(path) is None
    path.chmod(0o644)
    assert files.read(path) == CONTENT
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert files.read(path) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and links")
def test_what_is_no_file_is_not_read(path: Path) -> None:
    (path.parent / "link").symlink_to(path)
    (path.parent / "folder").mkdir()
    os.mkfifo(path.parent / "pipe")
    for name in ("link", "folder", "pipe"):
        assert files.read(path.parent / name) is None


def test_a_file_that_cannot_be_written_stays_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*names: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        files.write(path, b"new")
    assert files.read(path) == CONTENT
    assert list(path.parent.iterdir()) == [path]
