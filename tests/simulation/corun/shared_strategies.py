"""Random small machines with shared nodes, and what they run: ties, extremes, wrong beliefs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from drawing import strategies as st
from few_jobs import few_jobs

from hpcgym.reference import shared
from hpcgym.workload import Workload
from hpcgym.workload.codes import with_codes


def runs(simulation: Any) -> list[float]:
    """Return for how long the ended jobs ran [s], in the order of their ends."""
    ended = [job for job in simulation.jobs if 0 <= job.end <= simulation.now and job.start >= 0]
    ended.sort(key=lambda job: (job.end, job.number))
    return [(job.end - job.start) / simulation.ticks for job in ended]


#: Functions of the runs that have ended, and the same as expressions if all jobs are one user's.
BY_RUNS: dict[Any, str] = {
    lambda s, job: job.number * ([job.requested, *runs(s)][-1] - job.requested): (
        "(job - 1) * (last_run - requested)"
    ),
    lambda s, job: len(runs(s)[-5:]) * job.requested - [job.requested, *runs(s)][-1]: (
        "known_runs * requested - last_run"
    ),
}
#: Functions of what a pass finds, as the slow simulator takes them -> the same as expressions.
LOOKING: dict[Any, str] = {
    lambda s, job: job.processors / (job.number + 1) * (1 if s.parts(job) <= s.free() else -1): (
        "processors / job * (1 if fits else -1)"
    ),
    lambda s, job: s.free() / (s.m.nodes * s.rules.parts) - len(s.queue) * job.requested: (
        "free - queued * requested"
    ),
    **BY_RUNS,
}
STATIC_ORDERS = ("fcfs", "lcfs", "sjf", "lpf", "sqf", "lqf", "saf")
ESTIMATES = ("requested", "double-requested", "clairvoyant")

#: Many are alike, so that nodes tie; some divide evenly, some leave ends between two ticks.
SPEEDUPS = st.one_of(
    st.sampled_from([0.5, 0.6, 0.75, 0.9, 1.0, 1.0, 1.0, 1.1, 1.25, 1.5, 2.0]),
    st.floats(0.5, 2.0),
)

#: What a run time becomes as requested time; a smaller request gets the job killed.
REQUESTS = st.one_of(
    st.just(lambda run: run),
    st.just(lambda run: 2 * run),
    st.just(lambda run: max(run // 2, 1)),
    st.integers(-3, 30).map(lambda more: lambda run: max(run + more, 1)),
    st.sampled_from([10, 60]).map(lambda request: lambda run: request),
)

#: Seconds between submissions.
GAPS = (st.just(0), st.sampled_from([0, 0, 0, 1, 2, 3, 7]), st.sampled_from([0, 0, 1, 5, 50]))


@dataclass(frozen=True)
class Case:
    """What is simulated; ``believed`` is None where the scheduler knows the true speedups."""

    jobs: tuple[tuple[int, int, int, int, int], ...]  # as the fields of Job: submit, run, ...
    machine: shared.SharedMachine
    rules: shared.SharedRules
    true: shared.Speedups
    believed: shared.Speedups | None
    ticks: int
    files: shared.FileSystem | None = None

    def simulate(self) -> list[shared.SharedJob]:
        jobs = [shared.SharedJob(*job) for job in self.jobs]
        return shared.simulate_shared(
            jobs, self.machine, self.rules, self.true, self.believed, self.ticks, self.files
        )

    @property
    def asked(self) -> int:
        """What all jobs together ask of the file system [bytes/s]."""
        assert self.files is not None
        return sum(processors * self.files.demand[code] for *_, processors, code in self.jobs)


@st.composite
def speedups(draw: st.DrawFn, codes: int) -> shared.Speedups:
    """Of all pairs; alone is the best of the row, or below or above all pairs, or anything."""
    every = draw(st.sampled_from([None, None, None, 1.0]))  # or all are exactly 1
    value = SPEEDUPS if every is None else st.just(every)
    row = st.tuples(*[value] * codes)
    pairs = draw(st.tuples(*[row] * codes))
    alone = draw(st.sampled_from(["best", "below", "above", "any"]))
    if alone == "any":
        return shared.Speedups(pairs, draw(row))
    of_row = {"best": max, "below": lambda row: min(row) / 2, "above": lambda row: 1.5 * max(row)}
    return shared.Speedups(pairs, tuple(of_row[alone](row) for row in pairs))


@st.composite
def machines(draw: st.DrawFn, parts: int) -> shared.SharedMachine:
    """1 to 6 nodes whose sockets have cores enough for so many parts, and often some to spare."""
    nodes = draw(st.sampled_from([1, 2, 2, 3, 3, 4, 5, 6]))
    cores = parts * draw(st.sampled_from([1, 1, 2])) + draw(st.integers(0, parts - 1))
    return shared.SharedMachine(nodes, draw(st.sampled_from([1, 1, 2])), cores)


@st.composite
def rules(draw: st.DrawFn, **fixed: Any) -> shared.SharedRules:
    """Any scheduler; ``fixed`` are those of its rules that are not drawn."""
    allocation = fixed.get(
        "allocation",
        draw(
            st.sampled_from([shared.PART, shared.PART, shared.PART, shared.SPREAD, shared.COMPACT])
        ),
    )
    weight = st.sampled_from([0.0, 0.0, 0.1, 1.0, 2.0])
    named = st.sampled_from([*STATIC_ORDERS, *LOOKING])
    order = st.one_of(named, st.tuples(weight, weight, weight))
    behind = draw(st.sampled_from([1, 2, 100]))
    drawn: dict[str, Any] = {
        "allocation": allocation,
        "parts": draw(st.sampled_from([2, 2, 3, 4])) if allocation == shared.PART else 2,
        "partners": draw(st.sampled_from(["best", "fill", "first", "used"])),
        "pairs_above": draw(st.sampled_from([None, None, 0.75, 1.0, 1.1])),
        "backfill": draw(
            st.sampled_from(
                ["none", "easy", "easy", "until-shadow", "fill", f"first-come:{behind}"]
            )
        ),
        "order": draw(order),
        "backfill_order": draw(st.sampled_from(["fcfs", "sjbf", "policy"])),
        "estimate": draw(st.sampled_from(ESTIMATES)),
    }
    return shared.SharedRules(**{**drawn, **fixed})


@st.composite
def jobs(
    draw: st.DrawFn, machine: shared.SharedMachine, codes: int, max_jobs: int
) -> tuple[tuple[int, ...], ...]:
    """Jobs in order of submission, of one core up to the whole machine."""
    node = machine.sockets * machine.cores
    sizes = st.one_of(
        st.integers(1, node * machine.nodes),
        st.integers(1, node),
        st.sampled_from([1, max(node // 2, 1), node, node * machine.nodes]),
    )
    lengths = st.one_of(st.integers(1, 12), st.sampled_from([1, 2, 4, 8, 30]))
    gaps = draw(st.sampled_from(GAPS))
    job = st.tuples(gaps, lengths, REQUESTS, sizes, st.integers(0, codes - 1))
    fewest = draw(st.sampled_from([1, 4, 8, 12]))  # lists alone would stay short
    drawn = []
    submit = draw(st.sampled_from([0, 1, 1000]))
    for gap, run, request, size, code in draw(
        st.lists(job, min_size=min(fewest, max_jobs), max_size=max_jobs)
    ):
        submit += gap
        drawn.append((submit, run, request(run), size, code))
    return tuple(drawn)


@st.composite
def cases(draw: st.DrawFn, max_jobs: int = 14, knows: bool | None = None, **fixed: Any) -> Case:
    """A machine, jobs, speedups and a scheduler.

    ``knows``: whether the scheduler knows the true speedups, None for either; ``fixed`` are rules
    that are not drawn.
    """
    chosen = draw(rules(**fixed))
    machine = draw(machines(chosen.parts))
    codes = draw(st.integers(1, 4))
    true = draw(speedups(codes))
    knowing = draw(st.sampled_from([True, True, False])) if knows is None else knows
    return Case(
        draw(jobs(machine, codes, max_jobs)),
        machine,
        chosen,
        true,
        None if knowing else draw(speedups(codes)),
        draw(st.sampled_from([1, 10, 1000, 10**9])),
    )


@st.composite
def with_files(draw: st.DrawFn, of: st.SearchStrategy[Case]) -> Case:
    """A case whose jobs do I/O: some codes none, some little else."""
    case = draw(of)
    codes = len(case.true.alone)
    shares = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.99]) | st.floats(0, 0.999)
    demands = st.sampled_from([0, 1_000_000, 2_000_000, 3_000_000]) | st.integers(0, 10**9)
    share = draw(st.tuples(*[shares] * codes))
    demand = tuple(draw(demands) if part > 0 else 0 for part in share)
    cores = case.machine.nodes * case.machine.sockets * case.machine.cores
    most = max(cores * max(demand), 1)  # what the full machine may ask for
    part = draw(st.sampled_from([2.0, 1.0, 0.6, 0.3, 0.1]) | st.floats(0.01, 2))
    return replace(case, files=shared.FileSystem(max(round(part * most), 1), share, demand))


def coded(
    *rows: tuple[int, int, int, int, str], processors: int = 8, **columns: list[int]
) -> Workload:
    """Jobs (submit, run, requested, processors, code), numbered from 1."""
    submit, run, requested, wide, codes = zip(*rows, strict=True)
    columns["job_number"] = list(range(1, len(rows) + 1))
    return with_codes(few_jobs(processors, submit, run, wide, requested, **columns), codes)
