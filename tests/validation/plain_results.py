"""What stand-ins for a Result have of all that only some schedules have: nothing."""

from __future__ import annotations

from typing import Any

PLAIN: dict[str, Any] = {
    "outside": False,
    "replayed_on": "",
    "keeps_books": False,
    **dict.fromkeys((
        "idle_seconds", "policy_run_time", "allocation", "frequency", "node_states", "limits",
        "coschedule", "lost", "suspended", "dispatching",
    )),
}  # fmt: skip
