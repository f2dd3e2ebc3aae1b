#!/usr/bin/env python3
"""Break the engine in small ways, one after the other, and say which test notices each.

A test suite that lets one of these pass has lost a guarantee. Each mutant is one edit of one file,
in the working tree; the file is put back afterwards. The engine runs as plain Python, which spares
compiling it once for each mutant. Further arguments go to pytest.

    scripts/mutants.py                 all of them, by the tests of scripts/test
    scripts/mutants.py --only 3 --only 7 tests/engine
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """One edit: ``old``, which stands once in the file, or is the first behind ``after``."""

    what: str
    file: str
    old: str
    new: str
    after: str = ""


ENGINE = "hpcgym/engine/"
MUTANTS = (
    Mutant(
        "a job that ends at the shadow time may not be backfilled",
        ENGINE + "machines/pool/easy.py",
        "predicted <= window)",
        "predicted < window)",
    ),
    Mutant(
        "the shadow time is one second late",
        ENGINE + "machines/pool/easy.py",
        "sim.shadow = time\n",
        "sim.shadow = time + 1\n",
    ),
    Mutant(
        "of several jobs that end at the shadow time one counts",
        ENGINE + "machines/pool/easy.py",
        "            missing -= entries[i].width\n            i += ONE\n        if i < last:",
        "            i += ONE\n        if i < last:",
    ),
    Mutant(
        "of jobs that end together the last started ends first",
        ENGINE + "events.py",
        "progress[entries[i].job].marks < progress[entries[found].job].marks",
        "progress[entries[i].job].marks > progress[entries[found].job].marks",
    ),
    Mutant(
        "equal scores go to the last submitted",
        ENGINE + "orders/scores.py",
        "(score == highest and job < best)",
        "(score == highest and job > best)",
        after="def best_in_block",
    ),
    Mutant(
        "a second correction is added before the first",
        ENGINE + "events.py",
        "INCREMENTS[count]",
        "INCREMENTS[min(count + 1, 10)]",
    ),
    Mutant(
        "a reservation wants one processor more than it needs",
        ENGINE + "machines/pool/profile.py",
        "blocked = profile[step].free < width",
        "blocked = profile[step].free <= width",
    ),
    Mutant(
        "on nodes a job that ends at the shadow time takes from the head",
        ENGINE + "machines/nodes/easy.py",
        "progress[job].predicted > sim.shadow - sim.strict",
        "progress[job].predicted >= sim.shadow - sim.strict",
        after="def may_start",
    ),
    Mutant(
        "a quota lets one job more run",
        ENGINE + "passes/quotas.py",
        "quotas.left[count, 0] < 1",
        "quotas.left[count, 0] < 0",
    ),
    Mutant(
        "a window begins a second late",
        ENGINE + "passes/restricted.py",
        "begins = max(windows.begin[w], sim.time)",
        "begins = max(windows.begin[w] + 1, sim.time)",
    ),
    Mutant(
        "of those that a job may stop, the one that has run longest is stopped first",
        ENGINE + "passes/preempting.py",
        "machine.victims[count].score = np.float64(ran)",
        "machine.victims[count].score = -np.float64(ran)",
    ),
    Mutant(
        "a cap still holds in its last second",
        ENGINE + "machines/limited/starts.py",
        "cap.known == 0 or cap.end <= time or",
        "cap.known == 0 or cap.end < time or",
    ),
    Mutant(
        "work on shared nodes is rounded down",
        ENGINE + "machines/corun/rates.py",
        "np.int64(math.ceil(work / rate))",
        "np.int64(math.floor(work / rate))",
    ),
    Mutant(
        "a user's last job counts twice in the mean of two",
        ENGINE + "events.py",
        "total // history.shape[1]",
        "(total + history[user, 1]) // (history.shape[1] + 1)",
    ),
    Mutant(
        "an environment counts the wait of a job from one second later",
        "hpcgym/envs/kernels/terms.py",
        "terms[WAIT] += begun - row.submit\n",
        "terms[WAIT] += max(begun - row.submit - 1, 0)\n",
        after="def add_wait(",
    ),
)


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of its file with the edit."""
    start = text.index(mutant.after)
    found = text.count(mutant.old, start)
    if not found or (found > 1 and not mutant.after):
        sys.exit(f"mutants: {mutant.file}: {mutant.old!r} stands there {found} times, not once")
    return text[:start] + text[start:].replace(mutant.old, mutant.new, 1)


def first_failure(output: str) -> str:
    """Return the test that noticed, "" if none did."""
    found = re.search(r"^FAILED (\S+)", output, re.MULTILINE)
    return found[1] if found else ""


def main() -> None:
    """Try each mutant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=int, action="append", metavar="N", help="the N-th alone")
    given, others = parser.parse_known_args()
    numbers = given.only or range(1, len(MUTANTS) + 1)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", *{one.file for one in MUTANTS}],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if changed:
        sys.exit(f"mutants: commit these first:\n{changed}")
    texts = {one.file: (ROOT / one.file).read_text(encoding="utf-8") for one in MUTANTS}
    edits = {n: mutated(MUTANTS[n - 1], texts[MUTANTS[n - 1].file]) for n in numbers}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-m", "not slow", *others]
    plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    alive = 0
    for n, text in edits.items():
        one, begun = MUTANTS[n - 1], time.monotonic()
        path = ROOT / one.file
        path.write_text(text, encoding="utf-8")
        try:
            run = subprocess.run(
                command, cwd=ROOT, env=plain, capture_output=True, text=True, check=False
            )
        finally:
            path.write_text(texts[one.file], encoding="utf-8")
        killer = first_failure(run.stdout)
        alive += not killer
        seconds = f"{time.monotonic() - begun:.0f} s"
        print(f"{n:2} {one.what}: {killer or 'NOBODY NOTICES'} ({seconds})", flush=True)
    if alive:
        sys.exit(f"mutants: {alive} of {len(edits)} live")


if __name__ == "__main__":
    main()
