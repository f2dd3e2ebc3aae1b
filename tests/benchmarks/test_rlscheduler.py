"""RLScheduler's published table: met by its rules, and by JobSelection where these are the same."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from drawing import given
from strategies import workloads

from hpcgym import Workload
from hpcgym.baselines import find_baseline
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "rlscheduler.py"
FILES = {"Lublin-1": "lublin_256.swf.gz", "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz"}


def script() -> Any:
    """The benchmark, which is a script."""
    if "rlscheduler" not in sys.modules:
        spec = importlib.util.spec_from_file_location("rlscheduler", SCRIPT)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules["rlscheduler"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["rlscheduler"]


def as_jobs(jobs: Workload) -> list[Any]:
    columns = (
        jobs.submit_time, np.arange(len(jobs)), jobs.run_time, jobs.requested_processors,
        jobs.requested_time,
    )  # fmt: skip
    return [script().Job(*map(int, row)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("log", FILES)
def test_their_rules_meet_what_is_published(log: str, trace: Callable[[str], Path]) -> None:
    """All digits of what does not learn: ten sequences, five policies, two ways to backfill."""
    module = script()
    first = module.LOGS[log][1]
    jobs = module.loaded(str(trace(FILES[log])), first)
    listed = as_jobs(jobs)
    for backfill in (False, True):
        for policy, published in zip(
            module.POLICIES, module.PUBLISHED[log, backfill], strict=False
        ):
            means = [
                module.by_their_rules(
                    listed[b : b + module.LENGTH], jobs.processors, module.SCORES[policy], backfill
                )
                for b in module.first_rows(len(jobs))
            ]
            assert round(float(np.mean(means)), 2) == published, (policy, backfill)


def test_job_selection_is_their_setting(trace: Callable[[str], Path]) -> None:
    """Without backfilling, of policies that are the same formula there and here."""
    module = script()
    jobs = module.loaded(str(trace(FILES["Lublin-1"])))
    rows = module.first_rows(len(jobs))
    for place, policy in enumerate(module.POLICIES):
        if policy in ("fcfs", "sjf", "f1"):
            found = module.in_environment(jobs, find_baseline(policy), rows, backfill=False)
            assert round(found, 2) == module.PUBLISHED["Lublin-1", False][place]


@given(workloads())
def test_their_rules_are_a_queue_that_is_first_come(jobs: Workload) -> None:
    """Strict first come, first served, without backfilling: the slow simulator's schedule."""
    module = script()
    run = np.maximum(np.minimum(jobs.run_time, jobs.requested_time), 1)
    jobs = jobs.with_columns(run_time=run, requested_time=np.maximum(jobs.requested_time, run))
    found = module.by_their_rules(as_jobs(jobs), jobs.processors, module.SCORES["fcfs"], False)
    done = simulate_pool(jobs_of(jobs), jobs.processors, policy="fcfs")
    slow = [max((job.end - job.submit) / max(job.actual, 10), 1) for job in done]
    assert found == pytest.approx(np.mean(slow))


def test_a_table_of_one_sequence() -> None:
    module = script()
    jobs = module.loaded("lublin:jobs=3000,processors=64,seed=1")
    table = module.compared("generated", jobs, ["saf"], number=1)
    assert list(table.policy) == [*module.POLICIES, "saf"] * 2
    assert table.published.isna().all()
    assert (table.JobSelection >= 1).all()


def test_an_agent_acts_with_what_it_was_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    module, seen = script(), set()

    class First:
        env_options: ClassVar[dict[str, int]] = {"window": 8}

        def act(self, observation: Any, info: Any) -> int:
            seen.add(len(info["window"]))
            return 0

    monkeypatch.setattr(module, "find_policy", lambda name: First())
    monkeypatch.setattr(module, "POLICIES", ("fcfs",))
    jobs = module.loaded("lublin:jobs=3000,processors=64,seed=1")
    table = module.compared("generated", jobs, ["mine.pt"], number=1).set_index("policy")
    assert seen == {8}
    assert table.JobSelection["fcfs"].tolist() == table.JobSelection["mine.pt"].tolist()


def test_a_log_that_is_not_here_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    module = script()
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    logs = {"HPC2N": ("HPC2N", 10_000), "Lublin-2": ("lublin_256_new2", None)}
    monkeypatch.setattr(module, "LOGS", logs)
    monkeypatch.setattr(module, "GENERATED", "lublin:jobs=2200,processors=64,seed=1")
    monkeypatch.setattr(sys, "argv", ["rlscheduler.py", "--rows", "1"])
    module.main()
    said = capsys.readouterr().out
    assert "HPC2N is left out: it is not on this machine: hpcgym traces fetch HPC2N" in said
    assert "Lublin-2 is left out: 'lublin_256_new2' is no file" in said
    assert "generated, lublin:" in said
