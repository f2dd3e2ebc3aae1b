"""The command: one hash of all that some hundreds of small simulations and trajectories say."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Guards a change of the simulator in which no schedule may change: simulates the small
workloads of scripts/guarding/cases.txt and prints one hash of all that comes out.

  scripts/guard signature                  for the message of the commit
  scripts/guard signature --cases > now    and what each case says: in both trees, then diff

Hashed are schedules, promises, marks, predictions, nodes, frequencies, books, metrics,
what validate_schedule says, and in environments observations, rewards, masks and
infos. What is refused is hashed as the class of its error, not as its text.
"""
CASES = Path(__file__).with_name("cases.txt")

Row = dict[str, str]  # factor -> the name of its value


def main(given: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="scripts/guard",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["signature"], help="print one hash of all cases")
    parser.add_argument("--cases", action="store_true", help="and hashes of what each says")
    arguments = parser.parse_args(given)
    import hpcgym  # not for --help
    from guarding.facts import hashed

    imported, root = Path(hpcgym.__file__).resolve().parents[1], Path(__file__).resolve().parents[2]
    if imported != root:
        parser.error(f"hpcgym is imported from {imported}, not from {root}")
    said = {}
    for name, group, row in cases():
        facts = run(group, row)
        said[name] = hashed(facts)
        if arguments.cases:
            print(name, *(f"{key}={hashed(part)[:10]}" for key, part in facts.items()))
    print(f"signature {hashed(said)[:12]} of {len(said):,} cases")
    return 0


def cases(text: str | None = None) -> Iterator[tuple[str, str, Row]]:
    """Yield the name of each case, its group, and a value for each factor that it has.

    A group is a line that names it and the usual values of its factors; one that has none is empty.
    The lines below it are cases: their values that are not the usual ones. A line with several
    values of a factor, as ``policy=saf|laf``, is a case for each.
    """
    group, usual = "", Row()
    for line in (CASES.read_text() if text is None else text).splitlines():
        if not line.startswith(" "):
            group, _, words = line.partition(": ")
            usual = dict(word.split("=", 1) for word in words.split(" "))
            continue
        parts = re.split(rf"(?:^|,)({'|'.join(usual)})=", line.strip())  # values may have commas
        for values in product(*(part.split("|") for part in parts[2::2])):
            own = dict(zip(parts[1::2], values, strict=True))
            name = ",".join(f"{factor}={value}" for factor, value in own.items()) or parts[0]
            row = usual | own
            yield f"{group}/{name}", group, {key: value for key, value in row.items() if value}


def run(group: str, row: Row) -> dict[str, Any]:
    """Return what is hashed of a case, by name."""
    from guarding import environments, facts, places, simulations

    known: dict[str, Callable[[Row], Any]]
    known = simulations.GROUPS | places.GROUPS | environments.GROUPS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = facts.attempt(partial(known[group], row))
    return case if isinstance(case, dict) else {"error": case}


if __name__ == "__main__":
    sys.exit(main())
