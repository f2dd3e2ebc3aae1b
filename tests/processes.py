"""Processes of their own, in which functions may have to be compiled."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from hpcgym.compilation.notice import PARTS, text_of


def completed(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; what is said of compiling is not in its ``stderr``.

    It is said where nothing has been compiled before, or only a part.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    told = {f"{text_of(name)}\n" for name in PARTS}
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = "".join(line for line in lines if line not in told)
    return done
