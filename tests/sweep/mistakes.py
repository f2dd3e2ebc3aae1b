"""Mistakes in the file of an experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.sweep import run_experiment


def assert_told(text: str, message: str, folder: Path) -> None:
    """Assert that an experiment ends in one line, with the file and the message, before it runs."""
    path = folder / "wrong.toml"
    path.write_text(text)
    with pytest.raises(HpcgymError) as caught:
        run_experiment(path, folder / "sweep", "serial")
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert not (folder / "sweep").exists()
