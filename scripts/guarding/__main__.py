"""The command: record, check and show."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guarding.record import Difference

LISTED = 40  # cases of each kind that differ

DESCRIPTION = """\
Guards a restructuring of the simulator, in which no schedule may change: simulates
some thousands of small workloads over the whole matrix of what hpcgym can, and
compares hashes of all that comes out with those of another tree.

  scripts/guard record before.txt          in the tree as it was
  scripts/guard check before.txt           in the tree as it is now
  scripts/guard show CASE > now.txt        of a case that differs: in both trees, then diff
  scripts/guard signature                  one hash of one case in ten, for the commit's message

Hashed are schedules, promises, marks, predictions, nodes, frequencies, books, metrics,
what validate_schedule says, and in environments observations, rewards, masks and
infos. What is refused is hashed as the class of its error, not as its text.
"""
EPILOG = """\
Some minutes. Record and check on one machine with the same versions of Python's
packages: the last digits of logarithms may be others elsewhere. The file is a
result and is never committed. A case is named
group/factor=value,... of all values that are not the usual ones.

Where a public name has changed, say so in scripts/guarding/library.py: names of
cases stay, so that they can be compared.

Exit status: 0 nothing differs; 1 a case differs, is missing, or is refused where it ran;
2 wrong usage. Cases that were refused and run now, and new cases, are told and are no fault.
"""


def main(given: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    parser = _parser()
    arguments = parser.parse_args(given)
    from guarding import library  # which imports hpcgym: not for --help

    root = Path(__file__).parents[2]
    if library.library_folder().resolve() != root.resolve():
        parser.error(f"hpcgym is imported from {library.library_folder()}, not from {root}")
    try:
        status: int = arguments.do(arguments)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/guard",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, do, words in (
        ("record", _record, "compute all hashes and write them to FILE"),
        ("check", _check, "compute them anew and say what differs from FILE"),
    ):
        command = commands.add_parser(name, help=words, description=f"{words.capitalize()}.")
        command.add_argument("file", metavar="FILE", type=Path)
        command.add_argument(
            "--only",
            metavar="PATTERN",
            help="only cases whose name contains this; with * or ?, whose whole name matches",
        )
        command.set_defaults(do=do)
    shown = commands.add_parser("show", help="print all that is hashed of a case, a line a part")
    shown.add_argument("case", metavar="CASE", help="its name, or a part that no other has")
    shown.set_defaults(do=_show)
    signed = commands.add_parser("signature", help="print one hash of one case in ten")
    signed.set_defaults(do=_sign)
    listed = commands.add_parser("list", help="print the names of the cases")
    listed.add_argument("--only", metavar="PATTERN")
    listed.set_defaults(do=_list)
    return parser


def _record(arguments: Any) -> int:
    """Compute and write."""
    from guarding import record

    if not arguments.file.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {arguments.file.parent}")
    results = _run(arguments.only)
    record.write(arguments.file, results)
    kinds = Counter(said.state for said in results.values())
    counts = ", ".join(f"{number:,} {state}" for state, number in kinds.most_common())
    print(f"{len(results):,} cases written to {arguments.file}: {counts}")
    return 0


def _check(arguments: Any) -> int:
    """Compute and compare."""
    from guarding import record

    known = record.read(arguments.file)
    now = _run(arguments.only)
    before = {name: said for name, said in known.items() if record.matches(name, arguments.only)}
    found = record.compare(before, now)
    _print(found)
    same = sum(name in before and before[name].digest == said.digest for name, said in now.items())
    print(f"{same:,} of {len(now):,} cases are the same")
    return int(any(difference.kind in record.FAULTS for difference in found))


def _print(found: Sequence[Difference]) -> None:
    """Say what differs, kind by kind."""
    from guarding import record

    for kind, words in record.KINDS.items():
        of_kind = [difference for difference in found if difference.kind == kind]
        if not of_kind:
            continue
        print(f"{len(of_kind):,} {words}:")
        for difference in of_kind[:LISTED]:
            print(f"  {difference.name}" + (f"  [{difference.words}]" if difference.words else ""))
        if len(of_kind) > LISTED:
            groups = Counter(difference.name.partition("/")[0] for difference in of_kind)
            print("  ... in all: " + ", ".join(f"{n:,} {name}" for name, n in groups.items()))


def _show(arguments: Any) -> int:
    """Print what is hashed of a case."""
    from guarding import record
    from guarding.facts import described, parts

    found = record.chosen(arguments.case)
    exact = [case for case in found if case.name == arguments.case]
    if len(exact or found) != 1:
        some = "".join(f"\n  {case.name}" for case in found[:10])
        raise ValueError(f"{len(found):,} cases have {arguments.case!r} in their names{some}")
    (case,) = exact or found
    state, facts = record.facts(case)
    print(f"{case.name}\nstate: {state}")
    for name, part in parts(facts):
        print(f"{name}  {described(part)}")
    return 0


def _sign(arguments: Any) -> int:
    """Print one hash of some cases of each group: a commit changes it knowingly or not at all."""
    from guarding import record

    results = _run(None, record.SIGNED)
    print(f"signature {record.signature(results)} of {len(results):,} cases")
    return 0


def _list(arguments: Any) -> int:
    """Print the names of the cases."""
    from guarding import record

    for case in record.chosen(arguments.only):
        print(case.name)
    return 0


def _run(only: str | None, one_in: int = 1) -> dict[str, Any]:
    """Run the cases that are asked for, with progress where somebody looks."""
    from guarding import record

    cases = record.chosen(only, one_in)
    if not cases:
        raise ValueError(f"no case has {only!r} in its name")
    begin, done = time.monotonic(), 0

    def told(case: Any, said: Any) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            left = (time.monotonic() - begin) / done * (len(cases) - done)
            line = f"{done:,} of {len(cases):,}, {left:.0f} s left  {case.name}"
            sys.stderr.write(f"\r\033[K{line[:78]}")

    results = record.run(cases, told)
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return results


if __name__ == "__main__":
    sys.exit(main())
