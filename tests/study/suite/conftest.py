"""The small suite of ``small.toml``, in place of that of the package, and who has played it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bringing import play

from hpcgym.study.suite import tasks as module

sys.path.append(str(Path(__file__).parents[3] / "scripts"))  # for freeze_suite


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small suite; its file."""
    path = Path(__file__).with_name("small.toml")
    monkeypatch.setattr(module, "FILE", path)
    known = (module.tasks, module.suite, module._contents)
    for kept in known:
        kept.cache_clear()
    yield path
    for kept in known:
        kept.cache_clear()


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of submissions that several tests take."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def played(small: Path, tmp_path: Path, kept: Path) -> Callable[[str, str], Path]:
    """Return a copy of what an agent did in a task, to be changed; it plays once for all tests."""

    def copied(agent: str, task: str) -> Path:
        before = kept / f"{agent.replace(':', '-')}-{task}"
        if not before.exists():
            play(agent, task, before)
        return Path(shutil.copytree(before, tmp_path / before.name))

    return copied
