"""Folders of compiled code: the user's alone, or not used."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgym.errors import CompilationWarning
from hpcgym.files.writing import find_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives folders away"
)

SOMEBODY = 54321


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def found(base: Path, name: str = "code") -> Path | None:
    """What is found where nothing but a cache folder can be written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "gettempdir", lambda: "/dev/null/t")
        patch.setenv("XDG_CACHE_HOME", str(base))
        return find_folder(name)


def refused(given: Path, why: str) -> None:
    """Check that a folder is not used, that nothing is made in it, and that one line says why."""
    before = sorted(given.rglob("*"))
    with pytest.warns(CompilationWarning, match=why) as caught:
        assert found(given) is None
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert sorted(given.rglob("*")) == before


@pytest.fixture(params=[0, 0o002, 0o022], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_what_is_made_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "made"))
    folder = find_folder("code")
    assert folder == tmp_path / "made" / "hpcgym" / "code"
    assert {mode(level) for level in (folder, *folder.parents[:2])} == {0o700}


@pytest.mark.parametrize("level", ["hpcgym", "hpcgym/code"])
def test_a_right_of_others_is_taken_away(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_folder("code") == tmp_path / "hpcgym" / "code"
    (tmp_path / level).chmod(0o777)
    assert find_folder("code") == tmp_path / "hpcgym" / "code"
    assert mode(tmp_path / level) == 0o755


@pytest.mark.parametrize("level", ["hpcgym", "hpcgym/code"])
@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_level_that_is_no_folder_is_passed_over(
    level: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary, other = (tmp_path / name for name in ("home", "temporary", "other"))
    for folder in (home, temporary, other):
        folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(temporary))
    (home / level).parent.mkdir(exist_ok=True)
    if kind == "link":
        (home / level).symlink_to(other)
    else:
        (home / level).touch()
    with pytest.warns(CompilationWarning, match=f"{home / level} is a link or no folder"):
        assert find_folder("code") == temporary / f"hpcgym-{os.geteuid()}" / "code"
    assert not list(other.iterdir())


@needs_root
@pytest.mark.parametrize("level", ["hpcgym", "hpcgym/code"])
@pytest.mark.parametrize("bits", [0o700, 0o777])
def test_a_level_of_another_user_is_refused(
    level: str, bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/dev/null/t")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_folder("code") == tmp_path / "hpcgym" / "code"
    (tmp_path / level).chmod(bits)
    os.chown(tmp_path / level, SOMEBODY, SOMEBODY)
    with pytest.warns(CompilationWarning, match=f"{tmp_path / level} belongs to another user"):
        assert find_folder("code") is None
    assert mode(tmp_path / level) == bits


def test_all_levels_are_another_users_to_one_who_owns_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the last one, for those who are not root: they are somebody else instead."""
    assert found(tmp_path) == tmp_path / "hpcgym" / "code"
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    tmp_path.chmod(0o1777)
    refused(tmp_path, f"{tmp_path / 'hpcgym'} belongs to another user")


def test_a_link_to_the_folder_that_is_given_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert found(tmp_path / "link") == tmp_path / "real" / "hpcgym" / "code"


@pytest.mark.parametrize("bits", [0o700, 0o755, 0o775, 0o1777, 0o1770])
def test_a_given_folder_that_will_do(bits: int, tmp_path: Path) -> None:
    tmp_path.chmod(bits)
    assert found(tmp_path) == tmp_path / "hpcgym" / "code"
    assert mode(tmp_path) == bits


@pytest.mark.parametrize("bits", [0o777, 0o702])
def test_a_given_folder_where_all_can_rename_is_refused(bits: int, tmp_path: Path) -> None:
    tmp_path.chmod(bits)
    refused(tmp_path, f"others can write to {tmp_path}; XDG_CACHE_HOME can name")
    assert mode(tmp_path) == bits


@needs_root
@pytest.mark.parametrize("bits", [0o755, 0o1777])
def test_a_given_folder_of_another_user_is_refused(bits: int, tmp_path: Path) -> None:
    os.chown(tmp_path, SOMEBODY, SOMEBODY)
    tmp_path.chmod(bits)  # an owner may rename what lies in a sticky folder too
    refused(tmp_path, f"{tmp_path} belongs to another user")


@needs_root
def test_a_folder_of_root_will_do_unless_a_group_writes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    (tmp_path / "hpcgym" / "code").mkdir(parents=True)
    for level in ("hpcgym", "hpcgym/code"):
        os.chown(tmp_path / level, SOMEBODY, SOMEBODY)
    assert found(tmp_path) == tmp_path / "hpcgym" / "code"
    tmp_path.chmod(0o775)
    refused(tmp_path, f"others can write to {tmp_path}")


def test_without_a_home_nobody_shares_a_folder_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert find_folder("code") == tmp_path / f"hpcgym-{os.geteuid()}" / "code"


def test_where_nothing_can_be_written_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    with pytest.warns(CompilationWarning, match="kept nowhere: no folder"):
        assert find_folder("code") is None


def test_a_folder_that_is_there_is_used_though_nothing_more_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or an image that is read only: what is there can be loaded."""
    assert found(tmp_path) == tmp_path / "hpcgym" / "code"
    (tmp_path / "hpcgym" / "code" / "clock.so").touch()
    monkeypatch.setattr("hpcgym.files.writing.ROOM", 2**80)
    assert found(tmp_path) == tmp_path / "hpcgym" / "code"
    for _ in range(2):  # the second time there is an empty folder
        with pytest.warns(CompilationWarning, match="kept nowhere"):
            assert found(tmp_path, "other") is None
