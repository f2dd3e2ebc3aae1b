"""Networks as orders: files, vectors, and the schedules that they lead to."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym.baselines import find_baseline, find_scheduler
from hpcgym.baselines.labels import describe
from hpcgym.scheduler.files import network_scheduler, read_scheduler, write_scheduler
from hpcgym.scheduler.policies.networks import (
    INPUTS,
    Network,
    aged_network,
    read_network,
    write_network,
)
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.batch import BatchSimulator

JOBS = hpcgym.load_workload("lublin:jobs=1500,processors=64,seed=3,load=1.1")
LEARNED = {"policy_estimate": "typical-ratio"}


def drawn(seed: int) -> Network:
    """A network with all numbers drawn."""
    begin, rng = aged_network(seed=seed), np.random.default_rng(seed)
    return begin.from_vector(begin.to_vector() + rng.normal(0, 0.3, begin.to_vector().size))


def small(**changes: Any) -> Network:
    """A network of two inputs and two units."""
    given: dict[str, Any] = {
        "inputs": ("log(requested)", "free"),
        "center": [7, 0.5],
        "scale": [2, 0.25],
        "skip": [-1, 0],
        "hidden": [[1, 2], [0.5, -1]],
        "bias": [0.25, 0],
        "output": [0.5, -3],
    }
    return Network(**given | changes)


@pytest.mark.parametrize(
    "workload", ["KTH-SP2-1996-2.swf.gz", "lublin:jobs=2500,processors=128,seed=1,load=1.15"]
)
def test_outputs_of_0_are_the_order_of_aged(workload: str, trace: Callable[[str], Path]) -> None:
    jobs = hpcgym.load_workload(trace(workload) if workload.endswith(".gz") else workload)
    ours = hpcgym.simulate(jobs, network_scheduler(aged_network()))
    assert ours.start.tolist() == hpcgym.simulate(jobs, "aged").start.tolist()
    other = hpcgym.simulate(jobs, network_scheduler(drawn(0)))
    assert ours.start.tolist() != other.start.tolist()


def test_it_is_the_formula_that_it_stands_for() -> None:
    """The same as an expression, by other sums, whose last digits decide nothing here."""
    inputs = ["log(requested)", "free", "log(wait+60)", "log(1+last_run)", "leaves"]
    rng, n = np.random.default_rng(5), len(inputs)
    numbers = [rng.normal(0, 1, shape) for shape in (n, n, (3, n), 3, 3)]
    center, skip, hidden, bias, output = numbers
    network = Network(tuple(inputs), center, np.full(n, 2.0), skip, hidden, bias, output)
    scaled = [f"(({x}) - ({c!r})) / 2" for x, c in zip(inputs, center.tolist(), strict=True)]

    def total(weights: Any, first: str) -> str:
        pairs = zip(np.asarray(weights).tolist(), scaled, strict=True)
        return " + ".join([first, *(f"({weight!r}) * ({x})" for weight, x in pairs)])

    units = [
        f"({w!r}) * tanh({total(row, repr(b))})"
        for w, row, b in zip(output.tolist(), hidden, bias.tolist(), strict=True)
    ]
    for rules in ({}, LEARNED):
        ours = hpcgym.simulate(JOBS, "easy", policy=network, **rules)
        theirs = hpcgym.simulate(JOBS, "easy", policy=total(skip, " + ".join(units)), **rules)
        assert ours.start.tolist() == theirs.start.tolist()
        assert hpcgym.validate_schedule(ours)


def test_a_vector_has_all_weights() -> None:
    network = aged_network(seed=2)
    vector = network.to_vector()
    assert vector.shape == (348,)
    assert vector.dtype == np.float64
    assert network.from_vector(vector) == network
    vector[-1] = 1.0
    assert network.from_vector(vector).output[-1] == 1.0
    assert network.output[-1] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        network.output[0] = 3.0
    assert aged_network(0).to_vector().shape == (12,)


def test_a_file_is_the_network_again(tmp_path: Path) -> None:
    network = replace(drawn(1), rules={**LEARNED, "threshold": 288_000}, trained={"seed": 1})
    write_network(tmp_path / "net.json", network)
    again = read_network(tmp_path / "net.json")
    assert again == network
    assert again.trained == {"seed": 1}
    assert hash(again) == hash(network)
    assert json.loads((tmp_path / "net.json").read_text())["inputs"] == [
        text for text, *_ in INPUTS
    ]
    assert pickle.loads(pickle.dumps(network)) == network


def test_it_is_a_scheduler_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    write_network(path, replace(drawn(1), rules={**LEARNED, "threshold": 288_000}))
    name = f"network:{path}"
    whole = find_scheduler(name)
    assert (whole.policy, whole.threshold, whole.policy_estimate) == (
        name,
        288_000,
        "typical-ratio",
    )
    in_memory = network_scheduler(read_network(path))
    for scheduler in (whole, in_memory, pickle.loads(pickle.dumps(in_memory))):
        starts = hpcgym.simulate(JOBS, scheduler).start.tolist()
        assert starts == hpcgym.simulate(JOBS, name).start.tolist()
    assert whole == find_scheduler(name) != in_memory
    assert in_memory == in_memory.but()
    assert find_baseline(name).rules["policy_estimate"] == "typical-ratio"  # type: ignore[union-attr]
    write_scheduler(tmp_path / "rules.toml", whole)
    assert read_scheduler(tmp_path / "rules.toml") == whole
    for begin in (name, str(tmp_path / "rules.toml")):  # rules may follow both
        assert find_scheduler(f"{begin}:threshold=5h,hold=0.1") == whole.but(
            threshold=18_000, hold="0.1"
        )
    assert find_baseline(f"{name}:threshold=5").rules["threshold"] == 5  # type: ignore[union-attr]
    variant = find_scheduler(f"saf-typical:backfill_order={name}")
    assert variant.backfill_order == name


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    starts = []
    for seed in (1, 2):
        write_network(path, drawn(seed))
        starts.append(hpcgym.simulate(JOBS, f"network:{path}").start.tolist())
    assert starts[0] != starts[1]


def test_one_without_a_file_is_named_by_its_size() -> None:
    scheduler = Scheduler(policy=small())
    assert scheduler.describe()["policy"] == "network of 2 inputs and 2 units"
    assert "policy=<network of 2 inputs and 2 units>" in repr(scheduler)
    assert "network of 2 inputs" in str(hpcgym.simulate(JOBS, scheduler))
    assert "network of 2 inputs" in describe(scheduler)


def test_they_order_backfilling_under_many_weights() -> None:
    weights, few = [[-1.0, 0.0], [-1.0, 20.0]], JOBS.take(slice(300))
    for seed in range(3):
        rules = {"backfill_order": drawn(seed), **LEARNED}
        batch = BatchSimulator([few], ["area", "wait"], Scheduler("spf", **rules))
        for row, (area, wait) in zip(batch.run(weights), weights, strict=True):
            policy = {"area": area, "wait": wait} if wait else {"area": area}
            result = hpcgym.simulate(few, "easy", policy=policy, **rules)
            slow = hpcgym.simulate(few, "easy", policy=policy, engine="reference", **rules)
            assert result.start.tolist() == slow.start.tolist()
            assert row[0] == pytest.approx(result.metrics["mean_bsld"])


def file(folder: Path, **changes: Any) -> str:
    """A policy by the file of a small network with other contents; None: without these."""
    write_network(path := folder / "net.json", small())
    contents = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: each for name, each in contents.items() if each is not None}))
    return f"network:{path}"


test_what_is_no_network = mistakes_of(globals())
