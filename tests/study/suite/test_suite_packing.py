"""Agents of submissions as files of a release, and found again by name."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from freeze_suite import main, pack

from hpcgym.agents import load, saved
from hpcgym.errors import HpcgymError
from hpcgym.study.suite.submissions import read, run
from hpcgym.study.suite.tasks import find_tasks

pytestmark = pytest.mark.usefixtures("small")

NAME = "suite:mini-weights/xnes/lake/1"
FILE = "mini-weights-xnes-lake-1.json"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *about: object) -> None:
        pass


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files of a release; its registry is that of the package."""
    run("xnes", find_tasks("mini-weights"), tmp_path / "done")
    pack(tmp_path / "release", [tmp_path / "done"])
    monkeypatch.setattr(saved, "REGISTRY", tmp_path / "release" / "released.json")
    monkeypatch.setattr(saved, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(saved, "RELEASE", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HPCGYM_WEIGHTS", raising=False)
    saved.registry.cache_clear()
    yield tmp_path / "release"
    saved.registry.cache_clear()


def test_digests_are_those_of_the_files(packed: Path) -> None:
    registry = json.loads((packed / "released.json").read_text())
    assert [*registry] == ["mini-weights/xnes/lake/0", "mini-weights/xnes/lake/1"]
    for told in registry.values():
        content = (packed / told["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == told["sha256"]
    assert len([*packed.iterdir()]) == 3


def test_an_agent_by_name_plays_as_it_did(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCGYM_WEIGHTS", str(packed))
    assert load(NAME).weights_ == load(packed / FILE).weights_
    again = run(NAME, find_tasks("mini-weights"), tmp_path / "again")
    first = read(tmp_path / "done").told("mini-weights", "lake")
    assert again.told("mini-weights", "lake") == {0: first[1]}
    assert not again.tasks["mini-weights"]["trained"]


def test_a_scheduler_that_was_found_plays_by_name(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("rule-es", find_tasks("mini-weights"), tmp_path / "rules")
    registry = pack(packed, [tmp_path / "rules"])  # in the place of that of xnes
    assert registry["mini-weights/rule-es/1"]["file"] == "mini-weights-rule-es-1.toml"
    saved.registry.cache_clear()
    monkeypatch.setenv("HPCGYM_WEIGHTS", str(packed))
    again = run("suite:mini-weights/rule-es/1", find_tasks("mini-weights"), tmp_path / "again")
    first = done.told("mini-weights", "lake")
    assert again.told("mini-weights", "lake") == {0: first[1]}
    assert first[0] != first[1]


def test_it_is_downloaded_once(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    handler = partial(Quiet, directory=str(packed))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(saved, "RELEASE", f"http://127.0.0.1:{server.server_port}")
        assert load(NAME).name == "xnes"
        server.shutdown()
    assert [path.name for path in (tmp_path / "cache" / "weights").iterdir()] == [FILE]
    assert load(NAME).name == "xnes"  # nobody answers any more


def test_what_cannot_be_found_is_said(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HpcgymError) as error:
        load(NAME)
    assert str(error.value) == (
        f"cannot download {NAME} from http://127.0.0.1:9/{FILE}: no connection; get {FILE} another"
        " way, put it into a folder and set HPCGYM_WEIGHTS to that folder"
    )
    with pytest.raises(HpcgymError, match="did you mean suite:mini-weights/xnes/lake/1"):
        load("suite:mini-weights/xmes/lake/1")
    monkeypatch.setenv("HPCGYM_WEIGHTS", str(packed))
    (packed / FILE).write_text("{}")
    with pytest.raises(HpcgymError, match=f"{FILE} is not the file of {NAME}: its SHA-256"):
        load(NAME)


def test_submissions_that_cannot_be_packed_are_said(packed: Path, tmp_path: Path) -> None:
    run("easy", find_tasks("mini-weights"), tmp_path / "easy")
    with pytest.raises(HpcgymError, match="has no files of trained agents"):
        pack(tmp_path / "new", [tmp_path / "easy"])
    with pytest.raises(HpcgymError, match="there are two agents mini-weights/xnes/lake/0"):
        pack(tmp_path / "new", [tmp_path / "done", tmp_path / "done"])
    with pytest.raises(HpcgymError, match="usage"):
        main(["release"])


def test_all_that_is_released_has_a_name_and_a_digest() -> None:
    """Of the registry of the package itself."""
    registry = json.loads(saved.REGISTRY.read_text())
    for name, told in registry.items():
        assert told["file"].rpartition(".")[0] == name.replace("/", "-")
        assert len(told["sha256"]) == 64
