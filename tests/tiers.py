"""Tiers of tests: what makes them slow. A test without one is quick."""

from __future__ import annotations

from pathlib import Path

#: The marks; what each means, pyproject.toml says.
NAMES = ("compiled", "study", "distributed", "cli", "pictures")

#: Folder of tests/ -> tiers of all that is in it. Each folder is named here.
TIERS: dict[str, tuple[str, ...]] = {
    ".": (),
    "agents": ("compiled", "study"),
    "baselines": (),
    "baselines/cp": ("compiled",),
    "benchmarks": ("compiled", "study"),
    "cli": ("cli", "compiled"),
    "cluster": (),
    "compilation": ("compiled", "distributed"),
    "drive": ("distributed",),
    "engine": (),
    "envs": ("compiled",),
    "evaluation": ("compiled",),
    "explanation": (),
    "explore": (),
    "files": (),
    "replay": ("distributed",),
    "report": ("pictures",),
    "schedule": (),
    "scheduler": (),
    "simulation": (),
    "simulation/corun": ("compiled",),
    "speedups": (),
    "suite": ("compiled",),
    "sweep": ("compiled", "distributed"),
    "tuning": ("compiled",),
    "validation": (),
    "workload": (),
}

_TESTS = Path(__file__).parent


def tiers_of(path: Path) -> tuple[str, ...]:
    """Return the tiers of the folder that a path is, or is in; () outside of the tests."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_relative_to(_TESTS):
        return ()
    return TIERS.get(folder.relative_to(_TESTS).as_posix(), ())
