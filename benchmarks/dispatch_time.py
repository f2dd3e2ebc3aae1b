"""What it costs jobs that a dispatcher takes time: slowdowns with and without it."""

import argparse
from typing import Any

import pandas as pd

import hpcgym
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.errors import HpcgymError
from hpcgym.machine import find_cluster

EPILOG = """\
example:
  python benchmarks/dispatch_time.py eurora:jobs=300,load=1 --seeds 3

Rows "measured" differ from run to run and from machine to machine; all others repeat.
"""


def main() -> None:
    """Read the command line, simulate and print a table, one row a dispatcher and time."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", nargs="?", default="eurora:jobs=300,load=1", help="no seed")
    parser.add_argument("--cluster", default="eurora")
    parser.add_argument("--estimate", default="data-driven")
    parser.add_argument("--dispatchers", default="prb,pcp20", metavar="NAME,NAME")
    parser.add_argument("--seconds", default="1,10,60", metavar="S,S", help="of a call")
    parser.add_argument("--each", type=float, default=0.5, help="seconds a queued job, in a model")
    parser.add_argument("--seeds", type=int, default=3, help="mean of so many workloads")
    given = parser.parse_args()
    try:
        print(table(given).to_string(index=False, float_format="{:,.2f}".format))
    except HpcgymError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


def table(given: argparse.Namespace) -> pd.DataFrame:
    """Return the means over seeds, one row a dispatcher and time."""
    cluster = find_cluster(given.cluster)
    rows = []
    for seed in range(given.seeds):
        workload = hpcgym.load_workload(f"{given.workload},seed={seed}")
        for name in given.dispatchers.split(","):
            for told, takes in times(given).items():
                rules = {"estimate": given.estimate, "dispatch_time": takes}
                result = hpcgym.simulate(workload, find_dispatcher(name), cluster=cluster, **rules)
                hpcgym.validate_schedule(result)
                rows.append({"dispatcher": name, "seconds a call": told, **costs(result)})
    found = pd.DataFrame(rows)
    # runs stand seed after seed, each with its first row without any time
    first = found["mean slowdown"].where(found["seconds a call"] == "none").ffill()
    found["seeds worse"] = found["mean slowdown"] > first
    kept = found.groupby(["dispatcher", "seconds a call"], sort=False)
    return kept.mean().assign(**{"seeds worse": kept["seeds worse"].sum()}).reset_index()


def times(given: argparse.Namespace) -> dict[str, Any]:
    """Return what calls may take, by what it is called."""
    numbers = {text: float(text) for text in given.seconds.split(",")}
    each = given.each
    model = {f"{each:g} x queued": lambda view: each * len(view.job)}
    return {"none": None, "measured": "measured", **numbers, **model}


def costs(result: hpcgym.Result) -> dict[str, float]:
    """Return what the jobs of a schedule pay."""
    told, metrics = result.dispatching, result.metrics
    return {
        "mean slowdown": metrics["mean_slowdown"],
        "mean BSLD": metrics["mean_bsld"],
        "mean wait [s]": metrics["mean_wait_s"],
        "of it dispatching [s]": metrics.get("mean_dispatch_s", 0.0),
        "longest call [s]": 0 if told is None else int(told.seconds.max()),
    }


if __name__ == "__main__":
    main()
