"""Where the schedules of a page are from, for people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def origin_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what :func:`hpcgym.schedule.provenance.provenance_of` says, as rows of a table."""
    command, schedules = record["command"], record.get("schedules", ())  # a leaderboard has none
    said = "none: from Python" if command is None else shlex.join(["hpcgym", *command])
    return [
        ("written", record["date"]),
        ("by", f"hpcgym {record['hpcgym']}"),
        ("command", said),
        *((f"SHA-256 of {name}", digest) for name, digest in record["files"].items()),
        *((f"SHA-256 of the jobs of {one['name']}", one["sha256"]) for one in record["workloads"]),
        *((f"SHA-256 of the schedule {one['name']}", one["sha256"]) for one in schedules),
    ]
