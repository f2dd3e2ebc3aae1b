#!/usr/bin/env python3
"""Break the engine and hpcgym in small ways, one by one, and say which test notices each.

A test suite that lets one of these pass has lost a guarantee. Each mutant is one edit of one file.
Those of the engine are made at once, in a copy of its sources, where HPCGYM_MUTANT says which of
them is alive; that is built in build/mutants. For each mutant the tests run that should notice.
Further arguments go to pytest, in their place.

    scripts/mutants.py                 all of them, by tests of scripts/test
    scripts/mutants.py --only 3 --only 7 tests/engine
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: How far behind ``Mutant.after`` its edit may be, in characters: later ones are of other code.
CLOSE = 100


class Mutant(NamedTuple):
    """One edit: ``old``, which stands once in the file, or is the first close behind ``after``."""

    what: str
    file: str
    old: str
    new: str
    after: str = ""
    #: that should notice
    tests: str = "tests/engine/test_rules_in_places.py"


MUTANTS = (
    Mutant(
        "a job that ends at the shadow time may not be backfilled",
        "native/strategies/easy.hpp",
        "s.rules().strict",
        "true",
        after="b.longest -= ",
    ),
    Mutant(
        "the shadow time is one second late",
        "native/core/machine.hpp",
        "at",
        "at + 1",
        after="  }\n  return {",
    ),
    Mutant(
        "of several jobs that end at the shadow time one counts",
        "native/core/machine.hpp",
        "e->width",
        "0",
        after="e->key == at; ++e) missing -= ",
        tests="tests/engine/test_crowds.py",
    ),
    Mutant(
        "of jobs that end together the last started ends first",
        "native/core/simulator.hpp",
        "of(e.job).number",
        "-of(e.job).number",
        after="std::ranges::sort(gone_, {}, ",
    ),
    Mutant(
        "the same where each event has a pass",
        "native/core/simulator.hpp",
        "of(e.job).number < first",
        "found.block < 0 || of(e.job).number > first",
    ),
    Mutant(
        "equal scores go to the last submitted",
        "native/core/queue.hpp",
        "place(j) > place(best)",
        "place(j) < place(best)",
    ),
    Mutant(
        "a second correction is added before the first",
        "native/core/simulator.hpp",
        "increments[before]",
        "increments[std::min(before + 1, increments.size() - 1)]",
    ),
    Mutant(
        "a reservation wants one processor more than it needs",
        "native/base/profile.hpp",
        "steps_[s].free < width",
        "steps_[s].free <= width",
        after="const bool blocked = ",
    ),
    Mutant(
        "on nodes a job that ends at the shadow time takes from the head",
        "native/strategies/easy.hpp",
        "e.span > b.longest",
        "e.span >= b.longest",
        after="if (!b.is_relaxed) return ",
    ),
    Mutant(
        "a quota lets one job more run",
        "native/core/quotas.hpp",
        "asked > 0 && left_of(count, quota, now) < asked",
        "asked > 0 && left_of(count, quota, now) < asked - 1",
    ),
    Mutant(
        "a window begins a second late",
        "native/machines/fresh_plan.hpp",
        "changes[each.begin] -= each.taken",
        "changes[each.begin + 1] -= each.taken",
    ),
    Mutant(
        "a user's last job alone counts in the mean of two",
        "native/core/simulator.hpp",
        "mean_of_last(past, rules().last)",
        "mean_of_last(past + rules().last - 1, 1)",
    ),
    Mutant(
        "who ends in an hour is free only later",
        "native/answers/state.hpp",
        "e.key - s.time <= 3600 * m.ticks",
        "e.key - s.time < 3600 * m.ticks",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "a job that does not fit leaves something",
        "native/answers/state.hpp",
        "left > 0 ? left : 0.0",
        "left",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "on nodes a job fits wherever there are cores",
        "native/answers/state.hpp",
        "has_room && s.machine.has_room(j, free_)",
        "has_room",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "of the last run times of a user one counts",
        "native/answers/state.hpp",
        "n < most && end[-1 - n] >= 0",
        "n < 1 && end[-1 - n] >= 0",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "the day has four hours more",
        "native/answers/state.hpp",
        "week / 7",
        "week / 6",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "who waits is not counted of its user",
        "native/answers/state.hpp",
        "++waiting_[user(j)]",
        "i64{0}",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "who comes in a pass is not counted",
        "native/answers/answers.hpp",
        "coming",
        "std::vector<i64>{}",
        after="state_.read_pass(s, ",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "what a score has of a job is kept though its prediction has changed",
        "native/answers/job_rows.hpp",
        "std::exchange(known.time, time) != time",
        "std::exchange(known.time, time) == time - 1",
    ),
    Mutant(
        "of equal scores that were put off not the first by place is served",
        "native/core/queue.hpp",
        "place(jobs_[k]) < place(jobs_[best])",
        "false",
    ),
    Mutant(
        "time alone lets a job start a second too late",
        "native/core/quotas.hpp",
        "(missing + rate - 1) / rate",
        "(missing + rate) / rate",
        tests="tests/engine/test_minutes.py",
    ),
    Mutant(
        "a job without a licence does not make Slurm look again",
        "native/strategies/planned.hpp",
        "s.quotas->lacks_licence(e.job, s.time)",
        "false",
        tests="tests/scheduler/test_slurm_scheduler.py",
    ),
    Mutant(
        "of a plan that draws nodes, or may keep idle ones, the rest is left out",
        "native/strategies/planned.hpp",
        "!plan_.is_settled(s.machine)",
        "false",
        tests="tests/scheduler/test_slurm_scheduler.py",
    ),
    Mutant(
        "a look that starts nothing has no plan, though it is told",
        "native/core/looks.hpp",
        "order_moves(r) || r.reserves_all",
        "order_moves(r)",
        tests="tests/engine/test_plans.py",
    ),
    Mutant(
        "who would be one too many is counted",
        "native/core/arrivals.hpp",
        "places.bar(outside_[k])",
        "false",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "run times are remembered for averages alone",
        "native/core/simulator.hpp",
        "rules().remembers()",
        "(rules().estimate == Estimate::average)",
        tests="tests/engine/test_state.py",
    ),
    Mutant(
        "usage is forgotten a half-life at a time",
        "native/answers/shares.hpp",
        "elementary::exp2(part)",
        "1.0",
        tests="tests/engine/test_shares.py",
    ),
    Mutant(
        "processors that switch off in this very second count as off",
        "native/machines/pool.hpp",
        "top.off_at < now",
        "top.off_at <= now",
        tests="tests/engine/test_power.py",
    ),
    Mutant(
        "look-ahead follows the last of the vectors that are as good",
        "native/places/foresight.hpp",
        "cost < least",
        "cost <= least",
        tests="tests/engine/test_foresight.py",
    ),
    Mutant(
        "short jobs count as so much longer in bounded slowdowns, not as so long",
        "native/places/measures.hpp",
        "std::max(run, tau)",
        "run + tau",
        tests="tests/simulation/test_batch.py",
    ),
    Mutant(
        "of those that a job may stop, the one that has run shortest may run on",
        "native/core/stops.hpp",
        "a.ran > b.ran",
        "a.ran < b.ran",
        tests="tests/engine/test_preemption_by_hand.py",
    ),
    Mutant(
        "a cap still holds in its last second",
        "native/machines/limited/starts.hpp",
        "cap.end <= now",
        "cap.end < now",
        after="bool caps_allow(",
        tests="tests/engine/test_under_limits.py",
    ),
    Mutant(
        "work on shared nodes is rounded down",
        "native/machines/corun/rates.hpp",
        "std::ceil(work / rate)",
        "std::floor(work / rate)",
        tests="tests/simulation/corun/test_corun_conformance.py",
    ),
    Mutant(
        "an environment counts the wait of a job from one second later",
        "native/envs/environment.hpp",
        "start - job.submit",
        "std::max(start - job.submit - 1, i64{0})",
        after="row.terms[waited] += static_cast<double>(",
        tests="tests/envs/test_schedules.py",
    ),
    Mutant(
        "times with decimals are cut, not rounded",
        "hpcgym/workload/io/swf.py",
        "exact.quantize(Decimal(1), ROUND_HALF_UP)",
        'exact.quantize(Decimal(1), "ROUND_DOWN")',
        tests="tests/workload/test_swf.py",
    ),
    Mutant(
        "time limits of Slurm are seconds, not minutes",
        "hpcgym/units.py",
        '"90", alone_s=MINUTE_S, units=False',
        '"90", alone_s=1, units=False',
        tests="tests/workload/test_sacct.py",
    ),
    Mutant(
        "memory for each core is memory for each node",
        "hpcgym/workload/io/sacct_fields.py",
        'of_a_core = (per == "c")',
        'of_a_core = (per == "n")',
        tests="tests/workload/test_sacct.py",
    ),
    Mutant(
        "who starts as another ends is busy beside it",
        "hpcgym/workload/amounts.py",
        "2 * end,",
        "2 * end + 2,",
        tests="tests/workload/test_amounts.py",
    ),
    Mutant(
        "a job whose run time is cut does not count as killed",
        "hpcgym/workload/cleaning.py",
        "workload.killed | over",
        "workload.killed & over",
        tests="tests/workload/test_cleaning.py",
    ),
    Mutant(
        "who ends as an extract begins runs in it",
        "hpcgym/workload/extracts.py",
        "(began + run > begin)",
        "(began + run >= begin)",
        tests="tests/engine/test_rules_in_places.py",
    ),
    Mutant(
        "a job on as many nodes as MaxNodes is refused",
        "hpcgym/workload/partitions.py",
        "cluster, partition) > partition.max_nodes",
        "cluster, partition) >= partition.max_nodes",
        tests="tests/workload/test_needs.py",
    ),
    Mutant(
        "a job of just one hour is of the shorter class",
        "hpcgym/schedule/metrics.py",
        "(run >= low) & (run < high)",
        "(run > low) & (run <= high)",
        tests="tests/schedule/test_metrics.py",
    ),
    Mutant(
        "weeks count from second 0 of the log's clock",
        "hpcgym/schedule/measures.py",
        "since = result.workload.since_first_submit if",
        "since = result.workload.submit_time if",
        tests="tests/schedule/test_group_metrics.py",
    ),
    Mutant(
        "where the future is hidden, energy is counted from second 0 of the log",
        "native/envs/environment.hpp",
        "step.last_time = step.begin",
        "step.last_time = 0",
        tests="tests/envs/test_snapshots.py",
    ),
    Mutant(
        "the test part begins with a job of the training part",
        "hpcgym/envs/core/episodes.py",
        'cut if self.part == "test" else 0',
        'cut - 1 if self.part == "test" else 0',
        tests="tests/envs/test_episodes.py",
    ),
    Mutant(
        "the last window of a part is never drawn",
        "hpcgym/envs/core/episodes.py",
        "self._stop - self.jobs + 1))",
        "self._stop - self.jobs))",
        tests="tests/envs/test_episodes.py",
    ),
    Mutant(
        "many environments truncate an episode one step late",
        "hpcgym/envs/vector.py",
        "self._steps >= most",
        "self._steps > most",
        tests="tests/envs/test_vector.py",
    ),
    Mutant(
        "results that were damaged on disk count",
        "hpcgym/study/sweep/records.py",
        "seal == _seal(name, text)",
        "seal",
        tests="tests/study/sweep/test_sweep_folder.py",
    ),
    Mutant(
        "a task that fails is tried once less",
        "hpcgym/study/sweep/tasks.py",
        "task.attempts <= self.how.retries",
        "task.attempts < self.how.retries",
        tests="tests/study/sweep/test_tasks.py",
    ),
    Mutant(
        "a task that is named twice is done twice",
        "hpcgym/study/sweep/tasks.py",
        "self.left.remove(name)",
        "pass",
        tests="tests/study/sweep/test_tasks.py",
    ),
    Mutant(
        "one processor too many is proved to be there",
        "hpcgym/validation/schedules.py",
        "line.used > processors,",
        "line.used > processors + 1,",
        tests="tests/validation/test_forged_schedules.py",
    ),
    Mutant(
        "one core too many is proved to be on a node",
        "hpcgym/validation/passes.py",
        "used[:, r] > has",
        "used[:, r] > has + 1",
        tests="tests/validation/test_forged_schedules.py",
    ),
    Mutant(
        "a start one second after the promise is proved",
        "hpcgym/validation/passes.py",
        "result.start > result.reserved_start",
        "result.start > result.reserved_start + 1",
        tests="tests/validation/test_forged_schedules.py",
    ),
    Mutant(
        "of the ways to give signs those that are as far do not count",
        "hpcgym/study/intervals.py",
        "np.abs(signs @ differences) >= sums",
        "np.abs(signs @ differences) > sums * (1 + 1e-9)",
        tests="tests/study/evaluation/test_intervals.py",
    ),
    Mutant(
        "a submission may tell a metric too small",
        "hpcgym/study/suite/proofs.py",
        "abs(here - there) <=",
        "there - here <=",
        tests="tests/study/suite/test_suite_submissions.py",
    ),
    Mutant(
        "an agent may pick who would delay the head",
        "native/strategies/easy.hpp",
        "is_within(e, b)",
        "e.width <= b.room && e.job != s.head",
        after="for (const Entry& e : block)\n        if (",
        tests="tests/envs/test_following_rules.py::test_the_head_starts_when_easy_promised",
    ),
    Mutant(
        "a job may be put off once more than allowed",
        "native/strategies/easy.hpp",
        "s.of(j).put_off >= r.put_offs",
        "s.of(j).put_off > r.put_offs",
        tests="tests/envs/test_following_rules.py::test_who_is_put_off_waits_for_the_delay",
    ),
    Mutant(
        "an episode in which nothing was asked is rewarded",
        "native/envs/environment.hpp",
        "p.unasked == 0",
        "true",
        tests="tests/envs/test_following_rules.py::test_an_episode_without_a_question_takes_one_step",
    ),
    Mutant(
        "of the jobs that came since the last pass the first is not backfilled",
        "native/strategies/easy.hpp",
        "s.next - arrived",
        "s.next - arrived + 1",
        after="std::exchange(s.arrived, 0);\n    first_new_ = ",
    ),
    Mutant(
        "ends of a user do not change what is predicted of the job that came last",
        "native/answers/waiting_of_users.hpp",
        "known_to_ < s.next",
        "known_to_ < s.next - 1",
        after="for (; ",
    ),
    Mutant(
        "a score may exceed its bound",
        "native/answers/ceilings.hpp",
        "std::max(top_[i].most, last)",
        "std::max(top_[i].least, last)",
        tests="tests/engine/test_scores_put_off.py",
    ),
    Mutant(
        "a job whose run time is seen anew keeps its bound",
        "native/answers/contenders.hpp",
        "rows.renewed()",
        "rows.came()",
        after="unbounded = holds ? ",
        tests="tests/engine/test_scores_put_off.py",
    ),
    Mutant(
        "nodes that a job fills are not free after it",
        "native/machines/nodes/ends.hpp",
        "of_kind.units(word, there)",
        "i64{0}",
    ),
    Mutant(
        "only who has ended by now leaves nodes",
        "native/machines/nodes/table.hpp",
        "ends_.unfilled_by(m, stop)",
        "ends_.unfilled_by(m, now_)",
    ),
    Mutant(
        "all futures have the run times of the first",
        "native/places/futures.hpp",
        "index(m * of_.n_own + j)",
        "index(j)",
        after="jobs_[index(j)].run = of_.run_times[",
        tests="tests/forecasting/test_futures.py",
    ),
)


def mutated(mutant: Mutant, text: str, new: str) -> str:
    """Return the text of its file with the edit."""
    start = text.index(mutant.after) + len(mutant.after)
    where = text[start : start + CLOSE] if mutant.after else text
    times = where.count(mutant.old)
    if not times or (times > 1 and not mutant.after):
        sys.exit(f"mutants: {mutant.file}: {mutant.old!r} stands there {times} times, not once")
    return text[:start] + text[start:].replace(mutant.old, new, 1)


def first_failure(run: subprocess.CompletedProcess[str]) -> str:
    """Return the test that noticed, "" if none did."""
    failed = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
    if failed or run.returncode == 0:
        return failed[1] if failed else ""
    return "it stops" if run.returncode < 0 else sys.exit(run.stdout + run.stderr)


def run_pytest(words: list[str], instead: str, n: int = 0) -> str:
    """Run tests that are not slow; return the one that failed.

    ``instead``: MODULE=FILE, as sitecustomize takes it; ``n``: the mutant of the engine that lives.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", *words]
    given = os.environ | {"PYTHONPATH": str(ROOT / "scripts/instead"), "HPCGYM_INSTEAD": instead}
    given["HPCGYM_MUTANT"] = str(n)
    return first_failure(
        subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    )


def copy_sources(folder: Path) -> None:
    """Copy the engine's sources with all mutants; what has not changed keeps its time."""
    for path in (ROOT / "native").rglob("*.*"):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in (".txt", ".hpp", ".cpp"):
            continue
        text = path.read_text(encoding="utf-8")
        for n, mutant in enumerate(MUTANTS, 1):
            if mutant.file == name:
                text = mutated(mutant, text, f"(mutant == {n} ? ({mutant.new}) : ({mutant.old}))")
        if name == "native/base/numbers.hpp":  # which all others read
            alive = 'std::getenv("HPCGYM_MUTANT")'
            text += f"#include <cstdlib>\ninline const int mutant = {alive} ? atoi({alive}) : 0;\n"
        copy = folder / name
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")


def built_with_mutants() -> Path:
    """Build the engine with all mutants, which takes a minute; return the module."""
    folder = ROOT / "build/mutants"
    copy_sources(folder)
    # fast to build, and with its assertions
    settings = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"]
    nanobind = subprocess.check_output([sys.executable, "-m", "nanobind", "--cmake_dir"], text=True)
    settings += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.strip()}"]
    for words in (
        ["-S", str(folder / "native"), "-B", str(folder / "engine"), *settings],
        ["--build", str(folder / "engine"), "--target", "_engine"],
    ):
        run = subprocess.run(["cmake", *words], capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(run.stdout + run.stderr)
    return next((folder / "engine").glob("_engine.*"))


def module_with(n: int, mutant: Mutant) -> str:
    """Write a module of hpcgym with a mutant; return what sitecustomize takes: MODULE=FILE."""
    path = ROOT / f"build/mutants/{n}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        mutated(mutant, (ROOT / mutant.file).read_text(encoding="utf-8"), mutant.new), "utf-8"
    )
    return f"{mutant.file.removesuffix('.py').replace('/', '.')}={path}"


def who_notices(n: int, others: list[str]) -> str:
    """Let a mutant live, and run tests; return the one that failed."""
    mutant = MUTANTS[n - 1]
    of_python = mutant.file.endswith(".py")
    instead = module_with(n, mutant) if of_python else f"hpcgym._engine={built_with_mutants()}"
    return run_pytest(others or mutant.tests.split(), instead, n)


def check_unbroken(numbers: Sequence[int], others: list[str]) -> None:
    """Exit if a test fails where there is no mutant: that would say nothing of those."""
    tests = others or sorted({name for n in numbers for name in MUTANTS[n - 1].tests.split()})
    engine = f"hpcgym._engine={built_with_mutants()}"
    failed = run_pytest(tests, engine)
    if failed:
        sys.exit(f"mutants: {failed} fails without any")


def main() -> None:
    """Try each mutant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=int, action="append", metavar="N", help="the N-th alone")
    given, others = parser.parse_known_args()
    numbers = given.only or range(1, len(MUTANTS) + 1)
    alive = 0
    check_unbroken(numbers, others)
    for n in numbers:
        mutant, begun = MUTANTS[n - 1], time.monotonic()
        killer = who_notices(n, others)
        alive += not killer
        seconds = f"{time.monotonic() - begun:.0f} s"
        print(f"{n:2} {mutant.what}: {killer or 'NOBODY NOTICES'} ({seconds})", flush=True)
    if alive:
        sys.exit(f"mutants: {alive} of {len(numbers)} live")


if __name__ == "__main__":
    main()
