"""The examples in docstrings do what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def modules() -> list[str]:
    """Names of all modules with an example; those that train do so for a second or two."""
    names = []
    for folder in ("hpcgym", "agents", "baselines", "benchmarks"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if ">>> " in file.read_text():
                dotted = ".".join(file.relative_to(ROOT).with_suffix("").parts)
                package = "" if folder == "hpcgym" else "hpcgym."
                names.append(package + dotted.removesuffix(".__init__"))
    return names


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    tested = doctest.testmod(import_module(name))
    assert tested.attempted > 0
    assert tested.failed == 0
