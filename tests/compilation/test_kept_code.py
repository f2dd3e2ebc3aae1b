"""Compiled code from end to end, in processes of its own: compiled once, and run only if ours."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tinies import HERE, ONE, Attack, Tiny, give_away

from hpcgym.compilation import files

needs_locks = pytest.mark.skipif(os.name == "nt", reason="there are no locks on Windows")


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny(tmp_path)


def test_code_is_compiled_once(tiny: Tiny) -> None:
    assert tiny.run() == ("41\n", "")
    assert tiny.compiled() == ["doubled", "plus_one"]
    assert tiny.run() == ("41\n", "")
    assert tiny.compiled() == []
    assert tiny.run("import tiny; print(tiny.plus_two(20))") == ("42\n", "")
    assert tiny.compiled() == ["plus_two"]
    assert tiny.run("import tiny; print(tiny.plus_one(0.5))") == ("2.0\n", "")
    assert tiny.compiled() == ["doubled", "plus_one"]
    assert len(tiny.files()) == 5
    assert tiny.run("import tiny; tiny.plus_one.recompile(); print(tiny.plus_one(20))")[0] == "41\n"


def test_edited_functions_are_compiled_anew_and_two_trees_keep_theirs(tiny: Tiny) -> None:
    """The bytecode stays the same: a constant is another."""
    copy = tiny.folder / "tiny.py"
    tiny.look_for_tiny_in(tiny.folder)
    copy.write_text((HERE / "tiny.py").read_text())
    assert tiny.run() == ("41\n", "")
    copy.write_text(copy.read_text().replace("(number) + 1", "(number) + 7"))
    assert tiny.run() == ("47\n", "")
    assert tiny.compiled() == ["doubled", "doubled", "plus_one", "plus_one"]
    tiny.look_for_tiny_in(HERE)
    assert tiny.run() == ("41\n", "")
    assert tiny.compiled() == []


MADE = """
import sys
import numpy as np
from hpcgym.compilation import jit_entry, jit_part

def made(kind):
    if kind == "one":
        @jit_part
        def part(x):
            return np.floor(x) + 1
    elif kind == "constant":
        @jit_part
        def part(x):
            return np.floor(x) + 2
    elif kind == "name":
        @jit_part
        def part(x):
            return np.ceil(x) + 1
    else:
        @jit_part
        def part(x, more=3):
            return np.floor(x) + more

    @jit_entry
    def whole(x):
        return part(x)

    return whole
"""


def test_functions_of_one_name_that_are_parts_by_turns_are_not_mixed_up(tiny: Tiny) -> None:
    tiny.look_for_tiny_in(tiny.folder)
    (tiny.folder / "makes.py").write_text(MADE)
    for _ in range(2):
        for kind, found in (("one", 2.0), ("constant", 3.0), ("name", 3.0), ("default", 4.0)):
            code = f"import makes; print(makes.made({kind!r})(1.5))"
            assert tiny.run(code) == (f"{found}\n", "")
    assert len(tiny.files()) == 4


def test_versions_that_processes_compiled_apart_are_used_side_by_side(tiny: Tiny) -> None:
    """Each is the first that a process compiles: numba numbers their symbols alike.

    The parts are long and called twice, so that they are not put into the functions.
    """
    tiny.look_for_tiny_in(tiny.folder)
    long = "x = x + 0 * np.sin(x) * np.cos(x)\n            "
    made = MADE.replace("jit_part", "jit").replace("return np", long * 80 + "return np")
    made = made.replace("return part(x)", "return max(part(x), part(x - 1))")
    (tiny.folder / "makes.py").write_text(made)
    kinds = {"one": 2.0, "constant": 3.0, "name": 3.0}
    for kind, found in kinds.items():
        code = f"import makes; print(makes.made({kind!r})(1.5))"
        assert tiny.run(code) == (f"{found}\n", "")
    both = "import makes; print([makes.made(kind)(1.5) for kind in %r])"
    assert tiny.run(both % list(kinds)) == (f"{list(kinds.values())}\n", "")
    assert tiny.run(both % list(kinds)[::-1]) == (f"{list(kinds.values())[::-1]}\n", "")
    assert len(tiny.files()) == 6


def test_sources_that_are_written_while_they_are_used_are_not_kept(tiny: Tiny) -> None:
    """Else another branch, checked out meanwhile, would be kept under the name of this one."""
    copy = tiny.folder / "tiny.py"
    tiny.look_for_tiny_in(tiny.folder)
    copy.write_text((HERE / "tiny.py").read_text())
    edit = f"from pathlib import Path; Path({str(copy)!r}).touch(); "
    other = tiny.folder / "other.py"
    other.write_text(copy.read_text())
    os.utime(other, (0, 0))
    move = f"import os; os.replace({str(other)!r}, {str(copy)!r}); "
    for change in (edit, move):
        output, errors = tiny.run(f"import tiny; {change}print(tiny.plus_one(20))")
        assert output == "41\n"
        assert "sources were written after this process began" in errors
        assert tiny.files() == []
    assert tiny.run() == ("41\n", "")
    assert len(tiny.files()) == 2


def test_code_that_is_not_used_for_months_is_dropped(tiny: Tiny) -> None:
    tiny.run()
    before = tiny.files()
    for path in before:
        os.utime(path, (0, 0))
    tiny.run("import tiny; print(tiny.plus_one(0.5))")
    assert not set(before) & set(tiny.files())
    assert len(tiny.files()) == len(before)
    used = [path for path in tiny.files() if "plus_one" in path.name]
    os.utime(used[0], (0, 0))
    tiny.run("import tiny; print(tiny.plus_one(0.5), tiny.plus_one(1))")
    assert used[0] in tiny.files()


def cut(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def flip(whole: bytes) -> bytes:
    """Change machine code, which is most of the file."""
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 0x10
    return bytes(changed)


@pytest.mark.parametrize(
    "damage", [cut, flip, lambda whole: b"", lambda whole: whole[:5]], ids=["half", "bit", "0", "5"]
)
def test_damaged_code_is_compiled_anew_and_replaced(
    damage: Callable[[bytes], bytes], tiny: Tiny
) -> None:
    tiny.run()
    tiny.compiled()
    for path in tiny.files():
        path.write_bytes(damage(path.read_bytes()))
    assert tiny.run() == ("41\n", "")
    assert tiny.compiled() == ["doubled", "plus_one"]
    assert tiny.run() == ("41\n", "")
    assert tiny.compiled() == []


# --- Code of others -------------------------------------------------------------------------


@pytest.fixture
def attacked(tiny: Tiny, tmp_path: Path) -> tuple[Tiny, Path]:
    """Put a pickle that makes a file in place of all compiled code, in a folder as ``/tmp`` is."""
    folder, mark = tmp_path / "temporary", tmp_path / "mark"
    folder.mkdir()
    folder.chmod(0o1777)
    del tiny.environment["NUMBA_CACHE_DIR"]
    tiny.environment |= {"TMPDIR": str(folder), "XDG_CACHE_HOME": "/dev/null/x"}
    tiny.code = folder
    assert tiny.run() == ("41\n", "")
    assert tiny.compiled()
    for path in tiny.files():
        path.write_bytes(files.sealed(pickle.dumps(Attack(mark))))
    return tiny, mark


def test_the_attack_works_on_files_of_ones_own(attacked: tuple[Tiny, Path]) -> None:
    """Or else the next tests would prove nothing."""
    tiny, mark = attacked
    output, _ = tiny.run()
    assert mark.exists()
    assert output == "41\n"


def test_no_code_is_run_from_a_folder_of_another_user(attacked: tuple[Tiny, Path]) -> None:
    tiny, mark = attacked
    (ours,) = tiny.code.iterdir()
    ours.chmod(0o777)
    give_away(ours, *ours.rglob("*"))
    output, errors = tiny.run()
    assert output == "41\n"
    assert not mark.exists()
    assert errors.count("CompilationWarning") == 1
    assert f"{ours} belongs to another user" in errors
    assert tiny.compiled() == ["doubled", "plus_one"]


def test_no_code_is_run_from_a_folder_of_another_user_below_ours(
    attacked: tuple[Tiny, Path],
) -> None:
    tiny, mark = attacked
    (below,) = next(tiny.code.iterdir()).iterdir()
    give_away(below, *below.iterdir())
    output, errors = tiny.run()
    assert output == "41\n"
    assert not mark.exists()
    assert f"{below} belongs to another user" in errors


def test_no_code_is_run_that_another_user_put_into_our_folder(attacked: tuple[Tiny, Path]) -> None:
    """It was open to all; then it is closed, and what lies there is replaced."""
    tiny, mark = attacked
    (below,) = next(tiny.code.iterdir()).iterdir()
    below.chmod(0o777)
    give_away(*below.iterdir())
    assert tiny.run() == ("41\n", "")
    assert not mark.exists()
    assert tiny.compiled() == ["doubled", "plus_one"]
    assert below.stat().st_mode & 0o022 == 0
    assert tiny.run() == ("41\n", "")
    assert tiny.compiled() == []


def test_no_code_is_run_through_a_link(attacked: tuple[Tiny, Path], tmp_path: Path) -> None:
    tiny, mark = attacked
    (ours,) = tiny.code.iterdir()
    ours.rename(tmp_path / "elsewhere")
    ours.symlink_to(tmp_path / "elsewhere")
    output, errors = tiny.run()
    assert output == "41\n"
    assert not mark.exists()
    assert f"{ours} is a link" in errors


def test_no_code_is_run_that_others_could_write(attacked: tuple[Tiny, Path]) -> None:
    tiny, mark = attacked
    for path in tiny.files():
        path.chmod(0o666)
    assert tiny.run() == ("41\n", "")
    assert not mark.exists()


# --- Many processes -------------------------------------------------------------------------


@needs_locks
def test_processes_that_start_together_compile_once(tiny: Tiny) -> None:
    """Each says that it is ready, and waits for a line."""
    code = "import tiny; print(); input(); print(tiny.plus_one(20), tiny.plus_two(20))"
    code = code.replace("print()", "print(flush=True)")
    processes = [tiny.start(code) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        assert process.communicate() == ("41 42\n", "")
    assert tiny.compiled() == ["doubled", "plus_one", "plus_two"]


#: Stops for ever when it begins to compile what both functions call.
STOPS = """
import time, tiny
def stop(self, happened):
    if happened.data["dispatcher"].py_func.__name__ == "doubled":
        print("compiling", flush=True)
        time.sleep(10_000)
tiny.Log.on_start = stop
tiny.plus_one(20)
"""


@needs_locks
def test_a_process_that_is_killed_leaves_no_lock(tiny: Tiny) -> None:
    """The others wait: one for the same function, one for what it calls."""
    first = tiny.start(STOPS)
    assert first.stdout is not None
    assert first.stdout.readline() == "compiling\n"
    others = [tiny.start(), tiny.start("import tiny; print(tiny.plus_two(20))")]
    with pytest.raises(subprocess.TimeoutExpired):  # or else the test would prove nothing
        others[0].wait(3)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert [process.communicate() for process in others] == [("41\n", ""), ("42\n", "")]
    assert tiny.compiled() == ["doubled", "plus_one", "plus_two"]


@needs_locks
def test_a_process_that_waits_too_long_compiles_for_itself(tiny: Tiny) -> None:
    first = tiny.start(STOPS)
    assert first.stdout is not None
    assert first.stdout.readline() == "compiling\n"
    impatient = "from hpcgym.compilation import locks; locks.WAIT_S = 0.2"
    assert tiny.run(f"{impatient}\n{ONE}") == ("41\n", "")
    first.kill()
    first.communicate()


@needs_locks
def test_a_function_that_cannot_be_compiled_leaves_no_lock(tiny: Tiny) -> None:
    fails = """
import tiny
try:
    tiny.plus_one("text")
except Exception as error:
    print(type(error).__name__, flush=True)
input()
"""
    first = tiny.start(fails)
    assert first.stdout is not None
    assert first.stdout.readline() == "TypingError\n"
    output, _ = tiny.run(fails.replace("input()", ""))
    assert output == "TypingError\n"
    first.communicate("\n")


def test_threads_of_a_process_do_not_block_each_other(tiny: Tiny) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
import tiny
with ThreadPoolExecutor(4) as threads:
    calls = [threads.submit(f, 20) for f in (tiny.plus_one, tiny.plus_two) * 2]
print([call.result() for call in calls])
"""
    assert tiny.run(code) == ("[41, 42, 41, 42]\n", "")
    assert tiny.compiled() == ["doubled", "plus_one", "plus_two"]


# --- What may be missing --------------------------------------------------------------------


@needs_locks
def test_a_file_system_without_locks_keeps_code_all_the_same(tiny: Tiny) -> None:
    code = """
import fcntl
def lockf(*arguments):
    raise OSError(37, "No locks available")
fcntl.lockf = lockf
"""
    assert tiny.run(code + ONE) == ("41\n", "")
    assert tiny.run(code + ONE) == ("41\n", "")
    assert tiny.compiled() == ["doubled", "plus_one"]


def test_a_full_disk_ends_nothing(tiny: Tiny) -> None:
    code = """
from hpcgym.compilation import files
def write(path, content):
    raise OSError(28, "No space left on device")
files.write = write
"""
    output, errors = tiny.run(code + ONE)
    assert output == "41\n"
    assert errors.count("CompilationWarning") == 1
    assert "No space left on device" in errors
    assert not tiny.files()


def test_without_a_folder_nothing_is_kept_and_that_is_said_once(tiny: Tiny) -> None:
    tiny.environment["NUMBA_CACHE_DIR"] = "/dev/null/x"
    output, errors = tiny.run()
    assert output == "41\n"
    assert errors.count("CompilationWarning: compiled code is kept nowhere") == 1
    assert tiny.compiled() == ["doubled", "plus_one"]


@pytest.mark.parametrize(
    "moved",
    [
        "from numba.core.compiler import CompileResult; del CompileResult._reduce",
        """
import numba.core.serialize as serialize
dumps = serialize.dumps
del serialize.dumps
import hpcgym.compilation
serialize.dumps = dumps
""",
        "from numba.core.codegen import JITCPUCodegen as c, CPUCodegen as d; del d.magic_tuple",
        """
import numba
def plain(function=None, **options):
    return lambda function: function
numba.njit = plain
""",
    ],
    ids=["parts", "pickles", "processor", "dispatchers"],
)
def test_a_numba_with_other_private_parts_compiles_each_time(moved: str, tiny: Tiny) -> None:
    output, errors = tiny.run(f"{moved}\n{ONE}")
    assert output == "41\n"
    assert errors.count("CompilationWarning: ") == 1
    assert "Traceback" not in errors
    assert not tiny.files()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_the_program_says_in_one_line_why_code_is_not_kept(tiny: Tiny) -> None:
    """As plain Python, to compile nothing."""
    tiny.code.mkdir()
    tiny.code.chmod(0o777)
    tiny.environment["NUMBA_DISABLE_JIT"] = "1"
    process = subprocess.run(
        [sys.executable, "-m", "hpcgym", "simulate", "lublin:jobs=5,processors=4"],
        env=tiny.environment,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0
    (line,) = process.stderr.splitlines()
    assert line.startswith(f"hpcgym: compiled code is not kept below {tiny.code}: others can write")
