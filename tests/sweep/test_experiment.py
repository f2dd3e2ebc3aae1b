"""Experiments: what a file means, what is wrong with it, and what a sweep in a folder remembers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mistakes import assert_told

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.errors import HpcgymError
from hpcgym.sweep import (
    load_experiment,
    read_failures,
    read_table,
    resume,
    run_experiment,
    run_tasks,
    status,
)
from hpcgym.sweep.experiment import Experiment
from hpcgym.sweep.manifest import Manifest, Tasks, as_text, make_manifest
from hpcgym.sweep.run import origin_of, read_manifest, warnings_of
from hpcgym.sweep.simulations import load_slices, simulate_task
from hpcgym.sweep.source import Source
from hpcgym.workload import write_swf

JOBS = "lublin:jobs=50,processors=16"
ENOUGH = f'schedulers = ["easy"]\n[[workloads]]\nworkload = "{JOBS}"\n'


def under(schedulers: str) -> str:
    """An experiment with these schedulers."""
    return ENOUGH.replace('"easy"', schedulers)


def on(workload: str) -> str:
    """An experiment with this workload."""
    return ENOUGH.replace(JOBS, workload)


# --- The file -------------------------------------------------------------------------------------


def test_a_file_has_workloads_schedulers_seeds_and_metrics(experiment: Path) -> None:
    found = load_experiment(experiment)
    assert [source.name for source in found.workloads] == ["generated", "data/small.swf.gz"]
    assert found.workloads[1] == Source(
        "data/small.swf.gz", "data/small.swf.gz", clean="legrand", slices="weeks", last=2
    )
    saf = Scheduler(policy="saf", backfill_order="spf", threshold=72_000)
    assert found.schedulers == {"easy": Scheduler(), "saf-20h": saf}
    assert found.seeds == (3, 4)
    assert found.folder == experiment.parent


def test_schedulers_may_be_tables_and_policies_weights(tmp_path: Path) -> None:
    path = tmp_path / "weights.toml"
    path.write_text(
        f"""
        [[workloads]]
        workload = "{JOBS}"
        [[schedulers]]
        name = "six"
        policy = [0.1, -0.2, 0, 0, 0, 0.7]
        [[schedulers]]
        name = "two"
        scheduler = "saf"
        policy = {{ area = -1, wait = 20 }}
        """
    )
    run_experiment(path, tmp_path / "sweep", "serial")
    table = read_table(tmp_path / "sweep").set_index("scheduler")
    rules: dict[str, Any] = {
        "six": {"policy": (0.1, -0.2, 0, 0, 0, 0.7)},
        "two": {"policy": {"area": -1, "wait": 20}, "backfill_order": "spf"},
    }
    for name, own in rules.items():
        expected = simulate(load_workload(JOBS), **own).metrics
        assert table.loc[name, "mean_bsld"] == expected["mean_bsld"]


def test_a_sweep_of_jobs_that_are_held_back(tmp_path: Path) -> None:
    """By name, by a variant, by a number and by a table, whose infinity JSON does not know."""
    path = tmp_path / "hold.toml"
    path.write_text(
        f"""
        schedulers = [
          "saf-typical-20h-hold", "saf:hold=0.3,from_s=60", {{ name = "number", hold = 0.3 }},
          {{ name = "table", hold = {{ share = 0.3, erode_s = inf, by = "both" }} }},
        ]
        [[workloads]]
        workload = "{JOBS}"
        """
    )
    run_experiment(path, tmp_path / "sweep", "serial")
    table = read_table(tmp_path / "sweep").set_index("scheduler")
    jobs, endless = load_workload(JOBS), {"share": 0.3, "erode_s": float("inf"), "by": "both"}
    expected = {
        "saf-typical-20h-hold": simulate(jobs, "saf-typical-20h-hold"),
        "saf:hold=0.3,from_s=60": simulate(jobs, "saf", hold={"share": 0.3, "from_s": 60}),
        "number": simulate(jobs, "easy", hold=0.3),
        "table": simulate(jobs, "easy", hold=endless),
    }
    for name, result in expected.items():
        assert table.loc[name, "mean_bsld"] == result.metrics["mean_bsld"], name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "workloads is missing: [[workloads]]"),
        (f'[[workloads]]\nworkload = "{JOBS}"', "schedulers is missing: schedulers = [...]"),
        ("workloads = 3", "workloads must be a list, each entry a table, not 3"),
        ("workloads = []", "workloads must be a list"),
        ("workloads = [3]", "workloads[0] must be a table, not 3"),
        ("schedulers = [", "is not TOML"),
        (f"schedular = []\n{ENOUGH}", "unknown key 'schedular'; did you mean 'schedulers'"),
        (under('"esy"'), "schedulers[0]: unknown scheduler 'esy'; did you mean 'easy'"),
        (
            under('"prb"'),
            "schedulers[0]: 'prb' is a dispatcher, not a scheduler: name it by the rule",
        ),
        (under("3"), "schedulers[0] must be a name or a table, not 3"),
        (under('"easy", "easy"'), "schedulers: 'easy' is there twice"),
        (under('{ policy = "saf" }'), "schedulers[0].name must say"),
        (under('{ name = "saf" }'), "schedulers[0].name: 'saf' stands for a scheduler"),
        (under('{ name = "a", scheduler = "sfa" }'), "schedulers[0].scheduler: unknown"),
        (under('{ name = "a", polcy = "saf" }'), "key of schedulers[0] 'polcy'; did you mean"),
        (under('{ name = "a", policy = "sfa" }'), "schedulers[0]: unknown policy 'sfa'"),
        (under('{ name = "a", policy = [1] }'), "schedulers[0]: policy"),
        (under('{ name = "a", threshold = -1 }'), "schedulers[0]: threshold must be"),
        (under('{ name = "a", estimate = [9] }'), "schedulers[0].estimate must be a name"),
        (under('{ name = "a", policy_estimate = [9] }'), "[0].policy_estimate must be a name"),
        (f"metrics = ['mean_bslt']\n{ENOUGH}", "unknown metrics[0] 'mean_bslt'; did you mean"),
        (f"seeds = [1]\n{ENOUGH}", "seeds are given, but no workload has {seed}"),
        (f"seeds = [1, 1]\n{ENOUGH}", "seeds: 1 is there twice"),
        (f"seeds = ['a']\n{ENOUGH}", "seeds[0] must be a whole number, not 'a'"),
        (f"seeds = [true]\n{ENOUGH}", "seeds[0] must be a whole number, not True"),
        (on("lublin:seed={seed}"), "workloads[0].workload has {seed}"),
        (on("nowhere.swf"), "workloads[0]: nowhere.swf: no such file"),
        (on("KTH-SP3"), "workloads[0]: 'KTH-SP3' is no file, trace or generator"),
        (on("lublin:job=3"), "workloads[0]: generator 'lublin' has no argument 'job'"),
        (f"{ENOUGH}slice = 'weeks'", "unknown key of workloads[0] 'slice'; did you mean 'slices'"),
        (f"{ENOUGH}clean = 'legrant'", "workloads[0].clean: unknown cleaning recipe 'legrant'"),
        (f"{ENOUGH}errors = 'no'", "workloads[0].errors: errors must be"),
        (f"{ENOUGH}processors = 0", "workloads[0].processors must be at least 1"),
        (f"{ENOUGH}processors = 1.5", "workloads[0].processors must be a whole number, not 1.5"),
        (f"{ENOUGH}slices = 'days'", "unknown workloads[0].slices 'days'; known are whole, weeks"),
        (
            f"{ENOUGH}slices = 'weeks'",
            "workloads[0]: lublin-16 seed 0: no job begins and ends within",
        ),
        (f"{ENOUGH}first = 3", "workloads[0].first needs slices"),
        (f"{ENOUGH}slices = 'weeks'\nfirst = 3\nlast = 2", "workloads[0].last is 2, before first"),
        (
            on("lublin:jobs=3000,processors=32,load=0.5") + "slices = 'weeks'\nfirst = 70",
            "load=0.5 has weeks 1 to 2, none from first to last",
        ),
        (f"{ENOUGH}[[workloads]]\nname = 'x'", "workloads[1].workload is missing"),
        (f"{ENOUGH}[[workloads]]\nworkload = '{JOBS}'", f"workloads: '{JOBS}' is there twice"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(text: str, message: str, tmp_path: Path) -> None:
    assert_told(text, message, tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match=r"none\.toml: no such file"):
        load_experiment(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(HpcgymError, match=r"bytes\.toml is not TOML"):
        load_experiment(tmp_path / "bytes.toml")


# --- Tasks and table ------------------------------------------------------------------------------


def test_tasks_are_all_combinations_of_a_workload_at_a_time(experiment: Path) -> None:
    tasks = Tasks(make_manifest(load_experiment(experiment)))
    rows = [(task["workload"], task["slice"], task["seed"], task["scheduler"]) for task in tasks]
    both = ("easy", "saf-20h")
    assert rows == [
        *(("generated", "whole", seed, name) for seed in (3, 4) for name in both),
        *(("data/small.swf.gz", f"week {n}", None, name) for n in (1, 2) for name in both),
    ]
    assert len(tasks) == len(rows)
    assert next(iter(tasks)) in tasks


def test_the_table_has_what_simulate_gives(experiment: Path, reference: Path) -> None:
    table = read_table(reference)
    assert list(table.columns) == [
        "workload", "slice", "seed", "scheduler",
        "jobs", "mean_bsld", "max_wait_s", "mean_bsld_long",
    ]  # fmt: skip
    assert len(table) == 8
    trace = load_workload(experiment.parent / "data" / "small.swf.gz", "legrand")
    parts = {
        ("generated", "whole", seed): load_workload(
            f"lublin:jobs=120,processors=16,load=0.9,seed={seed}"
        )
        for seed in (3, 4)
    }
    for week in trace.weeks()[:2]:
        parts["data/small.swf.gz", f"week {week.name.split()[-1]}", None] = week
    rules: dict[str, Any] = {"policy": "saf", "backfill_order": "spf", "threshold": 72_000}
    for row in table.to_dict("records"):
        seed = row["seed"] if isinstance(row["seed"], int) else None
        part = parts[row["workload"], row["slice"], seed]
        own = rules if row["scheduler"] == "saf-20h" else {}
        metrics = simulate(part, "easy", **own).metrics
        for name in ("jobs", "mean_bsld", "max_wait_s"):
            assert row[name] == metrics[name]


def test_a_file_may_have_its_seed_in_its_name(tmp_path: Path) -> None:
    for seed in (1, 2):
        jobs = load_workload(f"lublin:jobs=30,processors=8,seed={seed}")
        write_swf(jobs, tmp_path / f"jobs-{seed}.swf")
    path = tmp_path / "seeds.toml"
    path.write_text("seeds = [1, 2]\n" + on("jobs-{seed}.swf"))
    run_experiment(path, tmp_path / "sweep", "serial")
    inputs = read_manifest(tmp_path / "sweep")["inputs_sha256"]
    assert sorted(inputs) == ["jobs-1.swf", "jobs-2.swf"]
    assert read_table(tmp_path / "sweep")["seed"].tolist() == [1, 2]
    path.write_text("seeds = [1, 3]\n" + on("jobs-{seed}.swf"))
    with pytest.raises(HpcgymError, match=r"workloads\[0\]: jobs-3\.swf: no such file"):
        run_experiment(path, tmp_path / "other", "serial")


def test_all_metrics_are_kept_without_names(tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    path.write_text(ENOUGH)
    run_experiment(path, tmp_path / "sweep", "serial")
    metrics = simulate(load_workload(JOBS)).metrics
    expected = {name: value for name, value in metrics.items() if not name.startswith("energy_")}
    (row,) = read_table(tmp_path / "sweep").to_dict("records")
    assert {name: row[name] for name in expected if row[name] == row[name]} == {
        name: value for name, value in expected.items() if value == value
    }
    assert not [name for name in row if name.startswith("energy_")]  # nobody gave watts


# --- The sweep in its folder ----------------------------------------------------------------------


def test_dispatchers_that_take_time_have_a_metric_of_their_own(tmp_path: Path) -> None:
    """The others have none of it, in the same table."""
    late = '"easy", { name = "late", dispatcher = "prb", dispatch_time = 7.5 }'
    path = tmp_path / "late.toml"
    path.write_text('metrics = ["mean_dispatch_s", "mean_wait_s"]\n' + under(late))
    run_experiment(path, tmp_path / "sweep", "serial")
    easy, prb = read_table(tmp_path / "sweep").to_dict("records")
    assert easy["mean_dispatch_s"] != easy["mean_dispatch_s"]  # nan
    assert prb["mean_dispatch_s"] == 8
    expected = simulate(load_workload(JOBS), "prb", dispatch_time=8)
    assert prb["mean_wait_s"] == expected.metrics["mean_wait_s"]
    path.write_text('metrics = ["mean_dispatch_s"]\n' + ENOUGH)
    with pytest.raises(HpcgymError, match="unknown metrics"):
        load_experiment(path)


def test_the_manifest_tells_nothing_of_the_host(
    tmp_path: Path, write_experiment: Callable[[Path], Path], reference: Path
) -> None:
    """Another folder, executor and chunk: the same bytes."""
    elsewhere = write_experiment(tmp_path / "there" / "deep")
    run_experiment(elsewhere, tmp_path / "sweep", "processes", workers=1, chunk=3)
    text = (tmp_path / "sweep" / "manifest.json").read_text()
    assert text == (reference / "manifest.json").read_text()
    manifest = json.loads(text)
    assert set(manifest["versions"]) == {"hpcgym", "python", "numpy"}
    assert manifest["seeds"] == [3, 4]
    assert set(manifest["inputs_sha256"]) == {"data/small.swf.gz"}
    assert manifest["tasks"] == 8
    for word in (str(tmp_path), str(Path.home()), "processes"):
        assert word not in text


@pytest.fixture
def sweep(tmp_path: Path, write_experiment: Callable[[Path], Path], reference: Path) -> Path:
    """A sweep of which half is done."""
    path = write_experiment(tmp_path / "here")
    folder = tmp_path / "sweep"
    run_experiment(path, folder, "serial")
    results = folder / "results.jsonl"
    results.write_text("".join(results.read_text().splitlines(keepends=True)[:4]))
    return folder


def test_what_is_left_is_done(sweep: Path, reference: Path) -> None:
    assert status(sweep).state == "interrupted"
    assert (status(sweep).tasks, status(sweep).done) == (8, 4)
    summary = resume(sweep, "serial")
    assert (summary.new, summary.done) == (4, 8)
    assert status(sweep).state == "complete"
    assert read_table(sweep).equals(read_table(reference))
    assert resume(sweep, "serial").new == 0


def test_a_sweep_may_be_moved_with_its_experiment(sweep: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "place"
    shutil.copytree(tmp_path / "here", new / "here")
    shutil.copytree(sweep, new / "sweep")
    shutil.rmtree(tmp_path / "here")
    assert origin_of(new / "sweep") == new / "here"
    assert resume(new / "sweep", "serial").done == 8
    with pytest.raises(HpcgymError, match=r"small\.swf\.gz: no such file"):
        resume(sweep, "serial")


def test_what_has_changed_is_named(sweep: Path, tmp_path: Path) -> None:
    trace = tmp_path / "here" / "data" / "small.swf.gz"
    trace.write_bytes(trace.read_bytes() + b"\0")
    with (sweep / "experiment.toml").open("a") as file:
        file.write("\n# later\n")
    manifest = read_manifest(sweep)
    manifest["versions"] |= {"hpcgym": "0.0.9", "numpy": "1.0"}
    (sweep / "manifest.json").write_text(as_text(manifest))
    with pytest.raises(HpcgymError) as caught:
        resume(sweep, "serial")
    for words in (
        f"{sweep} cannot be resumed",
        "it began with hpcgym 0.0.9",
        "the experiment has changed",
        "the file of data/small.swf.gz has changed",
    ):
        assert words in str(caught.value)
    assert len(warnings_of(sweep)) == 1
    assert warnings_of(sweep)[0].startswith("numpy was 1.0 and is ")


def test_a_file_that_changes_under_way_fails_its_tasks_only(sweep: Path, tmp_path: Path) -> None:
    """Workers read files themselves, perhaps on another machine."""
    (sweep / "results.jsonl").unlink()
    trace = tmp_path / "here" / "data" / "small.swf.gz"
    trace.write_bytes(trace.read_bytes() + b"\0")
    load_slices.cache_clear()
    manifest = read_manifest(sweep)
    digests = manifest["inputs_sha256"]
    function = partial(simulate_task, folder=str(tmp_path / "here"), digests=digests)
    summary = run_tasks(function, Tasks(manifest), sweep, "serial", retries=0)
    assert (summary.done, summary.failed) == (4, 4)
    assert "not the one that the sweep began with" in read_failures(sweep)[0]["error"]
    assert status(sweep).state == "failed"


def test_a_folder_in_use_is_left_alone(sweep: Path, experiment: Path, tmp_path: Path) -> None:
    before = (sweep / "results.jsonl").read_bytes()
    with pytest.raises(HpcgymError, match="has a sweep already: hpcgym sweep resume"):
        run_experiment(experiment, sweep, "serial")
    assert (sweep / "results.jsonl").read_bytes() == before
    with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
        run_experiment(experiment, tmp_path / "here", "serial")
    (tmp_path / "file").touch()
    with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
        run_experiment(experiment, tmp_path / "file", "serial")
    (tmp_path / "empty").mkdir()
    assert run_experiment(experiment, tmp_path / "empty", "serial").done == 8


def test_a_run_that_was_overtaken_leaves_the_other_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making a manifest takes long: reading traces, or fetching them."""
    folder = tmp_path / "sweep"
    for name, jobs in (("slow", 60), ("quick", 50)):
        (tmp_path / f"{name}.toml").write_text(on(f"lublin:jobs={jobs},processors=16"))

    def overtaken(experiment: Experiment) -> Manifest:
        if experiment.path.stem == "slow":
            run_experiment(tmp_path / "quick.toml", folder, "serial")
        return make_manifest(experiment)

    monkeypatch.setattr("hpcgym.sweep.run.make_manifest", overtaken)
    with pytest.raises(HpcgymError, match="has a sweep already: hpcgym sweep resume"):
        run_experiment(tmp_path / "slow.toml", folder, "serial")
    assert read_table(folder)["jobs"].tolist() == [50]
    assert status(folder).state == "complete"
    assert (folder / "experiment.toml").read_text() == (tmp_path / "quick.toml").read_text()


def test_a_folder_is_locked_from_the_manifest_to_the_end(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(folder: Path) -> Path:  # between the manifest and the tasks
        assert status(folder).state == "running"
        return origin_of(folder)

    monkeypatch.setattr("hpcgym.sweep.run.origin_of", found)
    run_experiment(experiment, tmp_path / "sweep", "serial")
    resume(tmp_path / "sweep", "serial")
    assert status(tmp_path / "sweep").state == "complete"


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_a_folder_that_is_no_sweep_is_named(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    for function in (status, read_table, lambda folder: resume(folder, "serial")):
        with pytest.raises(HpcgymError, match="manifest"):
            function(tmp_path)


@pytest.mark.parametrize("left", [(), ("experiment.toml",), ("manifest.json.4711.part",)])
def test_a_sweep_that_never_began_is_not_resumed_but_run(
    left: tuple[str, ...], tmp_path: Path
) -> None:
    for name in ("lock", *left):
        (tmp_path / name).touch()
    for function in (status, read_table, lambda folder: resume(folder, "serial")):
        with pytest.raises(HpcgymError, match=f"hpcgym sweep run .* --output {tmp_path}"):
            function(tmp_path)
    (tmp_path / "thesis.tex").touch()  # no folder that run would take
    with pytest.raises(HpcgymError, match="is no sweep"):
        status(tmp_path)


def test_what_a_kill_left_of_a_sweep_that_had_not_begun_is_in_nobodys_way(
    experiment: Path, tmp_path: Path
) -> None:
    for name in ("lock", "experiment.toml", "manifest.json.4711.part"):
        (tmp_path / name).touch()
    assert run_experiment(experiment, tmp_path, "serial").failed == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex.4711.part").touch()
    with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
        run_experiment(experiment, other, "serial")
