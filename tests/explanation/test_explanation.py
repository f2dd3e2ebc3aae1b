"""Why one job waited: by hand, and with random jobs beside what would have been otherwise."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from drawing import assume, given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of, why_not
from node_strategies import node_cases, partitioned_cases, slow_jobs_and_nodes
from quota_strategies import fitted, quotas, with_queues
from restrictions import bounds
from strategies import cases
from submission_strategies import fitted as bounded

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.explanation import waits, watching
from hpcgym.explanation.explain import refused_at_first
from hpcgym.explanation.story import REASONS, RIGHTS
from hpcgym.machine import Cluster, NodeGroup, Partition
from hpcgym.reference.jobs import Job, Spared, jobs_of
from hpcgym.reference.nodes import NodeSimulation
from hpcgym.reference.pool import PoolSimulation, simulate_pool
from hpcgym.reference.units import hold, room_for
from hpcgym.scheduler.rules import read_quotas
from hpcgym.simulation.restricted import columns_of
from hpcgym.workload.model import Workload

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions"),
    pytest.mark.filterwarnings("ignore:.*no job falls under these quotas"),
]

LATE = ("f1", "f2", "f3", "f4")  # orders that count from the first submission of all


def jobs(*rows: tuple[int, int, int, int], processors: int = 10) -> Workload:
    """Jobs of (submission, processors, run time, requested time), numbered from 1."""
    submit, width, run, requested = np.array(rows).T
    return few_jobs(
        processors, submit, run, width, requested, job_number=np.arange(1, len(rows) + 1)
    )


# --- By hand --------------------------------------------------------------------------------------

# 1 has 6 of 10 processors up to 100 s, though it ends at 50 s. 2 wants all: promised 100 s.
# 3 (2 processors, 30 s) may start at 20 s, for it ends by then. 4 wants 5, and 2 are free.
SMALL = ((0, 6, 50, 100), (10, 10, 40, 40), (20, 2, 30, 30), (30, 5, 10, 10))


def test_a_head_that_waits_for_processors() -> None:
    result = hpcgym.simulate(jobs(*SMALL), "easy")
    assert result.start.tolist() == [0, 50, 20, 90]
    explained = hpcgym.explain(result, 2)
    assert (explained.waited_for, explained.behind) == ({"processors": 40}, {})
    assert explained.passes[["time", "ahead", "head", "shadow", "free"]].to_numpy().tolist() == [
        [10, 0, 2, 100, 4],
        [20, 0, 2, 100, 2],
        [30, 0, 2, 100, 2],
        [50, 0, 4, 90, 0],
    ]
    assert explained.others["right"].to_dict() == {1: "ran", 3: "shadow"}
    assert explained.others["delay"].to_dict() == {1: 40, 3: 0}
    ran = "1 ran already; 1 had to end before the first job of the queue could start."
    assert explained.sentences[:3] == [
        "It asked for 10 processors for 40 s, and waited for 40 s.",
        "1 job delayed it: without job 1 it would have started 40 s earlier.",
        "It waited for 40 s because fewer processors were free than it asks for.",
    ]
    assert {
        "At once it was the first job that could not start.",
        "1 of these came later than it; none of them delayed it.",
        "1 of them made no difference.",
        f"While it waited, 2 jobs ran: {ran}",
    } <= {*explained.sentences}
    assert hpcgym.explain(result, 1).sentences[1] == "It started at once."


def test_a_head_that_a_relaxed_job_delays() -> None:
    """3 asks for 300 s, and is judged by 30 s; it runs for 150, so 2 starts 120 s late."""
    rows = (*SMALL[:2], (20, 2, 150, 300))
    result = hpcgym.simulate(jobs(*rows), "easy", relax="1h", candidate_estimate=[50, 40, 30])
    assert result.start.tolist() == [0, 170, 20]
    explained = hpcgym.explain(result, 2)
    assert explained.others["right"].to_dict() == {1: "ran", 3: "relaxed"}
    assert explained.others["delay"].to_dict() == {1: 160, 3: 120}
    assert any("were expected to end by the reservation" in text for text in explained.sentences)


MORE = (*SMALL, (35, 1, 200, 200))  # 5 fits at once, but would delay 2, which wants all at 100 s
SLURM = (0, 6, 300, 300), (10, 10, 100, 100), (40, 1, 50, 50), (40, 1, 50, 50)


@pytest.mark.parametrize(
    ("rows", "rules", "job", "waited"),
    [
        (MORE, {}, 5, {"reservation": 15, "processors": 40}),
        (MORE, {}, 4, {"processors": 60}),
        (MORE, {"backfill": "conservative"}, 5, {"plan": 15, "processors": 40}),
        (MORE, {"backfill": 2, "hold": 0.1}, 5, {"plan_or_hold": 15, "processors": 40}),
        (SMALL[:3], {"backfill": "none"}, 3, {"order": 30, "processors": 40}),
        # 3 could start at 40 s; the next pass that backfills is at 60 s, or looks at 2 alone
        (SLURM[:3], {"backfill": "slurm"}, 3, {"clock": 20}),
        (
            SLURM[:3],
            {"backfill": "slurm:bf_max_job_test=1+bf_interval=20"},
            3,
            {"unseen": 260, "processors": 100},
        ),
        (SLURM[:3], {"backfill": 4}, 3, {}),
        # 2 is the first of its user that waits, so 3 is not looked at; 4, of another user, ends at
        # 90 s, between two looks
        (
            SLURM,
            {"backfill": "slurm:bf_max_job_user=1+bf_interval=20"},
            3,
            {"unseen": 250, "clock": 10, "processors": 100},
        ),
    ],
)
def test_reasons_by_hand(rows: Any, rules: Any, job: int, waited: dict[str, int]) -> None:
    workload = jobs(*rows).with_columns(user_id=[1, 2, 2, 3, 3][: len(rows)])
    explained = hpcgym.explain(hpcgym.simulate(workload, **rules), job)
    assert explained.waited_for == waited
    assert rules.get("backfill") != "conservative" or set(explained.passes["head"]) == {-1}


def test_sentences_on_a_reservation() -> None:
    sentences = hpcgym.explain(hpcgym.simulate(jobs(*SMALL), "easy"), 2).sentences
    reserved = [
        "Its first reservation was for 1 min 30 s after it came.",
        "It started 50 s before the last time reserved for it.",
        "While it was the first job that could not start, 1 job ended earlier than predicted.",
    ]
    assert [line for line in sentences if line in reserved] == reserved


def test_a_short_part_of_a_wait_is_not_called_nothing() -> None:
    """3 stands behind 2 for 998 s, and 1 s more first."""
    rows = (0, 10, 1000, 1000), (1, 10, 1, 1), (2, 5, 9, 9)
    text = str(hpcgym.explain(hpcgym.simulate(jobs(*rows), "easy"), 3))
    assert "fewer processors were free than it asks for (less than 1% of its wait)." in text
    assert "0%" not in text.replace("100%", "")


def test_what_held_while_others_stood_before_it_is_told_apart() -> None:
    """By hand: 3 wants all and comes behind 2, which runs from 50 to 90 s."""
    rows = (0, 6, 50, 100), (10, 10, 40, 40), (20, 10, 30, 30), (30, 4, 20, 20)
    explained = hpcgym.explain(hpcgym.simulate(jobs(*rows), "easy"), 3)
    assert explained.waited_for == {"processors": 70}
    assert explained.behind == explained.to_dict()["behind"] == {"processors": 30}
    why = "fewer processors were free than it asks for"
    assert {
        f"It waited for 40 s with no job before it, because {why} (57% of its wait).",
        f"It waited for 30 s behind other jobs, while {why} (43% of its wait).",
    } <= {*explained.sentences}


def test_the_caption_of_the_readme_is_true(trace: Callable[[str], Path]) -> None:
    """Nobody who came after job 4034 delayed it, though 122 of them started before it."""
    caption = (Path(__file__).parents[2] / "README.md").read_text().split("*`hpcgym explore")[1]
    caption_begins = (
        "job 4034 asks for 98 of 100 processors, and waits 3 days under EASY, 5 under\nSAF."
        " Without any one of the striped jobs it would have started earlier."
    )
    assert caption_begins in caption
    log = hpcgym.load_workload(trace("KTH-SP2-1996-2.swf.gz"))
    results = [hpcgym.simulate(log, rule) for rule in ("easy", "saf")]
    easy, saf = (hpcgym.explain(result, 4034, most=20) for result in results)
    assert (easy.facts["requested_processors"], log.processors) == (98, 100)
    assert [round(explained.facts["wait_time"] / 86_400) for explained in (easy, saf)] == [3, 5]
    assert list(easy.delayed) == [3786, 4032, 4033, 4031, 3961]
    assert easy.sentences[1].startswith("5 jobs delayed it: without job 3786 it would have")
    assert "122 of these came later than it; none of the 6 that were tried" in str(easy)
    assert saf.delayed


def test_one_other_job_is_no_others() -> None:
    """By hand: 7 wants all when 1 to 6 have ended; each but the last of them delays it alike."""
    rows = [(0, 10, 10, 10)] * 6 + [(0, 10, 10, 10), (1, 10, 10, 10)]
    sentence = hpcgym.explain(hpcgym.simulate(jobs(*rows), "easy"), 7).sentences[1]
    assert sentence.startswith(
        "6 jobs delayed it: without job 1 it would have started 10 s earlier"
    )
    assert sentence.endswith("; without 5, 10 s; 1 other delayed it too.")


def test_the_last_of_a_number_is_explained() -> None:
    workload = jobs(*SMALL)
    twice = hpcgym.simulate(workload.with_columns(job_number=np.array([1, 2, 2, 3])))
    sentence = hpcgym.explain(twice, 2).sentences[1]
    assert sentence == "The log has 2 jobs or runs with this number; this is the last."


# --- Proved ---------------------------------------------------------------------------------------


def _explained(workload: Workload, rules: dict[str, Any], pick: int) -> Any:
    """The explanation of a job that waited, with the schedule; nothing where none did."""
    for order in ("policy", "backfill_order"):
        if not isinstance(rules[order], str) and not any(rules[order]):
            rules[order] = "fcfs"
    workload = workload.with_columns(job_number=np.arange(len(workload)))
    result = hpcgym.simulate(workload, **rules)
    waited = np.flatnonzero(result.wait > 0)
    assume(len(waited))
    job = int(waited[pick % len(waited)])
    return result, job, hpcgym.explain(result, job)


@settings(max_examples=200)
@given(cases(25), st.integers(0, 100))
def test_what_is_told_of_passes(case: tuple[Workload, dict[str, Any]], pick: int) -> None:
    """All of the wait has a reason; reservations are those of the schedule; heads do wait."""
    result, job, explained = _explained(*case, pick)
    assert sum(explained.waited_for.values()) == result.wait[job]
    assert explained.waited_for.keys() <= REASONS.keys()
    assert set(explained.others["right"]) <= RIGHTS.keys()
    ends = result.start + result.run_time
    ran = (result.start < result.start[job]) & (ends > result.workload.submit_time[job])
    ran[job] = False
    assert sorted(explained.others.index) == np.flatnonzero(ran).tolist()
    for at_pass in explained.passes.itertuples():
        if at_pass.head >= 0:
            assert (
                result.workload.submit_time[at_pass.head]
                <= at_pass.time
                <= result.start[at_pass.head]
            )
        if result.scheduler.policy == "fcfs" and result.scheduler.threshold is None:
            waits = (result.workload.submit_time <= at_pass.time) & (result.start > at_pass.time)
            at = result.start[job] > at_pass.time
            assert not at or at_pass.ahead <= waits[:job].sum()
    own = explained.passes[(explained.passes["head"] == job) & (explained.passes["shadow"] >= 0)]
    if len(own) and result.scheduler.policy == "fcfs":
        assert own["shadow"].iloc[0] == result.reserved_start[job]


def test_under_limits() -> None:
    """What cannot be made again pass by pass is still explained by leaving out others."""
    generated = hpcgym.load_workload("lublin:jobs=150,processors=192,load=1.2,seed=2")
    limited = hpcgym.simulate(generated, "easy", cluster="taurus", limits=[])
    explained = hpcgym.explain(limited, int(generated.job_number[limited.wait.argmax()]))
    assert (explained.waited_for, len(explained.passes)) == ({}, 0)
    assert (explained.others["delay"] > 0).any()


def test_the_command() -> None:
    words = ["explain", "lublin:jobs=300,processors=64,load=1.2,seed=1", "--job", "200"]
    shown = CliRunner().invoke(app, [*words, "--scheduler", "easy,saf"])
    assert shown.exit_code == 0, shown.output
    assert "Job 200 of" in shown.stdout
    printed = CliRunner().invoke(app, [*words, "--format", "json"])
    facts = json.loads(printed.stdout)
    assert facts["job_number"] == 200
    assert facts["schedulers"][0]["wait_time"] == facts["wait_time"]


def test_without_time_one_job_is_tried_and_the_rest_is_said() -> None:
    """3 had 2 processors for 30 s while 2 waited, 1 had 6 for 40 s: 1 is tried."""
    result = hpcgym.simulate(jobs(*SMALL), "easy")
    progress: list[tuple[int, int]] = []
    explained = hpcgym.explain(
        result, 2, seconds=0, progress=lambda *done_and_all: progress.append(done_and_all)
    )
    assert explained.others["delay"].dropna().to_dict() == {1: 40}
    assert progress == [(0, 2), (1, 2)]
    assert explained.waited_for == {"processors": 40}
    assert "Not tried: 1 of them." in explained.sentences


def test_a_time_that_ends_meanwhile_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each simulation takes a second of 2.5: the last of four jobs is not tried."""
    now = 0.0
    module = sys.modules["hpcgym.explanation.explain"]  # the package has a function of this name
    start = module._start

    def slow(*arguments: Any) -> int:
        nonlocal now
        now += 1
        return start(*arguments)

    monkeypatch.setattr(module, "_start", slow)
    monkeypatch.setattr("hpcgym.explanation.watching.time.monotonic", lambda: now)
    result = hpcgym.simulate(jobs(*((0, k, 50, 50) for k in (1, 2, 3, 4)), (5, 10, 9, 9)), "easy")
    whole = hpcgym.explain(result, 5, seconds=None)
    now = 0.0
    explained = result.explain(5, seconds=2.5)
    assert explained.others["delay"].notna().to_dict() == {1: False, 2: True, 3: True, 4: True}
    assert explained.others["delay"].dropna().equals(whole.others["delay"].loc[[2, 3, 4]])
    assert explained.waited_for == whole.waited_for  # the passes took no time


def test_the_command_says_what_was_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    jobs(*SMALL).to_pandas().to_csv(path, index=False)
    given = ["explain", str(path), "--processors", "10", "--job", "2"]
    done = CliRunner().invoke(app, [*given, "--seconds", "0"])
    assert done.exit_code == 0, done.stderr
    assert "1 job could not be tried within 0 s" in done.stderr
    assert "could not be tried" not in CliRunner().invoke(app, given).output
    wrong = CliRunner().invoke(app, ["explain", str(path), "--seconds", "3"])
    assert "--seconds is for one job, with --job" in wrong.stderr


TOLD = ("quota", "processors", "nodes", "partition", "features")


class Watched(PoolSimulation):
    """A slow simulation that counts, from pass to pass, what hinders the jobs in its queue."""

    def schedule(self, now: int) -> None:
        if not hasattr(self, "seconds"):
            self.seconds = {name: np.zeros(len(self.jobs), np.int64) for name in TOLD}
            self.hindered: list[tuple[int, str]] = []
            self.since = now
        for number, name in self.hindered:
            self.seconds[name][number] += now - self.since
        super().schedule(now)
        hindrances = [(job.number, self.hindrance(job, now)) for job in self.queue]
        self.hindered, self.since = [(number, name) for number, name in hindrances if name], now

    def hindrance(self, job: Job, now: int) -> str:
        if self.barred(job):
            return "quota"
        return "processors" if job.processors > self.free(now) else ""


class WatchedNodes(Watched, NodeSimulation):
    """The same on nodes."""

    def hindrance(self, job: Any, now: int) -> str:
        hinders = super().hindrance(job, now)
        if hinders or self.alike:
            return hinders
        free = self.free_nodes(now)
        if sum(min(hold(node, job.demand), job.most) for node in free) < job.units:
            return "nodes"
        if room_for(replace(job, allowed=job.partition), free) < job.units:
            return "partition"
        return "features" if room_for(job, free) < job.units else ""


def _same(result: Any, slow: Watched, pick: int) -> Any:
    starts = [job.start for job in slow.run()]
    assert result.start.tolist() == starts
    waits_told = waits(result)
    at_times = result.scheduler.passes == "per-timestamp"  # else who does not fit as it comes
    for name in TOLD if at_times else ():  # waits for the next pass, too
        assert waits_told[name].tolist() == slow.seconds[name].tolist()
    assert (waits_told.sum(axis=1) == result.wait).all()
    job = pick % len(starts)
    explained = hpcgym.explain(result, job, most=0)
    assert explained.waited_for == {name: s for name, s in waits_told.loc[job].items() if s}
    seconds = slow.seconds["quota"][job]
    assert seconds == 0 or any(
        "it would have exceeded a quota" in line for line in explained.sentences
    )
    return explained


def _numbered(workload: Workload) -> Workload:
    return workload.with_columns(job_number=np.arange(len(workload)))


QUEUES = st.lists(st.integers(1, 2), min_size=1, max_size=5)


@settings(max_examples=100)
@given(st.data(), cases(25), QUEUES, st.integers(0, 100))
def test_pools(data: Any, case: tuple[Workload, Any], queues: list[int], pick: int) -> None:
    workload, rules = _numbered(with_queues(case[0], queues)), case[1]
    for order in ("policy", "backfill_order"):
        if not isinstance(rules[order], str) and not any(rules[order]):
            rules[order] = "fcfs"
    text, slow = None, []
    if data.draw(st.booleans()):
        rules, (text, slow) = fitted(rules), data.draw(quotas(workload))
    result = hpcgym.simulate(workload, quota=text, **rules)
    given = {**rules, "policy_estimate": "requested", "quotas": slow}
    explained = _same(result, Watched(jobs_of(workload), workload.processors, **given), pick)
    if rules["policy"] in LATE or rules["backfill_order"] in LATE:
        return  # they count from the first submission of all
    job = explained.job
    for number, delay in hpcgym.explain(result, job).others["delay"].items():
        left = [row for row in range(len(workload)) if row != number]
        words = {
            **rules,
            "quotas": [
                (*([of_jobs[row] for row in left] for of_jobs in quota[:2]), *quota[2:])
                for quota in slow
            ],
        }
        if not isinstance(rules["estimate"], str):
            words["estimate"] = [rules["estimate"][row] for row in left]
        jobs = jobs_of(workload)
        alone = simulate_pool([jobs[row] for row in left], workload.processors, **words)
        assert int(result.start[job]) - alone[job - (number < job)].start == delay


@settings(max_examples=100)
@given(st.data(), cases(20), QUEUES, st.integers(0, 100))
def test_jobs_that_are_refused_at_first(
    data: Any, case: tuple[Workload, Any], queues: list[int], pick: int
) -> None:
    """Under quotas of submitted jobs: waits, delays, and who was refused for how long."""
    workload, rules = _numbered(with_queues(case[0], queues)), bounded(case[1])
    text, places, running = data.draw(bounds(workload))
    try:
        result = hpcgym.simulate(workload, quota=text, **rules)
    except HpcgymError:  # an order that looks at when jobs are submitted
        assume(False)
    words = {**rules, "policy_estimate": "requested", "quotas": running, "places": places}
    slow = Watched(jobs_of(workload), workload.processors, **words)
    starts = [job.start for job in slow.run()]
    numbers = result.workload.job_number
    assert result.start.tolist() == [starts[number] for number in numbers]
    job = int(numbers[pick % len(numbers)])
    explained = hpcgym.explain(result, job)
    came = {int(n): int(t) for n, t in zip(numbers, result.workload.submit_time, strict=True)}
    outside = range(int(workload.submit_time[job]), came[job])
    ends = [start + int(run) for start, run in zip(starts, result_times(result), strict=True)]
    full: dict[str, int] = {}
    for (keys, most), name in zip(places, map(str, result.scheduler.quota), strict=True):
        if keys[job] is None or isinstance(keys[job], Spared):
            continue
        mates = [mate for mate in came if mate != job and keys[mate] == keys[job]]
        seconds = sum(sum(came[mate] <= t < ends[mate] for mate in mates) >= most for t in outside)
        if seconds:
            full[f"{name.rpartition(':')[0]}:submitted={most}"] = seconds
    assert explained.facts["refused_by"] == full
    assert explained.facts["submitted_later"] == len(outside)
    assert ("It was refused" in str(explained)) == bool(full)
    due = int(workload.submit_time[job])
    ran = {
        other
        for other in came
        if other != job and starts[other] < starts[job] and ends[other] > due
    }
    ran = ran if due < starts[job] else set()
    assert {*explained.others.index} == ran
    gone = explained.others.index[explained.others["right"] == "outside"]
    assert {*gone} == {other for other in ran if ends[other] <= came[job]}
    alike = watching.as_submitted(result)
    again = hpcgym.simulate(alike.workload, alike.scheduler, cluster=alike.cluster)
    if again.start.tolist() == result.start.tolist():
        waits_told = waits(result).sort_index()
        for name in TOLD if result.scheduler.passes == "per-timestamp" else ():
            assert waits_told[name].tolist() == slow.seconds[name].tolist()
        assert sum(explained.waited_for.values()) == explained.facts["wait_time"]
    else:
        assert "submit jobs between two passes of one second" in why_not(waits, result)
    if rules["policy"] in LATE or rules["backfill_order"] in LATE:
        return
    for number, delay in explained.others["delay"].items():
        left = [row for row in range(len(workload)) if row != number]
        fewer = {
            "quotas": [
                (*([of_jobs[row] for row in left] for of_jobs in quota[:2]), *quota[2:])
                for quota in running
            ],
            "places": [([keys[row] for row in left], most) for keys, most in places],
        }
        if not isinstance(rules["estimate"], str):
            fewer["estimate"] = [rules["estimate"][row] for row in left]
        alone = simulate_pool(
            [jobs_of(workload)[row] for row in left], workload.processors, **{**words, **fewer}
        )
        assert starts[job] - alone[job - (number < job)].start == delay


def result_times(result: Any) -> list[int]:
    """Return the run times of jobs in the order of their numbers."""
    times: list[int] = result.run_time[np.argsort(result.workload.job_number)].tolist()
    return times


@settings(max_examples=100)
@given(
    st.data(),
    st.one_of(node_cases(15), partitioned_cases()),
    QUEUES,
    st.booleans(),
    st.integers(0, 100),
)
def test_nodes(
    data: Any, case: tuple[Cluster, Workload, Any], queues: list[int], kept: bool, pick: int
) -> None:
    cluster, workload, rules = case[0], _numbered(with_queues(case[1], queues)), fitted(case[2])
    text, slow = data.draw(quotas(workload)) if kept else (None, [])
    result = hpcgym.simulate(workload, cluster=cluster, quota=text, **rules)
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    given = {"passes": "per-timestamp", "policy_estimate": "requested", "quotas": slow, **rules}
    _same(result, WatchedNodes(jobs, capacity, **given), pick)


# --- By hand --------------------------------------------------------------------------------------


def four(**columns: list[int]) -> Workload:
    """Return jobs 1 to 4 of 10 s on 2 of 8 processors each, all submitted at once by one user."""
    given = {"run_time": [10] * 4, "requested_processors": [2] * 4, "submit_time": [0] * 4}
    given |= {"job_number": [1, 2, 3, 4], "user_id": [1] * 4, **columns}
    return Workload.from_columns({"requested_time": given["run_time"], **given}, processors=8)


def test_each_users_own_quota_is_named() -> None:
    """The engine has what bounds one amount of different users in one place."""
    jobs = four().with_columns(user_id=[1, 1, 2, 2])
    quotas = "user=1:jobs=1; user=2:jobs=1; user=1|2:jobs=4"
    assert columns_of(jobs, [(quota, "jobs") for quota in read_quotas(quotas)]) == [0, 0, 1]
    result = hpcgym.simulate(jobs, quota=quotas)
    for job, user in ((2, 1), (4, 2)):
        assert f"exceeded a quota, user={user}:jobs=1." in str(hpcgym.explain(result, job))


def test_quotas_are_named() -> None:
    result = hpcgym.simulate(four(), quota="user:jobs=2")
    explained = hpcgym.explain(result, 4)
    assert explained.waited_for == {"quota": 10}
    assert "It waited for 10 s because it would have exceeded a quota, user:jobs=2." in str(
        explained
    )
    assert explained.passes["quotas"].tolist() == ["user:jobs=2", ""]
    assert waits(result)["quota"].tolist() == [0, 0, 10, 10]
    two = four(run_time=[10, 20, 10, 10], queue=[1, 1, 2, 2])
    result = hpcgym.simulate(two, quota="queue=1:jobs=1; all:jobs=1")
    assert result.start.tolist() == [0, 10, 30, 40]
    text = str(hpcgym.explain(result, 2))
    assert "exceeded a quota: queue=1:jobs=1 for 10 s, all:jobs=1 for 10 s." in text
    assert "exceeded a quota, all:jobs=1." in str(hpcgym.explain(result, 4))
    four_each = four(requested_processors=[4] * 4)
    result = hpcgym.simulate(four_each, quota="all:processors=4; all:submitted=9")
    assert "exceeded a quota, all:processors=4." in str(hpcgym.explain(result, 2))


def test_a_refused_job_and_the_wait_of_the_log() -> None:
    """With 2 jobs a user, 3 is refused until 1 and 2 end at 10 s; 4 of another user waits too."""
    jobs = four(user_id=[1, 1, 1, 2], requested_processors=[4, 4, 4, 8], wait_time=[0, 0, 7, -1])
    result = hpcgym.simulate(jobs, "easy", quota="user:submitted=2")
    third, fourth = hpcgym.explain(result, 3), hpcgym.explain(result, 4)
    assert third.facts["refused_by"] == {"user:submitted=2": 10}
    assert "It was refused when the log submits it" in str(third)
    assert "user:submitted=2. It was submitted 10 s later than in the log" in str(third)
    assert third.sentences[0].endswith("and waited for 10 s; in the log it waited for 7 s.")
    assert third.facts["recorded_wait_time"] == 7
    assert third.others["right"].to_dict() == {1: "outside", 2: "outside", 4: "order"}
    assert third.others["delay"].to_dict() == {1: 20, 2: 20, 4: 10}
    assert third.sentences[2].startswith("3 jobs delayed it: without job 1 it would have started")
    assert fourth.facts["refused_by"] == {}
    assert "in the log it waited" not in str(fourth)
    assert (
        fourth.sentences[1] == "2 other jobs were left out, one at a time: none alone delayed it."
    )
    assert fourth.waited_for == {"processors": 10}
    assert waits(result).loc[4, "processors"] == 10
    assert refused_at_first(result) == (1, 10)


def test_why_a_job_came_later_than_in_the_log() -> None:
    """By hand: 2 follows 1, which ends at 100 s; a user has one job at a time."""
    more = {"job_number": [1, 2, 3], "preceding_job": [-1, 1, -1]}
    given = few_jobs(4, [0, 10, 20], [100, 50, 5], [1] * 3, **more)
    follows, quota = (
        "after job 1, which it follows, had ended",
        "because of a quota of submitted jobs",
    )
    later = {}
    for users, rules in (
        ([1, 1, 1], {}),
        ([1, 2, 1], {"quota": "user:submitted=1"}),
        ([1, 1, 1], {"quota": "user:submitted=1"}),
    ):
        jobs = given.with_columns(user_id=users)
        result = hpcgym.simulate(jobs, "easy", dependencies="after", **rules)
        for job in (2, 3):
            lines = hpcgym.explain(result, job).sentences
            later[len(later)] = [line for line in lines if "later than in the log" in line]
    assert later == {
        0: [f"It was submitted 1 min 30 s later than in the log, {follows}."],
        1: [],
        2: [f"It was submitted 1 min 30 s later than in the log, {follows}."],
        3: [f"It was submitted 1 min 20 s later than in the log, {quota}."],
        4: [f"It was submitted 1 min 35 s later than in the log, {follows}, and {quota}."],
        5: [f"It was submitted 1 min 20 s later than in the log, {quota}."],
    }
    assert "Then it started at once." in lines


def test_the_first_of_those_that_may_start_is_the_head() -> None:
    """3 wants all from 50 s on; 2 is passed over while 1 runs, and 4 would delay 3."""
    more = {
        "job_number": [1, 3, 4, 2],
        "user_id": [1, 2, 3, 1],
        "requested_processors": [6, 8, 1, 1],
    }
    jobs = four(run_time=[50, 10, 90, 10], submit_time=[0, 0, 0, 1], **more)
    result = hpcgym.simulate(jobs, "easy", quota="user:jobs=1")
    assert result.start.tolist() == [0, 50, 60, 60]
    waits_told = waits(result)
    reasons = {job: {name: s for name, s in waits_told.loc[job].items() if s} for job in (2, 3, 4)}
    assert reasons == {
        2: {"quota": 49, "processors": 10},
        3: {"processors": 50},
        4: {"reservation": 50, "processors": 10},
    }
    assert hpcgym.explain(result, 3).passes["head"].tolist() == [3, 3, 4]


def test_full_partitions() -> None:
    """1 has both nodes of its partition for 50 s; 2 waits for one, though others are free."""
    machine = Cluster(
        groups=(NodeGroup("n", 4, {"core": 2}),),
        partitions=(Partition("small", (0, 1)), Partition("rest", (2, 3))),
    )
    wide = four(
        partition=[1, 1, 2, 2], requested_processors=[4, 2, 2, 1], run_time=[50, 10, 10, 10]
    )
    jobs = replace(wide, header={"Partition": ["1 small", "2 rest"]})
    result = hpcgym.simulate(jobs, "easy", cluster=machine)
    assert result.start.tolist() == [0, 50, 0, 0]
    explained = hpcgym.explain(result, 2)
    assert explained.waited_for == {"processors": 10, "partition": 40}
    assert "too few of the nodes with room for it were open to its partition" in str(explained)


def test_a_long_order_is_not_told_in_full() -> None:
    """As that of a site's slurm.conf."""
    jobs = hpcgym.load_workload("lublin:jobs=60,processors=8,load=1.5,seed=1")
    long = " + ".join(f"{k} * wait - {k} * processors" for k in range(1, 9))
    for policy, order in (("wait", "order: wait)"), (long, f"order: {long[:110]}")):
        result = hpcgym.simulate(jobs, "easy", policy=policy)
        number = int(jobs.job_number[result.wait.argmax()])
        text = str(result.explain(number))
        assert order in text
        assert long not in text


test_mistakes = mistakes_of(globals())
