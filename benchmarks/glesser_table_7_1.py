"""Table 7.1 of D. Glesser's thesis anew: EASY with requested and with actual run times."""

import argparse
import sys
from typing import Any

from sections import Column, Section, console, doing, messages, names_among

import hpcgym
from hpcgym.cli.output import print_csv, print_json
from hpcgym.workload.archive import find

EPILOG = """\
AVEbsld, the mean bounded slowdown, of EASY with the users' requested times, and of
EASY-CLAIRVOYANT with the actual run times; the decrease is that from the first to the second.
Both our columns are computed here, from the logs; only "published" is the thesis's.

  per-event      a scheduling pass after each submission and each end, as in the thesis
  per-timestamp  one pass after all events of a second: what hpcgym does by default

A log is looked for in the folders of HPCGYM_DATA, then among the fetched ones. A log of another
edition than the thesis's has a few jobs more or less, and its values differ accordingly.

examples:
  hpcgym traces fetch KTH-SP2
  python benchmarks/glesser_table_7_1.py
  python benchmarks/glesser_table_7_1.py --log KTH-SP2,SDSC-SP2 --format csv
"""

#: Log as the thesis names it -> its name in the archive, AVEbsld of EASY and EASY-CLAIRVOYANT, and
#: the decrease [%], which the thesis seems to cut, not to round.
PUBLISHED = {
    "KTH-SP2": ("KTH-SP2", 92.6, 71.7, 22),
    "CTC-SP2": ("CTC-SP2", 49.6, 37.2, 25),
    "SDSC-SP2": ("SDSC-SP2", 87.9, 70.5, 19),
    "SDSC-BLUE": ("SDSC-BLUE", 36.5, 30.6, 16),
    "Curie": ("CEA-Curie", 202.1, 69.9, 65),
    "Metacentrum": ("MetaCentrum", 97.6, 81.7, 16),
}
ESTIMATES = {"EASY": "requested", "EASY-CLAIRVOYANT": "clairvoyant"}
COLUMNS = (
    Column("log", "log"),
    Column("jobs", "jobs", ",d"),
    Column("scheduler", "scheduler"),
    Column("published", "published", ".1f"),
    Column("per_event", "per-event", ".4f"),
    Column("difference_percent", "difference %", "+.2f"),
    Column("per_timestamp", "per-timestamp", ".4f"),
    Column("published_decrease_percent", "published decrease %", ".0f"),
    Column("decrease_percent", "decrease %", ".1f"),
)


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--log",
        type=names_among(PUBLISHED),
        default=list(PUBLISHED),
        metavar="NAME,NAME",
        help=f"only these of {', '.join(PUBLISHED)} (all that are on this machine)",
    )
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    given = parser.parse_args()
    try:
        missing = [PUBLISHED[log][0] for log in given.log if find(PUBLISHED[log][0]) is None]
        there = [log for log in given.log if PUBLISHED[log][0] not in missing]
        rows = [row for log in there for row in rows_of(log)]
    except hpcgym.HpcgymError as error:
        sys.exit(f"glesser_table_7_1.py: {error}")
    if given.format == "json":
        print_json({"rows": rows, "missing": missing})
    elif rows and given.format == "csv":
        print_csv(rows)
    elif rows:
        Section("Table 7.1: mean bounded slowdown (AVEbsld)", COLUMNS, rows).print(console())
    if missing and given.format != "json":
        out = console() if given.format == "table" else messages()
        out.print("not on this machine; to fetch them:")
        for name in missing:
            out.print(f"  hpcgym traces fetch {name}")
    if not rows:
        sys.exit("glesser_table_7_1.py: none of these logs is on this machine")


def rows_of(log: str) -> list[dict[str, Any]]:
    """Return a log's rows: EASY and EASY-CLAIRVOYANT, published and by both rules for passes."""
    name, *published, published_decrease = PUBLISHED[log]
    with doing(f"simulating {name}"):
        workload = hpcgym.load_workload(name, clean="glesser")
        values = {
            (scheduler, passes): mean_bsld(workload, estimate=estimate, passes=passes)
            for scheduler, estimate in ESTIMATES.items()
            for passes in ("per-event", "per-timestamp")
        }
    rows = []
    for scheduler, reference in zip(ESTIMATES, published, strict=True):
        ours = values[scheduler, "per-event"]
        clairvoyant = scheduler == "EASY-CLAIRVOYANT"
        rows.append(
            {
                "log": log,
                "jobs": len(workload),
                "scheduler": scheduler,
                "published": reference,
                "per_event": ours,
                "difference_percent": 100 * (ours / reference - 1),
                "per_timestamp": values[scheduler, "per-timestamp"],
                "published_decrease_percent": published_decrease if clairvoyant else None,
                "decrease_percent": decrease(values["EASY", "per-event"], ours)
                if clairvoyant
                else None,
            }
        )
    return rows


def mean_bsld(workload: hpcgym.Workload, **rules: str) -> float:
    """Return the mean bounded slowdown under EASY."""
    return float(hpcgym.simulate(workload, "easy", **rules).metrics["mean_bsld"])


def decrease(before: float, after: float) -> float:
    """Return by how many percent ``after`` lies below ``before``."""
    return 100 * (1 - after / before)


if __name__ == "__main__":
    main()
