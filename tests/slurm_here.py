"""Marks tests that need Slurm on this machine."""

from __future__ import annotations

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.replay.native import find_programs


def _why_not() -> str:
    """Why no Slurm can be started; empty if one can."""
    try:
        find_programs()
    except HpcgymError as error:
        return str(error)
    return ""


needs_slurm = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "Slurm is installed")
