"""What tests of the environment of shared nodes begin with: jobs, codes and options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from drawing import strategies as st
from driving import Step

from hpcgym.cluster import find_cluster
from hpcgym.speedups import generate_speedups
from hpcgym.workload import Workload, assign_codes

SIXTEEN = "codes:jobs=120,processes=24,processors=192,arrivals=poisson,interval=400,seed=3"
NODES = "8x2x12"


def with_files(gb_s: float = 0.5) -> dict[str, Any]:
    """A machine whose file system is too slow for all of its jobs, and what codes ask of it."""
    share = np.tile([0.5, 0.25, 0.0, 0.75], 4)
    speedups = generate_speedups(16, 1.1, 0.2, 0)
    return {
        "cluster": replace(find_cluster(NODES), io_bandwidth_gb_s=gb_s),
        "speedups": replace(speedups, io_share=share, io_demand_mb_s=np.where(share, 20, 0)),
    }


def pair(env: Any, i: int, j: int = 0) -> int:
    """The action that starts visible job i, beside neighbour j - 1 unless j is 0."""
    return int(i * (env.unwrapped.neighbours + 1) + j)


@st.composite
def workloads(draw: st.DrawFn, codes: int = 3, most: int = 12) -> Workload:
    n = draw(st.integers(1, most))
    times = st.lists(st.integers(1, 400), min_size=n, max_size=n)
    columns = {
        "submit_time": np.cumsum(draw(st.lists(st.sampled_from([0, 1, 50, 300]), min_size=n,
                                               max_size=n))),
        "run_time": draw(times),
        "requested_time": draw(times),
        "requested_processors": draw(st.lists(st.integers(1, 32), min_size=n, max_size=n)),
    }  # fmt: skip
    names = [f"code-{k + 1}" for k in range(codes)]
    workload = Workload.from_columns(columns, processors=32, name="drawn")
    return assign_codes(workload, names, seed=draw(st.integers(0, 99)))


SPEEDUPS = "generated:codes=3,mean=1.1,spread=0.3,seed=1"
OPTIONS = st.fixed_dictionaries(
    {
        "allocation": st.sampled_from(["half-socket", "part:3", "compact", "spread"]),
        "partners": st.sampled_from(["best", "fill", "first"]),
        "estimate": st.sampled_from(["requested", "double-requested", "clairvoyant"]),
        "window": st.sampled_from([1, 3, 12]),
        "neighbours": st.sampled_from([1, 2, 8]),
        "cluster": st.sampled_from(["4x2x4", "3x1x11"]),
    }
)
GIVEN = {"speedups": SPEEDUPS}


def seen(steps: list[Step]) -> list[Any]:
    """What an agent may look at; jobs in the future change names, not rows."""
    return [(s.observation, s.info["window"], s.info["neighbours"], s.info["time"]) for s in steps]
