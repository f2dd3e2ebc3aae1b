"""Experiments: what a file means, and what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sweep_rules
from mistakes import mistakes_of

from hpcgym import Scheduler, generate_speedups, load_workload, simulate
from hpcgym.baselines.dispatchers import DISPATCHERS
from hpcgym.baselines.schedulers import COSCHEDULERS, SCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.machine import Failures
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.limits import PowerCap
from hpcgym.study import load_experiment, read_table, resume, run_experiment
from hpcgym.study.sweep.run import Tasks, make_manifest, read_manifest
from hpcgym.study.sweep.simulations import Source
from hpcgym.workload import assign_codes, write_swf

JOBS = "lublin:jobs=50,processors=16"
ENOUGH = f'schedulers = ["easy"]\n[[workloads]]\nworkload = "{JOBS}"\n'


def under(schedulers: str, text: str = ENOUGH) -> str:
    """An experiment with these schedulers."""
    return text.replace('"easy"', schedulers)


def rule(rules: str, text: str = ENOUGH) -> str:
    """An experiment with a scheduler that has these rules."""
    return under(f"{{ name = 'a', {rules} }}", text)


def on(workload: str) -> str:
    """An experiment with this workload."""
    return ENOUGH.replace(JOBS, workload)


# --- The file -------------------------------------------------------------------------------------


def test_a_file_has_workloads_schedulers_seeds_and_metrics(experiment: Path) -> None:
    read = load_experiment(experiment)
    assert [source.name for source in read.workloads] == ["generated", "data/small.swf.gz"]
    assert read.workloads[1] == Source("data/small.swf.gz", clean="legrand", slices="weeks", last=2)
    saf = Scheduler(policy="saf", backfill_order="spf", threshold=72_000)
    assert read.schedulers == {"easy": Scheduler(), "saf-20h": saf}
    assert read.seeds == (3, 4)


def test_tasks_are_all_combinations_of_a_workload_at_a_time(experiment: Path) -> None:
    manifest = make_manifest(load_experiment(experiment))
    rows = [
        (task["workload"], task["slice"], task["seed"], task["scheduler"])
        for task in Tasks(manifest)
    ]
    both = ("easy", "saf-20h")
    assert rows == [
        *(("generated", "whole", seed, name) for seed in (3, 4) for name in both),
        *(("data/small.swf.gz", f"week {n}", None, name) for n in (1, 2) for name in both),
    ]
    assert manifest["tasks"] == len(rows)


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


def test_files_are_beside_the_experiment_and_the_manifest_has_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "here").mkdir()
    (folder / "qos.txt").write_text("Name|MaxJobsPU\nnormal|\nday|2\n")
    outages = Failures(np.array([0, 1]), np.array([5, 5]), np.array([15, 15]))
    outages.write(folder / "outages.csv")
    path = folder / "files.toml"
    path.write_text(
        "[[schedulers]]\nname = 'a'\nquota = 'qos.txt'\n"
        "[[schedulers]]\nname = 'b'\nmaintenance = 'outages.csv'\n"
        f"[[workloads]]\nworkload = '{JOBS}'\ncluster = '4x2x4'\n"
    )
    monkeypatch.chdir(tmp_path)  # not where the experiment is
    with pytest.warns():  # no job of the generator is in that queue
        run_experiment("here/files.toml", "sweep", "serial")
    rules = read_manifest(tmp_path / "sweep")["schedulers"]
    assert rules["a"]["quota"] == "queue=day/user:jobs=2"
    assert rules["b"]["maintenance"] == "5/15:nodes=0-1"
    (folder / "qos.txt").unlink()  # its text is kept
    assert resume(tmp_path / "sweep", "serial").done == 2
    # a file of that name where the program runs is not meant
    (tmp_path / "machine.toml").write_text("processors = 16\n")
    path.write_text(f"{ENOUGH}cluster = 'machine.toml'\n")
    with pytest.raises(HpcgymError, match=r"machine\.toml: there is no such file in the exper"):
        load_experiment("here/files.toml")


# --- Mistakes -------------------------------------------------------------------------------------

#: An experiment on nodes, which jobs may share.
NODES = (
    'schedulers = ["easy"]\n[[workloads]]\n'
    'workload = "codes:speedups=generated:codes=4,processes=8,jobs=9"\ncluster = "4x2x2"\n'
)
SHARED = f'speedups = "generated"\n{NODES}'
#: An experiment under limits.
CAP = 'cap = "watts=9000"'
LIMITED = f'{ENOUGH}cluster = "taurus"\n[[limits]]\nname = "a"\n{CAP}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # keys, lists and their entries
        ("", "workloads is missing: [[workloads]]"),
        (f'[[workloads]]\nworkload = "{JOBS}"', "schedulers is missing: schedulers = [...]"),
        ("workloads = 3", "workloads must be a list, each entry a table, not 3"),
        ("workloads = []", "workloads must be a list"),
        ("schedulers = [", "is not TOML"),
        (f"schedular = []\n{ENOUGH}", "unknown key 'schedular'; did you mean 'schedulers'"),
        (f"{ENOUGH}slice = 'weeks'", "unknown key of workloads[0] 'slice'; did you mean 'slices'"),
        (f"{ENOUGH}[[workloads]]\nname = 'x'", "workloads[1].workload is missing"),
        (f"{ENOUGH}[[workloads]]\nworkload = '{JOBS}'", f"workloads: '{JOBS}' is there twice"),
        (f"seeds = ['a']\n{ENOUGH}", "seeds[0] must be a whole number, not 'a'"),
        (f"seeds = [true]\n{ENOUGH}", "seeds[0] must be a whole number, not True"),
        (f"seeds = [1, 1]\n{ENOUGH}", "seeds: 1 is there twice"),
        (f"seeds = [1]\n{ENOUGH}", "seeds are given, but no workload has {seed}"),
        (on("lublin:seed={seed}"), "workloads[0].workload has {seed}"),
        (f"shuffles = 0\n{ENOUGH}", "shuffles must be how many, from 1 to 100,000, or a list of"),
        (f"shuffles = [1, -1]\n{ENOUGH}", "or a list of seeds of at least 0, not [1, -1]"),
        (f"shuffles = [1, 1]\n{ENOUGH}", "shuffles: 1 is there twice"),
        (f"shuffles = true\n{ENOUGH}", "shuffles must be how many"),
        # metrics
        (f"metrics = ['mean_bslt']\n{ENOUGH}", "unknown metrics[0] 'mean_bslt'; did you mean"),
        (f"metrics = ['budget_exceeded_j']\n{LIMITED}", "unknown metrics[0] 'budget_exceeded_j'"),
        (f"metrics = ['mean_dispatch_s']\n{ENOUGH}", "unknown metrics[0] 'mean_dispatch_s'"),
        (f"by = ['clas']\n{ENOUGH}", "unknown by 'clas'; did you mean 'class'?"),
        (f"by = ['user', 'user']\n{ENOUGH}", "by: 'user' is there twice"),
        (f"by = 'class'\nmetrics = ['utilization']\n{ENOUGH}", "utilization is not one of groups"),
        # workloads
        (on("nowhere.swf"), "workloads[0]: nowhere.swf: no such file"),
        (on("KTH-SP3"), "workloads[0]: 'KTH-SP3' is no file, trace or generator"),
        (f"{ENOUGH}clean = 'legrant'", "workloads[0]: unknown cleaning recipe 'legrant'"),
        (f"{ENOUGH}processors = 0", "workloads[0]: processors must be at least 1"),
        (f"{ENOUGH}processors = 1.5", "workloads[0].processors must be a whole number, not 1.5"),
        (f"{ENOUGH}name = 3", "workloads[0].name must be a text, not 3"),
        (f"{ENOUGH}slices = 'days'", "workloads[0]: unknown slices 'days'; known are whole, weeks"),
        (f"{ENOUGH}slices = 'weeks'", "lublin-16 seed 0: no job begins and ends within"),
        (f"{ENOUGH}first = 3", "workloads[0]: first and last need slices"),
        (f"{ENOUGH}slices = 'weeks'\nfirst = 3\nlast = 2", "workloads[0]: last is 2, before first"),
        (
            on("lublin:jobs=3000,processors=32,load=0.5") + "slices = 'weeks'\nfirst = 70",
            "load=0.5 has weeks 1 to 2, none from first to last",
        ),
        (f"{NODES}processors = 8", "workloads[0]: either cluster or processors, not both"),
        (NODES.replace("4x2x2", "no.toml"), "workloads[0].cluster: no.toml: no such file"),
        (NODES.replace("4x2x2", "kurie"), "workloads[0].cluster: unknown machine 'kurie'"),
        # schedulers
        (under('"esy"'), "schedulers[0]: unknown scheduler 'esy'; did you mean 'easy'"),
        (under("3"), "schedulers[0] must be a text or a table, not 3"),
        (under('"easy", "easy"'), "schedulers: 'easy' is there twice"),
        (under('{ policy = "saf" }'), "schedulers[0]: name must say"),
        (under('{ name = "saf" }'), "schedulers[0]: name: 'saf' stands for a scheduler; choose"),
        (rule('polcy = "saf"'), "key of schedulers[0] 'polcy'; did you mean"),
        (rule('policy = "sfa"'), "schedulers[0]: unknown policy 'sfa'"),
        (rule("estimate = [9]"), "schedulers[0].estimate: must be a name"),
        (rule("quota = 'user'"), "schedulers[0]: quota 'user' is neither a file nor a quota"),
        (rule("fair_share = 'damping=2'"), "schedulers[0]: fair_share"),
        (rule("quota = 'user:jobs=1', dispatcher = 'prb'"), "schedulers[0]: quota does not go wit"),
        (rule("dispatcher = 'rules:thing'"), "[0].dispatcher: rules:thing must be a function or"),
        (rule("dispatcher = 'rules:Trns'"), "[0].dispatcher: rules:Trns: there is no 'Trns' in it"),
        (rule("policy = 'rules_gone:score'"), "[0].policy: rules_gone:score: there is no module"),
        # nodes that jobs share
        (
            under('"easy-co"'),
            "schedulers[0] on workloads[0]: allocation 'half-socket' is for co-sched",
        ),
        (f"{NODES}codes = 1", "workloads[0].codes needs speedups, which have the codes"),
        (f"{SHARED}codes = -1", "workloads[0]: codes must be at least 0, not -1"),
        (SHARED.replace('"generated"', "3", 1), "speedups must be a list, each entry a text, not"),
        (SHARED.replace('"generated"', '"no.csv"', 1), "speedups[0]: no.csv: no such file"),
        (
            SHARED.replace("generated", "generated:codes=2", 1),
            "workloads[0]: codes random x 9 seed",
        ),
        (under("'easy++'", SHARED), "schedulers[0] with speedups[0] on workloads[0]: estimate="),
        (SHARED.replace('cluster = "4x2x2"', ""), "on workloads[0]: speedups are of jobs on nodes"),
        (under("'easy-co'", SHARED.replace("4x2x2", "8x2x1")), "allocation 'half-socket': sockets"),
        (rule("pair_estimate = 'no.csv'", SHARED), "[0].pair_estimate: no.csv: no such file"),
        (
            rule("pair_estimate = 'generated:codes=2'", SHARED),
            "schedulers[0] with speedups[0] on workloads[0]: pair_estimate knows no code 'code-3'",
        ),
        (
            SHARED + '[[workloads]]\nworkload = "lublin:jobs=9,processors=4"\ncluster = "4x2x2"',
            "workloads[1]: lublin-4 seed 0: job 1 has no code: no line 'Code' of the header"
            " names its executable, -1; so it is with 9 of 9 jobs; codes = SEED gives all jobs",
        ),
        (SHARED.replace("=generated:codes=4", "=no.json"), "workloads[0]: no.json: no such file"),
        # limits
        (LIMITED.replace(CAP, "caps = 'watts=1'"), "unknown key of limits[0] 'caps'; did you mean"),
        (LIMITED.replace('name = "a"\n', ""), "limits[0].name is missing"),
        (LIMITED.replace('"a"', '""'), "limits[0]: name must say what it is called in tables"),
        (
            LIMITED.replace(CAP, "cap = 3"),
            "limits[0].cap must be a text, or a list of texts, not 3",
        ),
        (
            LIMITED.replace(CAP, "cap = 'wats=1'"),
            "[0] on workloads[0]: cap: unknown key 'wats'; did you mean 'watts'?",
        ),
        (
            LIMITED.replace(CAP, "budget=['joules=1,start=0,end=9', 'joules=1,start=8,end=10']"),
            "schedulers[0] under limits[0] on workloads[0]: limits: two budgets hold at 8 s",
        ),
        (f"{LIMITED}[[limits]]\nname = 'a'", "limits: 'a' is there twice"),
        (
            f"speedups = 'generated'\n{LIMITED}",
            "of jobs that share nodes do not go together",
        ),
        (
            LIMITED.replace('cluster = "taurus"', ""),
            "on workloads[0]: limits, and allocation='",
        ),
        (LIMITED.replace("taurus", "4x2x2"), "on workloads[0]: limits need the power of nodes"),
        (rule("passes = 'per-event'", LIMITED), "passes='per-event' and limits of power"),
        (
            rule("power = 'shut'", LIMITED).replace("watts=9000", "watts=1"),
            "schedulers[0] under limits[0] on workloads[0]: a cap of 1 W: with all nodes off",
        ),
        (rule("power = 'mix'"), "schedulers[0] on workloads[0]: power='mix' needs limits"),
    ],
)
def test_a_mistake_is_one_line_before_anything_runs(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "rules.py").write_text("thing = 3\n\n\ndef score(view):\n    return 0\n")
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    try:
        with pytest.raises(HpcgymError) as caught:
            run_experiment(path, tmp_path / "sweep", "serial")
    finally:
        sys.modules.pop("rules", None)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize("machine", ["4x2x4", "shared", "taurus", None])
@pytest.mark.filterwarnings("ignore")
def test_what_is_refused_with_jobs_is_refused_without(machine: str | None) -> None:
    """So that experiments can be checked by simulating no jobs."""
    jobs, how = load_workload("lublin:jobs=12,processors=16,seed=1"), {"cluster": machine}
    if machine == "shared":
        how = {"cluster": "4x2x2", "speedups": (pairs := generate_speedups(4))}
        jobs = assign_codes(jobs, pairs.codes, seed=1)
    if machine == "taurus":
        how["limits"] = [PowerCap(9000)]
    nobody = jobs.take(slice(0, 0))
    estimates = [
        {key: estimate} for estimate in ESTIMATES for key in ("estimate", "policy_estimate")
    ]
    allocations = [
        {"allocation": allocation} for allocation in ("worst-fit", "contiguous", "part:2")
    ]
    powers = [{"power": power} for power in ("shut", "dvfs", "mix", "energy-bud")]
    given = [{"scheduler": scheduler} for scheduler in (*SCHEDULERS, *COSCHEDULERS, *DISPATCHERS)]
    others: list[dict[str, Any]] = [{"passes": "per-event"}, {"maintenance": "10/20:nodes=0"}]
    refused = []
    for rules in (*given, *estimates, *allocations, *powers, *others):
        messages = []
        for some in (jobs, nobody):
            try:
                simulate(some, **how, **rules)
            except HpcgymError as error:
                messages.append(str(error))
        assert len(messages) in (0, 2), (rules, messages)
        refused.append(len(messages) == 2)
    assert 0 < sum(refused) < len(refused)


def test_a_log_without_users_cannot_be_by_user(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "submit_time,run_time,requested_processors,requested_time\n0,10,1,20\n5,10,2,20\n"
    )
    path = tmp_path / "users.toml"
    path.write_text(f'by = "user"\n{on("log.csv")}processors = 4\n')
    with pytest.raises(HpcgymError, match=r"log\.csv: the log does not tell the user of any job"):
        run_experiment(path, tmp_path / "sweep", "serial")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """An experiment with rules of its own, in a module that is forgotten at the end."""
    text = Path(sweep_rules.__file__).read_text()
    for folder in (tmp_path, tmp_path / "other"):
        folder.mkdir(exist_ok=True)
        (folder / "forgotten.py").write_text(text)
        (folder / "own.toml").write_text(rule("dispatcher = 'forgotten:Turns'"))
    yield tmp_path / "own.toml"
    sys.modules.pop("forgotten", None)


def test_a_module_is_the_one_beside_the_experiment_and_as_it_was(own: Path) -> None:
    folder = own.parent / "sweep"
    run_experiment(own, folder, "serial")
    with pytest.raises(HpcgymError, match="was imported before"):
        load_experiment(own.parent / "other" / "own.toml")
    with (own.parent / "forgotten.py").open("a") as file:
        file.write("\n# changed")
    with pytest.raises(HpcgymError, match=r"forgotten\.py has changed"):
        resume(folder, "serial")


test_mistakes = mistakes_of(globals())
