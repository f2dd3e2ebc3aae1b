"""Resources of nodes in metrics, in groups of jobs, and in who pays; all by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hpcgym
from hpcgym import Workload, simulate
from hpcgym.explore.page import of_workload
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.report.tables import comparison
from hpcgym.schedule.gains import who_pays
from hpcgym.schedule.groups import metrics_by
from hpcgym.schedule.metrics import Facts, as_shown, metric_called
from hpcgym.study import evaluate, read_table, run_experiment

#: 2 nodes of 8 cores, 2 GPUs and as many shares of a network as anybody wants.
MACHINE = Cluster(groups=(NodeGroup("n", 2, {"core": 8, "gpu": 2, "mem": 64, "net": ANY_NUMBER}),))
#: Two jobs at once: 2 GPUs for 100 s on one node, processors alone for 50 s on the other; then one
#: of 1 GPU on each node from second 100 on, for which the first job has to end.
JOBS = Workload.from_columns(
    {
        "submit_time": [0, 0, 10],
        "run_time": [100, 50, 100],
        "requested_time": [100, 50, 100],
        "requested_processors": [2, 4, 4],
        "user_id": [1, 2, 2],
    },
    processors=16,
    units=[1, 1, 2],
    per_unit={"core": [2, 4, 2], "gpu": [2, 0, 2], "mem": [32, 0, 8], "net": [1, 1, 1]},
)


def test_utilization_is_of_each_resource() -> None:
    result = simulate(JOBS, "easy", cluster=MACHINE)
    assert result.start.tolist() == [0, 0, 100]
    metrics = result.metrics
    # 2 GPUs for 100 s and 4 for 100 s, of 4 for 200 s
    assert metrics["utilization_gpu"] == 600 / 800
    # 32 MB for 100 s and 2 x 8 MB for 100 s, of 128 MB for 200 s
    assert metrics["utilization_mem"] == 4800 / 25600
    assert metrics["utilization"] == (200 + 200 + 400) / (16 * 200)
    assert "utilization_net" not in metrics  # there is no end of it
    names = [*metrics]
    assert names.index("utilization_gpu") == names.index("utilization") + 1


def test_tables_show_scarce_resources_but_memory() -> None:
    result = simulate(JOBS, "easy", cluster=MACHINE)
    heading = [text for text, _ in comparison(result)[0]]
    assert heading[-2:] == ["utilization (%)", "gpu utilization (%)"]
    table = hpcgym.compare(JOBS, ["easy", "saf"], cluster=MACHINE).table
    assert table.loc["easy", "utilization_gpu"] == 600 / 800


def test_names_of_metrics_are_known_and_ordered() -> None:
    names = ["carbon_g", "utilization_gpu", "makespan_s", "mine", "utilization"]
    shown = ["utilization_gpu", "utilization", "makespan_s", "carbon_g", "mine"]
    assert as_shown(names) == shown
    gpu = metric_called("utilization_gpu-a100")
    assert gpu is not None
    assert gpu.heading == "gpu-a100 utilization (%)"
    assert metric_called("mine") is metric_called("utilization_") is None
    fpga = metric_called("utilization_fpga")
    assert fpga is not None
    assert fpga.formula is not None
    assert np.isnan(fpga.formula(Facts(simulate("lublin:jobs=9,processors=8"))))


def test_groups_of_jobs_by_what_they_ask_for() -> None:
    gpus = JOBS.take([0, 1, 2])
    result = simulate(gpus, "easy", cluster=MACHINE)
    groups = metrics_by(result, "resource", ["mean_wait_s"])
    # a share of the network is a resource like any other
    assert groups == {
        "net": {"jobs": 1, "mean_wait_s": 0.0},
        "gpu + net": {"jobs": 2, "mean_wait_s": 45.0},
    }


def test_jobs_of_processors_alone_are_a_group() -> None:
    workload = Workload.from_columns(
        {
            "submit_time": [0, 0],
            "run_time": [9, 9],
            "requested_time": [9, 9],
            "requested_processors": [1, 1],
        },
        processors=16,
        units=[1, 1],
        per_unit={"core": [1, 1], "gpu": [0, 1]},
    )
    result = simulate(workload, "easy", cluster=MACHINE)
    assert metrics_by(result, "resource", ["jobs"]) == {
        "processors": {"jobs": 1},
        "gpu": {"jobs": 1},
    }
    pool = simulate("lublin:jobs=20,processors=8")
    assert metrics_by(pool, "resource", ["jobs"]) == {"processors": {"jobs": 20}}


def test_resources_pay_where_jobs_ask_for_several() -> None:
    easy, saf = (simulate(JOBS, name, cluster=MACHINE) for name in ("easy", "saf"))
    classes = who_pays({"easy": easy, "saf": saf})["saf"].classes
    assert classes["gpu + net"].jobs == 2
    assert classes["net"].mean_bsld == pytest.approx(1.0)
    pools = [simulate("lublin:jobs=20,processors=8", name) for name in ("easy", "saf")]
    assert "processors" not in who_pays(dict(zip("ab", pools, strict=True)))["b"].classes


def test_a_resource_that_is_called_as_a_class_pays_by_itself() -> None:
    units = {"units": [1, 1, 2], "per_unit": {"core": [2, 4, 2], "small": [2, 0, 2]}}
    machine = Cluster(groups=(NodeGroup("n", 2, {"core": 8, "small": 2}),))
    jobs = JOBS.take([0, 1, 2]).with_columns()
    jobs = replace(
        jobs,
        units=np.array(units["units"]),
        per_unit={name: np.array(amounts) for name, amounts in units["per_unit"].items()},
    )
    easy, saf = (simulate(jobs, name, cluster=machine) for name in ("easy", "saf"))
    classes = who_pays({"easy": easy, "saf": saf})["saf"].classes
    assert (classes["small"].jobs, classes["resource small"].jobs) == (1, 2)


def test_metrics_of_resources_are_kept_and_rank(tmp_path: Path) -> None:
    """In sweeps, and on leaderboards."""
    text = 'schedulers = ["easy"]\nmetrics = ["mean_bsld", "utilization_gpu"]\n[[workloads]]\n'
    (tmp_path / "a.toml").write_text(f'{text}workload = "eurora:jobs=60"\ncluster = "eurora"\n')
    run_experiment(tmp_path / "a.toml", tmp_path / "sweep", "serial")
    assert 0 <= read_table(tmp_path / "sweep")["utilization_gpu"].item() < 1
    given = {"cluster": "eurora", "jobs": 50, "n": 2, "budget": 2, "resamples": 9}
    board = evaluate("spf", "eurora:jobs=400", metric="utilization_gpu", **given)
    assert board.ranked_by.heading == "gpu utilization (%)"
    assert 0 <= board.table["utilization_gpu"].max() <= 1


def test_pages_tell_jobs_apart_by_resources() -> None:
    head, columns = of_workload(JOBS)
    names = head["kinds"]["resource"]
    assert [names[place] for place in columns["resource"]] == ["gpu + net", "net", "gpu + net"]
    assert "resource" not in of_workload(hpcgym.load_workload("lublin:jobs=20,processors=8"))[1]
