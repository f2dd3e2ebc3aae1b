"""The twin beside a Slurm, of programs that answer as one did."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_slurm import NOW, SDIAG, SQUEUE, ZERO, calls, fake_slurm

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.cli.twin import _poll_on
from hpcgym.errors import HpcgymError
from hpcgym.forecasting.scores import crps
from hpcgym.forecasting.state import SlurmStates
from hpcgym.slurm import queue
from hpcgym.slurm.looks import SlurmLook, seen_jobs
from hpcgym.slurm.programs import SlurmPrograms
from hpcgym.slurm.queue import QueuedJob
from hpcgym.twin import Twin
from hpcgym.twin import record as twin_record
from hpcgym.twin.policies import _row, under_policies
from hpcgym.twin.polls import before_pass
from hpcgym.twin.record import TwinRecord
from hpcgym.twin.serving import TwinSession, _of_policy

RULES = find_scheduler("easy:backfill=slurm:bf_window=10080")
#: A quarter of an hour later the second job has started, and the third was cancelled.
LATER = 900
SQUEUE_LATER = "\n".join([
    SQUEUE.splitlines()[0].replace("|PD|", "|R|").replace(
        f"|{ZERO + 3600}|{ZERO + 7200}||Resources", f"|{NOW + 500}|{NOW + 4100}|n1|None"
    ),
    SQUEUE.splitlines()[6],
    f"9|9|8|30:00|{NOW + 600}|5|0|eve|(null)|(null)|all|PD|N/A|N/A||Priority",
    "",
])  # fmt: skip
SDIAG_LATER = SDIAG.replace(str(NOW), str(NOW + LATER)).replace(
    str(NOW - 10), str(NOW + LATER - 10)
)


def twin(folder: Path, log: Path | None = None) -> Twin:
    return Twin(SlurmStates(SlurmPrograms(folder)), RULES, log, futures=16)


def test_a_twin_says_keeps_and_scores(tmp_path: Path) -> None:
    """The score is worked out here from what the file says."""
    folder, log = fake_slurm(tmp_path / "slurm"), tmp_path / "twin.jsonl"
    first = twin(folder, log)
    poll = first.poll()
    assert [(job.job, job.user) for job in poll.waiting] == [("2", "bob"), ("3", "eve")]
    assert all(NOW < job.p10 <= job.p50 <= job.p90 for job in poll.waiting)
    first.poll()  # says nothing anew
    kept = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["said"] for line in kept if "said" in line] == [f"2 of {ZERO}", f"3 of {ZERO}"]
    assert [line["slurm"] for line in kept if "said" in line] == [3500, 3500]

    fake_slurm(folder, squeue=SQUEUE_LATER, sdiag=SDIAG_LATER)
    first.poll()
    lines = [json.loads(line) for line in log.read_text().splitlines()][len(kept) :]
    assert {"started": f"2 of {ZERO}", "wait": 500} in lines
    assert {"gone": f"3 of {ZERO}"} in lines
    assert [line["said"] for line in lines if "said" in line] == [f"9 of {NOW + 600}"]
    scores = first.record.scores()
    assert scores["scored"] == 1
    of_slurm = crps(np.full((1, 21), 3500.0), np.array([500.0]))[0]
    assert scores["crps"]["squeue"] == pytest.approx(of_slurm)
    said = np.array([next(line for line in kept if "said" in line)["futures"]])
    assert scores["crps"]["futures"] == pytest.approx(crps(said, np.array([500.0]))[0])

    again = twin(folder, log)  # as after a kill
    assert again.record.scores() == scores
    assert again.record.pending.keys() == {f"9 of {NOW + 600}"}
    assert again.record.past.saved() == first.record.past.saved()
    again.poll()
    assert again.states.now().past.job_number.tolist() == [6]


def test_a_job_that_is_held_is_forecast_anew_once_released(tmp_path: Path) -> None:
    """Nobody can foretell for how long: what was said before is not scored."""
    folder = fake_slurm(tmp_path / "slurm")
    made = twin(folder)
    made.poll()
    line, job = SQUEUE.splitlines()[0], f"2 of {ZERO}"
    held = line.replace("4294901758", "0").replace("Resources", "JobHeldUser")
    fake_slurm(folder, squeue=SQUEUE.replace(line, held))
    made.poll()
    assert [*made.record.pending] == [f"3 of {ZERO}"]
    later = {"sdiag": SDIAG_LATER, "squeue": SQUEUE}
    fake_slurm(folder, **later)
    made.poll()
    assert made.record.pending[job]["time"] == NOW + LATER
    fake_slurm(folder, **later | {"squeue": SQUEUE_LATER.replace(str(NOW + 500), str(NOW + LATER))})
    made.poll()
    assert made.record.scores()["scored"] == 1


@pytest.mark.parametrize("cut", [1, 17, 200, 400])
def test_a_line_that_was_not_written_whole_is_left_out(tmp_path: Path, cut: int) -> None:
    folder, log = fake_slurm(tmp_path / "slurm"), tmp_path / "twin.jsonl"
    twin(folder, log).poll()
    whole = log.read_bytes()
    log.write_bytes(whole[:-cut])
    again = TwinRecord(log)
    assert len(again.pending) + len(again.ended) < 3
    second = twin(folder, log)
    second.poll()
    third = TwinRecord(log)
    assert third.pending.keys() == second.record.pending.keys()
    assert len(third.pending) == 2


def scored_twin(path: Path | None, jobs: range, record: TwinRecord | None = None) -> TwinRecord:
    """A record of jobs that all start but the last, and end."""
    record = TwinRecord(path) if record is None else record
    for k in jobs:
        rng = np.random.default_rng(k)
        samples = np.sort(rng.integers(0, 99, 8) * 60.0)
        record.said(f"{k} of 0", k, f"user{k % 3}", samples, float(samples[-1]), 60 * (k % 3) - 1)
        if k < jobs[-1]:
            record.started(f"{k} of 0", int(rng.integers(0, 6000)))
            record.has_ended(f"{k} of 0", ended_job(k))
    return record


def ended_job(k: int) -> QueuedJob:
    names = (f"user{k % 3}", "a", "q", "p")
    return QueuedJob(k, 4, k, 600, 1, 0, names, k + 60, k + 120)


def facts_of(record: TwinRecord) -> Any:
    said = record.quantiles("user1", np.linspace(0, 4200, 8), 5000.0).tolist()
    return record.scores(), said, record.pending, record.ended


def test_a_log_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was written anew tells what the whole one does, and goes on alike."""
    monkeypatch.setattr(twin_record, "_SPARE", 40)
    monkeypatch.setattr(twin_record, "_KEPT", 10)
    monkeypatch.setattr(queue, "MOST_ENDED", 5)
    path = tmp_path / "twin.jsonl"
    kept, whole = scored_twin(path, range(120)), scored_twin(None, range(120))
    assert len(path.read_text().splitlines()) < 120
    assert json.loads(path.read_text().splitlines()[0]).keys() == {"learned"}
    again = TwinRecord(path)
    for more in (range(120, 121), range(121, 160)):
        for record in (kept, again, whole):
            if record is not again:
                scored_twin(None, more, record)
        again = TwinRecord(path)
        ours, theirs = facts_of(again), facts_of(whole)
        assert facts_of(kept) == ours
        assert ours[:3] == theirs[:3]
        assert list(theirs[3].items())[-5:] == list(ours[3].items())[-5:]


def test_a_twin_that_is_killed_at_any_moment_goes_on(tmp_path: Path) -> None:
    """Also while it writes its log anew, again and again."""
    code = (
        "import sys, itertools; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "import test_twin as t\n"
        "t.twin_record._SPARE, t.twin_record._KEPT, t.queue.MOST_ENDED = 1, 10, 5\n"
        "record = t.TwinRecord(Path(sys.argv[1]))\n"
        "first = max((int(k.split()[0]) + 1 for k in record.ended), default=0)\n"
        "for k in itertools.count(first):\n"
        "    t.scored_twin(None, range(k, k + 2), record)\n"
        "    print(k, flush=True)\n"
    )
    path, most = tmp_path / "twin.jsonl", 0
    for times, wait in ((20, 0.003), (25, 0.011), (30, 0.02)):
        command = [sys.executable, "-c", code, str(path), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(times):
                process.stdout.readline()
            time.sleep(wait)
            process.kill()
        record = TwinRecord(path)
        assert len(path.read_bytes().splitlines()) < 60
        assert record.scores()["scored"] >= 10
        newest = max(int(job.split()[0]) for job in record.ended)
        assert newest > most
        most = newest


def test_logs_of_the_first_version_are_read(tmp_path: Path) -> None:
    path = tmp_path / "twin.jsonl"
    scored_twin(path, range(3))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.pop("pool", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    scores = TwinRecord(path).scores()
    assert scores["scored"] == 2
    assert scores["crps"]["pool"] == scores["crps"]["futures"]


def test_another_file_is_no_log(tmp_path: Path) -> None:
    for text in ("job,start\n1,2\n", "[]\n"):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(HpcgymError, match="not a log of hpcgym twin"):
            TwinRecord(tmp_path / "x.jsonl")


def test_before_a_pass_what_it_started_waits() -> None:
    line = "{0}|{0}|1|1:00:00|{1}|9|0|u|a|q|p|{2}|{3}|{4}|{5}|None"
    rows = [
        line.format(1, 0, "R", 5, 99, "n1"),  # before
        line.format(2, 0, "R", 50, 99, "n2"),  # by the pass
        line.format(3, 60, "PD", "N/A", "N/A", ""),  # came later
        line.format(4, 50, "PD", 90, 99, ""),  # came in its second
        line.format(5, 0, "CD", 5, 50, "n3"),  # ended in its second
        line.format(6, 0, "CD", 5, 55, "n4"),  # ran then
    ]
    jobs, misread = seen_jobs("\n".join(rows))
    assert not misread
    before = before_pass(SlurmLook(70, jobs, 50, {}, []))
    assert before is not None
    began = {seen.told.number: seen.told.began for seen in before.jobs}
    assert began == {1: 5, 2: -1, 4: -1, 6: 5}
    assert all(seen.told.ended == -1 for seen in before.jobs)


def test_other_policies_have_the_same_futures(tmp_path: Path) -> None:
    poll = twin(fake_slurm(tmp_path)).poll()
    rows = {row.policy: row for row in under_policies(poll.forecast, futures=8)}
    assert rows.keys() >= {"fcfs", "saf", "laf"}
    assert (rows["fcfs"].less_p10, rows["fcfs"].less_p90) == (0, 0)
    # two jobs wait: the order of areas is that of submission, the other turns it round
    assert rows["saf"].wait == rows["fcfs"].wait
    assert rows["saf"].less_p10 == rows["saf"].less_p90 == 0
    assert rows["laf"].less_p90 <= 0


def test_a_page_and_facts(tmp_path: Path) -> None:
    made = twin(fake_slurm(tmp_path))
    session = TwinSession(made, 30)
    with pytest.raises(HpcgymError, match="not been looked at"):
        session.got("", {})
    made.poll()
    pages = {name: session.got(name, {}) for name in ("", "policies", "shape", "policies.json")}
    assert all(pages.values())
    assert session.got("other", {}) is None
    facts = json.loads(session.got("forecasts.json", {}).body)  # type: ignore[union-attr]
    assert [row["job"] for row in facts["waiting"]] == ["2", "3"]
    assert facts["waiting"][0]["slurm_s"] == ZERO + 3600
    page = pages[""].body.decode()  # type: ignore[union-attr]
    assert "no forecast is scored yet" in page
    assert "<td>24</td>" in page
    # what comes again each half minute has no form, which would be emptied
    assert (pages[""].again_s, "<form" in page) == (30, False)  # type: ignore[union-attr]
    assert '<a href="shape">' in page
    asked = pages["shape"]
    assert (asked.again_s, b"<form" in asked.body) == (0, True)  # type: ignore[union-attr]
    with pytest.raises(HpcgymError, match="processors must be a whole number"):
        session.got("shape", {"processors": "<script>"})


def test_never_is_told_apart_from_what_is_not_told(tmp_path: Path) -> None:
    made = twin(fake_slurm(tmp_path))
    poll = made.poll()
    row = poll.waiting[0]._replace(p90=np.inf, slurm=-1)
    made.last = dataclasses.replace(poll, waiting=[row])
    session = TwinSession(made, 30)
    (facts,) = json.loads(session.got("forecasts.json", {}).body)["waiting"]  # type: ignore[union-attr]
    assert (facts["p90_s"], facts["slurm_s"]) == ("never", None)
    page = session.got("", {}).body.decode()  # type: ignore[union-attr]
    assert "<td>never</td><td>-</td></tr>" in page


def test_a_policy_under_which_jobs_never_start() -> None:
    """So it is no less by any number of seconds than that of now."""
    assert _of_policy(_row("x", np.full(8, np.inf), np.full(8, 60.0))) == {
        "policy": "x", "wait_s": "never", "less_p10_s": None, "less_p50_s": None, "less_p90_s": None
    }  # fmt: skip
    same = _row("x", np.full(8, np.inf), np.full(8, np.inf))
    assert same[2:] == (0, 0, 0)


def test_the_page_says_how_many_futures_are_compared(tmp_path: Path) -> None:
    """The first forecast has eight, and other policies have no more."""
    made = Twin(SlurmStates(SlurmPrograms(fake_slurm(tmp_path))), RULES, futures=64)
    assert made.poll().forecast.futures == 8
    page = TwinSession(made, 30).got("policies", {}).body.decode()  # type: ignore[union-attr]
    assert "The same 8 futures under each" in page


def test_no_error_of_a_poll_ends_the_twin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two polls fail in the same way, which is said once; the third goes well."""
    made = twin(fake_slurm(tmp_path))
    session = TwinSession(made, 0)
    problems = []

    def ends() -> None:
        problems.append(session.problem)
        if len(problems) == 5:
            raise KeyboardInterrupt
        if len(problems) < 3:
            raise ValueError("an odd\nline")
        if len(problems) == 3:
            raise KeyError("n9")

    monkeypatch.setattr(made, "poll", ends)
    with pytest.raises(KeyboardInterrupt):
        _poll_on(made, session, 0)
    odd = "ValueError: an odd line"
    assert problems == ["", odd, odd, "KeyError: 'n9'", ""]
    said = capsys.readouterr().err
    assert (said.count(odd), said.count("KeyError: 'n9'")) == (1, 1)


def test_the_command_serves_polls_and_ends(tmp_path: Path) -> None:
    """It writes nothing to Slurm; a Slurm that goes away is said once, and comes back."""
    folder, log = fake_slurm(tmp_path / "slurm"), tmp_path / "twin.jsonl"
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "hpcgym", "twin", "--every", "1s", "--log", str(log)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}forecasts.json") as answer:
            assert [row["job"] for row in json.load(answer)["waiting"]] == ["2", "3"]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.rsplit("/", 2)[0] + "/guess/")
        fake_slurm(folder, squeue="#! echo Slurm is away >&2; exit 1")
        for _ in range(300):
            with urllib.request.urlopen(f"{address}forecasts.json") as answer:
                if json.load(answer)["problem"] == "squeue failed: Slurm is away":
                    break
            time.sleep(0.2)
        time.sleep(2.5)
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert said.count("Slurm is away") == 1, said
    assert process.returncode in (0, 130)
    asked = {call.split()[0] for call in calls(folder)}
    assert asked == {"squeue", "sdiag", "sinfo", "scontrol"}
    assert {call for call in calls(folder) if call.startswith("scontrol")} == {
        "scontrol show config",
        "scontrol -o -d show job",
    }
    assert log.read_text().count('"said"') == 2


def test_what_is_shown_is_what_is_scored(tmp_path: Path) -> None:
    """Where points were right and futures were not, the pool is near the point; so is the page."""
    folder, log = fake_slurm(tmp_path / "slurm"), tmp_path / "twin.jsonl"
    made = twin(folder, log)
    rng = np.random.default_rng(0)
    for k in range(60):
        samples = np.sort(rng.exponential(100_000, 16))
        made.record.said(str(k), 0, "u", samples, 600.0, -1)
        made.record.started(str(k), 600)
    assert made.record.pool.weights["requested"] > 0.9
    (row, _) = made.poll().waiting
    said = {line["said"]: line for line in map(json.loads, log.read_text().splitlines())
            if "said" in line}[f"2 of {ZERO}"]  # fmt: skip
    shown = np.array([row.p10, row.p50, row.p90]) - NOW
    assert shown == pytest.approx([said["pool"][k] for k in (2, 10, 18)], abs=0.1)
    # worked out here: the weighed mean of the logarithms
    weights = made.record.pool.weights
    logs = [np.log1p(np.array(said[name]) / 60) for name in ("futures", "requested")]
    mixed = 60 * np.expm1(weights["futures"] * logs[0] + weights["requested"] * logs[1])
    assert said["pool"] == pytest.approx(mixed, abs=0.1)
    made.record.started(f"2 of {ZERO}", 3501)
    score = made.record.scored[-1]
    assert score.inside == (said["pool"][2] <= 3501 <= said["pool"][18])
    pooled = np.array([said["pool"]])
    assert score.crps["pool"] == pytest.approx(crps(pooled, np.array([3501.0]))[0])


def test_never_is_said_where_half_of_the_weight_says_it() -> None:
    record, finite = TwinRecord(), np.array([60.0, 60.0, np.inf, np.inf])
    said = record.quantiles("u", finite, 60.0)
    assert said[0] == pytest.approx(60)
    assert said[-1] == np.inf
    assert np.isfinite(record.quantiles("u", np.full(4, 60.0), np.inf)).all()
