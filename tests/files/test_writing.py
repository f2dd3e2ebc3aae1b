"""Files are written whole or not at all, by whatever writes them."""

import errno
import gzip
import os
import stat
import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

from hpcgym.cli.output import write_jobs
from hpcgym.errors import HpcgymError
from hpcgym.files import open_bytes
from hpcgym.files.writing import (
    check_writable,
    code_folder,
    is_stream,
    same_file,
    whole_file,
    whole_text,
)
from hpcgym.machine.speedups import Heatmap, write_speedups
from hpcgym.report.canvas import new_figure, save_figure
from hpcgym.workload import from_pandas, write_swf, write_table


@pytest.fixture
def umask():
    """Let new files be for their owner, and be read by the group."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    return sorted(os.listdir(folder))


# --- Whole or not at all --------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, "before"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError(errno.ENOSPC, "full")])
def test_an_error_half_way_changes_nothing(before, error, tmp_path):
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    kind = HpcgymError if isinstance(error, OSError) else error

    def write():
        with whole_file(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises(kind):
        write()
    assert names(tmp_path) == ([] if before is None else ["file"])
    assert before is None or path.read_text() == before


def test_another_file_that_is_missing_is_named(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(HpcgymError, match=r"^\S*/none/font: No such file or directory$"):  # noqa: SIM117
        with whole_file(path):
            (tmp_path / "none" / "font").read_text()
    (tmp_path / "a").write_text("a")
    with pytest.raises(HpcgymError, match=r"^\S*/none/font: no such file$"):  # noqa: SIM117
        with open_bytes(tmp_path / "a"):
            (tmp_path / "none" / "font").read_text()
    assert names(tmp_path) == ["a"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="needs root")
def test_a_file_of_another_user_keeps_its_group_where_that_may_be():
    """The user 4321 is in the group 5678, but not in 5679: no other group may get its rights."""
    code = "import os, sys; from hpcgym.files.writing import whole_text\n"
    code += "os.setgroups([5678]); os.setgid(4321); os.setuid(4321)\n"
    code += "with whole_text(sys.argv[1]) as file: file.write('new')"
    # another pytest that begins meanwhile closes the folder of tmp_path to other users
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        for group, expected in ((5678, (5678, 0o664)), (5679, (4321, 0o606))):
            path = Path(folder, str(group))
            path.write_text("old")
            os.chown(path, 1234, group)
            path.chmod(0o666 if group == 5679 else 0o664)
            subprocess.run([sys.executable, "-c", code, path], check=True)
            status = path.stat()
            assert (status.st_gid, stat.S_IMODE(status.st_mode)) == expected


@pytest.mark.parametrize("name", ["x" * 255, "ö" * 127])
def test_the_longest_names_are_names(name, tmp_path):
    path = tmp_path / name
    with whole_text(path) as file:
        file.write("text")
    assert names(tmp_path) == [name]


def test_folders_are_made_on_demand(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    with whole_text(path, folders=True) as file:
        file.write("text")
    assert path.read_text() == "text"


def test_packed_text_is_the_same_bytes_under_any_name(tmp_path):
    for name in ("a.gz", "b.gz"):
        with whole_text(tmp_path / name) as file:
            file.write("Größe\n" * 1000)
    packed = (tmp_path / "a.gz").read_bytes()
    assert packed == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress(packed).decode("utf-8") == "Größe\n" * 1000


# --- What it is that is written to ----------------------------------------------------------------


@pytest.mark.usefixtures("umask")
def test_permissions(tmp_path):
    path = tmp_path / "file"
    for expected in (0o640, 0o640):  # a new one, a replaced one
        with whole_file(path) as part:
            part.write_text("text")
        assert mode(path) == expected
    path.chmod(0o604)  # more than the umask allows
    with whole_file(path) as part:
        assert mode(part) == 0o604  # also before it has its name
        part.write_text("text")
    assert mode(path) == 0o604


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link, file = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to("there/file")
    for text in ("new", "replaced"):
        with whole_file(link) as part:
            part.write_text(text)
        assert link.is_symlink()
        assert not file.is_symlink()
        assert file.read_text() == text
    assert names(tmp_path / "there") == ["file"]


def test_a_file_that_must_not_be_written_to_stays(tmp_path, monkeypatch):
    """Replacing it would only take a folder that can be written."""
    path = tmp_path / "file"
    path.write_text("before")
    monkeypatch.setattr(os, "access", lambda path, wanted: wanted != os.W_OK)
    for write in (check_writable, lambda path: write_swf(log(), path)):
        with pytest.raises(HpcgymError, match="file cannot be written: Permission denied"):
            write(path)
    assert path.read_text() == "before"


def test_a_check_changes_nothing(tmp_path):
    path = tmp_path / "file"
    check_writable(path)
    assert names(tmp_path) == []
    path.write_text("before")
    then = path.stat()
    check_writable(path)
    assert path.stat() == then
    assert names(tmp_path) == ["file"]


def test_pipes_are_written_to(tmp_path):
    pipe = tmp_path / "pipe.csv.gz"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    check_writable(pipe)  # nothing is written by that
    write_table(log(), pipe)
    reader.join(timeout=60)
    assert gzip.decompress(got[0]).startswith(b"job_number,submit_time")
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe.csv.gz"]
    assert is_stream(pipe)
    (tmp_path / "link").symlink_to("/dev/stdout")
    assert is_stream(Path("/dev/stdout"))  # wherever it leads to
    assert is_stream(tmp_path / "link")
    assert not is_stream(tmp_path / "none")
    with whole_text("/dev/null") as file:
        file.write("text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_files_are_the_same_under_all_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "hard").hardlink_to(file)
    (tmp_path / "other").touch()
    (tmp_path / "folder").mkdir()
    for name in ("file", "./file", "folder/../file", "link", "hard"):
        assert same_file(file, Path(name)), name
    assert not same_file(file, Path("other"))
    (tmp_path / "dangling").symlink_to("none")
    assert same_file(tmp_path / "none", Path("dangling"))
    assert not same_file(Path("none"), Path("nobody"))


def test_compiled_code_lies_where_nobody_else_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = tmp_path / "hpcgym" / "code"
    assert code_folder("code") == kept
    assert mode(kept) == 0o700
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    others = [code_folder("code")]
    monkeypatch.undo()
    for cache, bits in ((tmp_path, 0o777), (Path("/dev/null"), 0o700)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        kept.chmod(bits)
        others.append(code_folder("code"))
    for folder in others:
        assert folder != kept
        assert mode(folder) == 0o700
        folder.rmdir()


# --- Everything that writes -----------------------------------------------------------------------


def log():
    return from_pandas(
        pd.DataFrame({"submit_time": [0, 5], "run_time": [7, 8], "requested_processors": [1, 2]}),
        processors=4,
    )


def write_page(path):
    page.write_page([], path)


def write_picture(path):
    save_figure(new_figure(1, 1), path, path.suffix)


def write_agent(path):
    pytest.importorskip("torch")
    from hpcgym.agents.network_files import write

    write(path, {"weights": [1.0]})


def write_weights(path):
    from hpcgym.agents.xnes import Xnes

    agent = Xnes("xnes3", budget=10)
    agent.weights_, agent.best_ = {"area": 1.0}, 2.0
    agent.save(path)


page = import_module("hpcgym.explore.page")
HEATMAP = Heatmap(("a", "b"), np.ones((2, 2)))


def write_schedule(path):
    write_jobs(SimpleNamespace(jobs=log().to_pandas(), allocation=None), path, {})


def write_log(path):
    write_swf(log(), path)


def write_jobs_alone(path):
    write_table(log(), path)


def write_heatmap(path):
    write_speedups(HEATMAP, path)


WRITERS = {
    **dict.fromkeys(("a.swf", "a.swf.gz"), write_log),
    **dict.fromkeys(("a.csv", "a.csv.gz", "a.parquet", "a.json", "a.json.gz"), write_jobs_alone),
    **{f"schedule.{end}": write_schedule for end in ("csv", "csv.gz", "json", "parquet")},
    **dict.fromkeys(("speedups.csv", "speedups.json"), write_heatmap),
    "page.html": write_page,
    **{f"picture.{end}": write_picture for end in ("png", "svg", "pdf")},
    "agent.pt": write_agent,
    "weights.json": write_weights,
}


@pytest.mark.parametrize("name", WRITERS)
def test_all_that_write_leave_the_old_file_until_the_new_one_is_whole(name, tmp_path, monkeypatch):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(page, "page", lambda results, **how: "<!DOCTYPE html>")
    path = tmp_path / name
    path.write_text("before")
    path.chmod(0o600)
    with monkeypatch.context() as patch:

        def full(file):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, "fsync", full)
        with pytest.raises(HpcgymError) as caught:
            WRITERS[name](path)
    assert str(caught.value) == f"{path} cannot be written: No space left on device"
    assert path.read_text() == "before"
    assert names(tmp_path) == [name]

    with path.open() as reader:
        WRITERS[name](path)
        assert reader.read() == "before"
    assert path.read_bytes() != b"before"
    assert mode(path) == 0o600
    assert names(tmp_path) == [name]


test_mistakes = mistakes_of(globals())
