#!/usr/bin/env python3
"""Build a wheel of hpcgym with compiled code in it; ``scripts/build-wheel`` says more."""

import argparse
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import hpcgym
from hpcgym.compilation import shipped

ROOT = Path(__file__).parents[1]

#: Has setuptools name the system and the Python in the wheel: it is not for others.
SETUP = """\
from setuptools import Distribution, setup


class Compiled(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=Compiled)
"""


def main() -> None:
    """Compile, and build the wheel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    given = parser.parse_args()
    if Path(hpcgym.__file__).parents[1] != ROOT:
        sys.exit(f"build-wheel: Python imports hpcgym from {Path(hpcgym.__file__).parent}")
    baseline = shipped.baseline()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "hpcgym"
        copy_sources(tree)
        if baseline is None:
            system = f"{platform.system()} on {platform.machine()}"
            print(f"for {system} no compiled code is put into the wheel: users compile it")
        else:
            print(f"compiling for {baseline.name}, which all users' processors must be or surpass")
            add_code(tree, compiled_for(baseline, given.parts))
        wheel = built(tree, given.output)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


def compiled_for(baseline: shipped.Baseline, parts: list[str]) -> list[Path]:
    """Return the files of all functions of some parts that Python calls, compiled now if need be.

    Processes of their own do so: numba reads when it is imported what it is to compile for. They
    have two threads, for with one hpcgym uses nothing of what is for many. After one that has
    compiled another one tells what is needed: those that only others call are compiled into them.
    """
    for name in os.environ.keys() - {"NUMBA_CACHE_DIR"}:
        if name.startswith("NUMBA_"):
            del os.environ[name]  # users have none of them
    os.environ["NUMBA_CPU_NAME"] = baseline.name
    os.environ["NUMBA_CPU_FEATURES"] = shipped.NO_FEATURES
    os.environ["NUMBA_NUM_THREADS"] = "2"
    for _ in range(2):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            files, seconds = process.submit(compile_parts, parts).result()
        if not seconds:
            return files
    sys.exit("build-wheel: what has been compiled is not found again")


def compile_parts(parts: list[str]) -> tuple[list[Path], float]:
    """Compile some parts, by default all; return what files were used, and the seconds it took."""
    from hpcgym.compilation import kept
    from hpcgym.warmup import PARTS, check_parts, kept_in, warmup

    try:
        names = check_parts(parts or PARTS)
    except hpcgym.HpcgymError as error:
        raise SystemExit(f"build-wheel: {error}") from None
    folder = kept_in()
    if folder is None:
        raise SystemExit(
            "build-wheel: compiled code is kept nowhere; NUMBA_CACHE_DIR can say where"
        )
    total = 0.0
    for number, name in enumerate(names, 1):
        print(f"{number:2}/{len(names)} {name:20}", end="", flush=True)
        seconds = warmup([name])[name]
        print(f"{seconds:6.1f} s" if seconds else " compiled already", flush=True)
        total += seconds
    return sorted(path for path in kept.used if path.parent == Path(folder)), total


def copy_sources(tree: Path) -> None:
    """Copy what a wheel is built from; in the repository a build would leave traces."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = settings["tool"]["setuptools"]["package-dir"].values()
    for name in {Path(each).parts[0] for each in packages}:
        ignored = shutil.ignore_patterns("__pycache__", shipped.FOLDER.name)
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)


def add_code(tree: Path, files: list[Path]) -> None:
    """Put compiled functions where an installed hpcgym looks for them."""
    for file in files:
        folder = tree / "hpcgym" / shipped.FOLDER.name / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        # what is kept is for its user's eyes alone, a wheel for all who use an installation
        shutil.copyfile(file, folder / file.name)
        (folder / file.name).chmod(0o644)
    (tree / "setup.py").write_text(SETUP)
    size = sum(file.stat().st_size for file in files)
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("numba", "llvmlite")
    )
    print(f"{len(files)} compiled functions, {size / 1e6:.1f} MB unpacked, for {versions}")


def built(tree: Path, output: Path) -> Path:
    """Return the wheel of a tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--wheel-dir"]
    # needs no network where setuptools is there; else pip fetches the one that is wanted
    if has_setuptools():
        command.insert(-1, "--no-build-isolation")
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*command, folder, str(tree)], check=False).returncode:
            sys.exit("build-wheel: pip could not build the wheel")
        (wheel,) = Path(folder).glob("*.whl")
        output.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, output / wheel.name))


def has_setuptools() -> bool:
    """Tell whether pyproject.toml's setuptools is there."""
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= 77
    except importlib.metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
