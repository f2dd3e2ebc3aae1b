"""Random dispatching problems, small and large, in the words of the brute force and as views."""

import random

import numpy as np

from hpcgym.scheduler.dispatchers.view import PassView

RESOURCES = ("core", "mem", "gpu")
NOW = 1000


def small(seed):
    """Return (nodes, running, jobs, waits) as the brute force takes them: up to 6 jobs, 4 nodes."""
    rng = random.Random(seed)
    resources = rng.randint(1, 3)
    kinds = [tuple(rng.randint(min(r, 0) + (r == 0), 4) for r in range(resources)) for _ in "ab"]
    nodes = [rng.choice(kinds) for _ in range(rng.randint(1, 4))]
    free = [list(amounts) for amounts in nodes]
    running = []
    for _ in range(rng.randint(0, 4)):
        node = rng.randrange(len(nodes))
        demand = tuple(rng.randint(r == 0, 2) for r in range(resources))
        if all(has >= asks for has, asks in zip(free[node], demand, strict=True)):
            free[node] = [has - asks for has, asks in zip(free[node], demand, strict=True)]
            running.append((node, demand, rng.randint(1, 8)))
    jobs = []
    for _ in range(rng.randint(2, 6)):
        units = rng.choice([1, 1, 2, 3])
        demand = (rng.randint(1, 3), *(rng.choice([0, 0, 1, 2, 3]) for _ in range(resources - 1)))
        if sum(_hold(amounts, demand) for amounts in nodes) >= units:
            jobs.append((units, demand, rng.randint(1, 9)))
    jobs = jobs or [(1, tuple(int(r == 0) for r in range(resources)), 5)]
    return nodes, running, jobs, [rng.randint(0, 10) for _ in jobs]


def _hold(amounts, demand):
    return min(has // asks for has, asks in zip(amounts, demand, strict=True) if asks)


def view_of(nodes, running, jobs, waits):
    """Return such a problem as a view; each running entry is a job of one unit."""
    queue = {
        "submit": [NOW - wait for wait in waits],
        "duration": [duration for _, _, duration in jobs],
        "units": [units for units, _, _ in jobs],
        "per_unit": [demand for _, demand, _ in jobs],
    }
    runs = {
        "end": [NOW + end for _, _, end in running],
        "start": [NOW - 1 for _ in running],
        "per_unit": np.array([demand for _, demand, _ in running]).reshape(-1, len(nodes[0])),
        "first": list(range(len(running) + 1)),
        "node": [node for node, _, _ in running],
        "units": [1 for _ in running],
    }
    return PassView.of(NOW, RESOURCES[: len(nodes[0])], nodes, queue=queue, running=runs)


def machine(kind):
    """Return resources and capacity of Eurora or KIT ForHLR II (Galleguillos 2020, section 4)."""
    if kind == "eurora":
        rows = [[16, 16_000, 2, 0]] * 32 + [[16, 16_000, 0, 2]] * 32
        return ("core", "mem", "gpu", "mic"), np.array(rows)
    rows = [[20, 64_000, 0]] * 1152 + [[48, 1_000_000, 4]] * 21
    return ("core", "mem", "gpu"), np.array(rows)


def busy(kind, queued, seed, load=1.1):
    """Return a view of a machine nearly full of running jobs, with some jobs queued."""
    rng = np.random.default_rng(seed)
    resources, capacity = machine(kind)
    free = capacity.copy()
    running = {name: [] for name in ("end", "start", "per_unit", "node", "units")}
    first = [0]
    asked = 0
    while asked < load * capacity[:, 0].sum():
        units, demand, duration = _job(rng, kind)
        asked += units * demand[0]
        held = (free[:, demand > 0] // demand[demand > 0]).min(axis=1)
        if held.sum() < units:
            continue
        taken = np.clip(units - (np.cumsum(held) - held), 0, held)
        nodes = np.flatnonzero(taken)
        free[nodes] -= taken[nodes, None] * demand
        running["node"] += nodes.tolist()
        running["units"] += taken[nodes].tolist()
        running["end"].append(NOW + int(rng.integers(1, duration + 1)))
        running["start"].append(NOW - 1)
        running["per_unit"].append(demand)
        first.append(len(running["node"]))
    jobs = [_job(rng, kind) for _ in range(queued)]
    queue = {
        "submit": np.sort(NOW - rng.integers(0, 5000, queued)),
        "duration": [duration for _, _, duration in jobs],
        "units": [units for units, _, _ in jobs],
        "per_unit": [demand for _, demand, _ in jobs],
    }
    return PassView.of(NOW, resources, capacity, queue=queue, running={**running, "first": first})


def _job(rng, kind):
    """Return units, demand and duration [s]: two thirds short, nodes and cores, some devices."""
    duration = int(rng.exponential(900 if rng.random() < 0.67 else 20_000)) + 10
    if kind == "eurora":
        device = rng.random()
        demand = [int(rng.choice([1, 2, 4, 8, 16])), int(rng.choice([500, 4000, 8000])), 0, 0]
        demand[2] = int(device < 0.2)
        demand[3] = int(device > 0.9)
        return int(rng.choice([1, 1, 1, 2])), np.array(demand), duration
    if rng.random() < 0.6:
        return int(rng.choice([1, 1, 2, 4, 8])), np.array([20, 60_000, 0]), duration
    return int(rng.choice([1, 2, 4, 8])), np.array([1, int(rng.choice([1000, 6000])), 0]), duration
