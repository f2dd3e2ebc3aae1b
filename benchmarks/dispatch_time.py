"""What it costs jobs that a dispatcher takes time: slowdowns with and without it."""

import sys
from itertools import product
from typing import Annotated, Any

import pandas as pd
import typer

import hpcgym
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.errors import HpcgymError
from hpcgym.machine import find_cluster


def main(
    workload: Annotated[
        str, typer.Argument(help="a generator without its seed")
    ] = "eurora:jobs=300,load=1",
    cluster: str = "eurora",
    estimate: str = "data-driven",
    dispatchers: str = "prb,pcp20",
    seconds: Annotated[str, typer.Option(help="of a call")] = "1,10,60",
    each: Annotated[float, typer.Option(help="seconds a queued job, in a model")] = 0.5,
    seeds: Annotated[int, typer.Option(help="mean of so many workloads")] = 3,
) -> None:
    """Show what it costs jobs that a dispatcher takes time: a row a dispatcher and time.

    Rows "measured" differ from run to run and from machine to machine; all others repeat:

    python benchmarks/dispatch_time.py eurora:jobs=300,load=1 --seeds 3
    """
    takes: dict[str, Any] = {"none": None, "measured": "measured"}
    takes |= {text: float(text) for text in seconds.split(",")}
    takes[f"{each:g} x queued"] = lambda view: each * len(view.job)
    rules = {"cluster": find_cluster(cluster), "estimate": estimate}
    try:
        found = table(
            [f"{workload},seed={seed}" for seed in range(seeds)], dispatchers, takes, rules
        )
    except HpcgymError as error:
        sys.exit(f"dispatch_time.py: {error}")
    print(found.to_string(index=False, float_format="{:,.2f}".format))


def table(
    sources: list[str], dispatchers: str, takes: dict[str, Any], rules: dict[str, Any]
) -> pd.DataFrame:
    """Return the means over workloads, one row a dispatcher and time."""
    rows = []
    for source in sources:
        jobs = hpcgym.load_workload(source)
        for name, (told, time) in product(dispatchers.split(","), takes.items()):
            result = hpcgym.simulate(jobs, find_dispatcher(name), dispatch_time=time, **rules)
            hpcgym.validate_schedule(result)
            rows.append({"dispatcher": name, "seconds a call": told, **costs(result)})
    found = pd.DataFrame(rows)
    # runs stand workload after workload, each with its first row without any time
    first = found["mean slowdown"].where(found["seconds a call"] == "none").ffill()
    found["seeds worse"] = found["mean slowdown"] > first
    kept = found.groupby(["dispatcher", "seconds a call"], sort=False)
    return kept.mean().assign(**{"seeds worse": kept["seeds worse"].sum()}).reset_index()


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
    typer.run(main)
