"""Compiled code that comes with hpcgym: loaded where it fits, else as good as absent."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest
from tinies import HERE, ONE, Attack, Tiny, give_away

from hpcgym.compilation import files, shipped

KNOWN = shipped.baseline()

pytestmark = pytest.mark.skipif(
    not shipped._runs_here(), reason="no code is shipped for this processor"
)

#: Has hpcgym look for shipped code in a folder of the test, as if it were beside its sources.
BESIDE = """
import os
from pathlib import Path
import hpcgym.compilation as compilation
from hpcgym.compilation import shipped
shipped.FOLDER = Path(os.environ["TINY_SHIPPED"])
compilation._SHIPPED = shipped.find_folder(compilation._name_of_folder())
"""


class Shipped(Tiny):
    """Has ``plus_one`` shipped, and nothing compiled for this machine."""

    def __init__(self, folder: Path, compiled: Path) -> None:
        super().__init__(folder)
        self.shipped = folder / "compiled"
        shutil.copytree(compiled, self.shipped)
        (self.inner,) = self.shipped.iterdir()
        for path in (self.shipped, self.inner, *self.brought()):
            path.chmod(0o644 if path.is_file() else 0o755)  # as pip does
        self.environment["TINY_SHIPPED"] = str(self.shipped)

    def brought(self) -> list[Path]:
        return sorted(self.inner.glob("*.nbc"))

    def run(self, code: str = ONE, before: str = "") -> tuple[str, str]:
        """Return what a process prints, and its warnings; ``before`` hpcgym is imported."""
        return super().run(f"{before}\n{BESIDE}\n{code}")

    def is_compiled(self, code: str = ONE, output: str = "41\n", before: str = "") -> bool:
        """Tell whether ``plus_one`` is compiled when it is used; it gives the same either way."""
        assert self.run(code, before) == (output, "")
        return "plus_one" in self.compiled()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ``plus_one`` compiled for the baseline."""
    assert KNOWN is not None
    tiny = Tiny(tmp_path_factory.mktemp("baseline"))
    tiny.environment["NUMBA_CPU_NAME"] = KNOWN.name
    tiny.environment["NUMBA_CPU_FEATURES"] = shipped.NO_FEATURES
    assert tiny.run() == ("41\n", "")
    return tiny.code


@pytest.fixture
def tiny(tmp_path: Path, compiled: Path) -> Shipped:
    return Shipped(tmp_path, compiled)


def test_shipped_code_is_loaded_and_not_copied(tiny: Shipped) -> None:
    assert not tiny.is_compiled()
    assert not tiny.files()
    assert tiny.run("import tiny; print(tiny.plus_two(20))") == ("42\n", "")
    assert tiny.compiled() == ["plus_two"]  # what it calls was shipped
    assert len(tiny.files()) == 1


def test_shipped_code_is_loaded_where_nothing_can_be_kept(tiny: Shipped) -> None:
    tiny.environment["NUMBA_CACHE_DIR"] = "/dev/null/x"
    output, errors = tiny.run()
    assert output == "41\n"
    assert tiny.compiled() == []
    output, errors = tiny.run("import tiny; print(tiny.plus_two(20), tiny.plus_two.signatures)")
    assert output == "42 [(int64,)]\n"
    assert errors.count("CompilationWarning") == 1  # that it is kept nowhere, as ever
    assert tiny.compiled() == ["plus_two"]


def test_what_the_user_has_compiled_comes_first(tiny: Shipped) -> None:
    Tiny.run(tiny)
    assert tiny.compiled() == ["doubled", "plus_one"]
    output, _ = tiny.run(f"{ONE}; from hpcgym.compilation.kept import used; print(*used)")
    (own,) = [path for path in tiny.files() if "plus_one" in path.name]
    assert output == f"41\n{own}\n"


def test_an_edited_source_is_compiled(tiny: Shipped) -> None:
    copy = tiny.folder / "tiny.py"
    tiny.look_for_tiny_in(tiny.folder)
    copy.write_text((HERE / "tiny.py").read_text())
    assert not tiny.is_compiled()  # wherever it lies
    copy.write_text(copy.read_text().replace("(number) + 1", "(number) + 7"))
    assert tiny.is_compiled(output="47\n")
    assert len(tiny.files()) == 2


OTHERS = {
    "numba": "import numba; numba.__version__ += '.1'",
    "llvmlite": "import llvmlite; llvmlite.__version__ += '.1'",
    "Python": """
from types import SimpleNamespace
from hpcgym.compilation import kept
kept.sys = SimpleNamespace(version_info=(3, 99))
""",
    "processor": """
from types import SimpleNamespace
from hpcgym.compilation import shipped
features = {**shipped.llvm.get_host_cpu_features(), FEATURE: False}
shipped.llvm = SimpleNamespace(get_host_cpu_features=lambda: features)
""",
    "unknown processor": """
from types import SimpleNamespace
from hpcgym.compilation import shipped
def unknown():
    raise RuntimeError("failed to get host cpu features")
shipped.llvm = SimpleNamespace(get_host_cpu_features=unknown)
""",
    "architecture": "import platform; platform.machine = lambda: 'riscv64'",
    "system": "import platform; platform.system = lambda: 'Plan 9'",
}


@pytest.mark.parametrize("other", OTHERS)
def test_code_for_others_is_not_loaded(other: str, tiny: Shipped) -> None:
    """It would run here, so only what is compiled tells."""
    needs = KNOWN.needs if KNOWN is not None else frozenset()
    if "processor" in other and not needs:
        pytest.skip("it runs on all processors of this architecture")
    before = OTHERS[other].replace("FEATURE", repr(min(needs, default="")))
    assert tiny.is_compiled(before=before)
    assert len(tiny.files()) == 2


OTHER = "generic" if KNOWN is None or KNOWN.name != "generic" else "cortex-a53"


@pytest.mark.parametrize(
    "wish", [{"NUMBA_CPU_NAME": OTHER}, {"NUMBA_CPU_FEATURES": ""}, {"NUMBA_OPT": "1"}], ids=str
)
def test_who_wishes_for_another_processor_or_setting_gets_it(
    wish: dict[str, str], tiny: Shipped
) -> None:
    tiny.environment |= wish
    assert tiny.is_compiled()


def test_the_features_are_known_by_these_names() -> None:
    """A name that LLVM does not know would be one that no processor has."""
    import llvmlite.binding as llvm

    assert KNOWN is not None
    assert KNOWN.needs <= set(llvm.get_host_cpu_features())


def test_damaged_code_is_compiled(tiny: Shipped) -> None:
    for path in tiny.brought():
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    assert tiny.is_compiled()
    assert not tiny.is_compiled()  # it is the user's now


# --- Code of others -------------------------------------------------------------------------


@pytest.fixture
def mark(tiny: Shipped) -> Path:
    """Put a pickle that makes a file in place of all shipped code."""
    for path in tiny.brought():
        path.write_bytes(files.sealed(pickle.dumps(Attack(tiny.folder / "mark"))))
    return tiny.folder / "mark"


def test_the_attack_works_on_what_is_trusted(tiny: Shipped, mark: Path) -> None:
    """Or else the next tests would prove nothing."""
    output, _ = tiny.run()
    assert output == "41\n"
    assert mark.exists()


def test_no_code_is_run_that_others_could_write(tiny: Shipped, mark: Path) -> None:
    for path in tiny.brought():
        path.chmod(0o666)
    assert tiny.is_compiled()
    assert not mark.exists()


@pytest.mark.parametrize("level", ["shipped", "inner"])
def test_no_code_is_run_from_a_folder_that_others_could_write(
    level: str, tiny: Shipped, mark: Path
) -> None:
    getattr(tiny, level).chmod(0o777)
    assert tiny.is_compiled()
    assert not mark.exists()


def test_no_code_is_run_of_others_than_the_sources_owner(tiny: Shipped, mark: Path) -> None:
    give_away(*tiny.brought())
    assert tiny.is_compiled()
    assert not mark.exists()


def test_no_code_is_run_through_a_link(tiny: Shipped, mark: Path) -> None:
    elsewhere = tiny.inner.rename(tiny.folder / "elsewhere")
    tiny.inner.symlink_to(elsewhere)
    assert tiny.is_compiled()
    assert not mark.exists()


def test_who_may_write_the_sources_may_write_the_code() -> None:
    """A group of the sources' own, as after a umask of 002, and an owner that is not the user."""

    def found(mode: int, owner: int = 7, group: int = 8) -> os.stat_result:
        return os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))

    def may(mode: int, source: int, **other: int) -> bool:
        return shipped._is_like(found(mode, **other), found(source))

    assert may(0o644, 0o644)
    assert may(0o664, 0o664)
    assert may(0o644, 0o666)
    assert not may(0o664, 0o644)
    assert not may(0o646, 0o664)
    assert not may(0o664, 0o664, group=9)
    assert may(0o644, 0o644, group=9)
    assert not may(0o644, 0o644, owner=9)
