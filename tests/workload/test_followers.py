"""Jobs that follow several others: in dumps, in files, and whatever is done with them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of

from hpcgym import load_workload
from hpcgym.errors import WorkloadError
from hpcgym.workload.followers import followed
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.filterwarnings("ignore:.*jobs? follows? others")

N = 8


def jobs_of(numbers: list[int], others: list[list[int]]) -> Workload:
    """Return jobs with those numbers, of which each follows others."""
    pairs = [(a, b) for a, some in zip(numbers, others, strict=True) for b in some[1:]]
    return few_jobs(
        4,
        list(range(len(numbers))),
        [5] * len(numbers),
        [1] * len(numbers),
        [9] * len(numbers),
        job_number=numbers,
        preceding_job=[some[0] if some else -1 for some in others],
        more_preceding=pairs,
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    """Return numbers of jobs, and whom each follows: those that are there, and others."""
    numbers = draw(st.permutations(range(1, N + 1)))
    others = st.lists(st.integers(1, N + 3), max_size=4, unique=True)
    return numbers, draw(st.lists(others, min_size=N, max_size=N))


def whom_each_follows(workload: Workload) -> dict[int, set[int]]:
    """Return whom each job of a workload follows, by number, of those that are there."""
    following = followed(workload)
    whom = {number: set[int]() for number in workload.job_number.tolist()}
    for job, other in zip(following.job.tolist(), following.other.tolist(), strict=True):
        whom[int(workload.job_number[job])].add(int(workload.job_number[other]))
    return whom


def there(numbers: list[int], others: list[list[int]]) -> dict[int, set[int]]:
    return {job: {*some} & {*numbers} for job, some in zip(numbers, others, strict=True)}


@given(graphs(), st.lists(st.booleans(), min_size=N, max_size=N), st.permutations(range(N)))
def test_they_stay(
    graph: tuple[list[int], list[list[int]]], kept: list[bool], order: list[int]
) -> None:
    numbers, others = graph
    workload = jobs_of(numbers, others)
    assert whom_each_follows(workload) == there(numbers, others)
    missing = [not {*some} <= {*numbers} for some in others]
    assert followed(workload).missing.tolist() == missing
    for same in (
        workload.take(np.array(order)),
        workload.with_columns(user_id=[1] * N, submit_time=order),
        pickle.loads(pickle.dumps(workload)),
        workload.take(slice(None)),
    ):
        assert whom_each_follows(same) == there(numbers, others)
    part = workload.take(np.array(kept))
    left = [place for place in range(N) if kept[place]]
    assert whom_each_follows(part) == there([numbers[k] for k in left], [others[k] for k in left])


def test_runs_of_one_job_all_follow_the_last_run_of_another() -> None:
    workload = jobs_of([1, 2, 2, 1], [[], [1, 3], [1, 3], []])
    following = followed(workload)
    assert following.job.tolist() == [1, 2]
    assert following.other.tolist() == [3, 3]
    assert following.missing.tolist() == [False, True, True, False]


def test_a_blank_text_is_no_job() -> None:
    table = {"job_number": [7, 8, 9], "submit_time": [0, 1, 2], "run_time": [1, 1, 1]}
    for texts, expected in (
        (["", " ", ""], {}),
        (["", "7", "8"], {8: {7}, 9: {8}}),
        (["", "7", "7 8"], {8: {7}, 9: {7, 8}}),
    ):
        frame = pd.DataFrame({**table, "requested_processors": 1, "preceding_job": texts})
        whom = whom_each_follows(load_workload(frame, processors=1))
        assert {job: others for job, others in whom.items() if others} == expected


HEAD = "JobID|JobIDRaw|User|JobName|State|Submit|Start|End|AllocCPUS|Dependency"

COMPLETED = ("12|12|ann|fit|COMPLETED", "")
FAILED = ("13|13|ann|fit|FAILED", "")
ARRAY = tuple((f"20_{task}|{raw}|ann|a|COMPLETED", "") for task, raw in ((1, 21), (2, 22), (3, 20)))

_BROKEN = "repaired: Dependency that the other's end did not meet taken for afterany"
_ANY = "not used: Dependency on any one of several jobs"
_OTHER = "not used: Dependency that is no list such as afterok:12:13,afterany:14"
_START = "not used: Dependency after, which is on the start of a job"
_ITSELF = "not used: Dependency of a job on itself"
_DELAY = "not used: delay of a Dependency on an end, such as afterany:12+5"
_SINGLETON = "not used: Dependency singleton, on all earlier jobs of a user and name"
_TASK = "not used: Dependency on a task of an array that is not there"


def read(folder: Path, *jobs: tuple[str, str], head: str = HEAD) -> Workload:
    """Return jobs that were submitted a minute after each other, and ran at once for 10 s."""
    lines = [head]
    for minute, (job_fields, dependency) in enumerate(jobs):
        times = [f"2024-03-01T12:{minute:02}:{second}" for second in ("00", "00", "10")]
        lines.append("|".join([job_fields, *times, "4", dependency]))
    path = folder / "jobs.txt"
    path.write_text("\n".join(lines) + "\n")
    return load_workload(path, "none", processors=8)


def others_of(workload: Workload, number: int) -> set[int]:
    """Return the numbers of the jobs that a job follows, also of those that are not there."""
    rows = zip(workload.job_number.tolist(), workload.preceding_job.tolist(), strict=True)
    others = {other for job, other in rows if job == number and other > 0}
    more = [] if workload.more_preceding is None else workload.more_preceding.tolist()
    return others | {other for job, other in more if job == number}


@pytest.mark.parametrize(
    ("text", "others", "reasons"),
    [
        ("", (), ()),
        ("(null)", (), ()),
        ("afterok:12", (12,), ()),
        ("afterok:12(unfulfilled)", (12,), ()),
        ("12", (12,), ()),
        ("AfterOK:12", (12,), ()),
        ("afterany:12:13", (12, 13), ()),
        ("afterany:13,afterok:12,afterany:13", (12, 13), ()),
        ("afterok:12:13", (12, 13), (_BROKEN,)),
        ("afternotok:13", (13,), ()),
        ("afternotok:12", (12,), (_BROKEN,)),
        ("afterok:99", (99,), ()),  # whose end nobody knows
        ("afterany:12?afterany:13", (), (_ANY,)),
        ("after:12", (), (_START,)),
        ("after:12+5,afterany:13", (13,), (_START,)),
        ("expand:12", (), (_OTHER,)),
        ("afterok", (), (_OTHER,)),
        ("afterok:12:", (), (_OTHER,)),
        ("whatever,afterany:12", (12,), (_OTHER,)),
        ("afterok:20", (20, 21, 22), ()),
        ("afterok:20_*", (20, 21, 22), ()),
        ("afterok:20_2:12", (22, 12), ()),
        ("afterok:20_7", (), (_TASK,)),
        ("afterok:40", (), (_ITSELF,)),
        ("afterok:12:40", (12,), (_ITSELF,)),
        ("aftercorr:20", (20, 21, 22), ()),  # of a job that is no task itself
        ("singleton", (), (_SINGLETON,)),
        ("afterok:20_1,Singleton", (21,), (_SINGLETON,)),
        ("afterany:12+1:13", (12, 13), (_DELAY,)),
        ("afterok:20_1+5,afterany:13", (21, 13), (_DELAY,)),
        ("12+1", (12,), (_DELAY,)),
        ("afterany:12+", (), (_OTHER,)),
    ],
)
def test_what_a_job_follows(
    tmp_path: Path, text: str, others: tuple[int, ...], reasons: tuple[str, ...]
) -> None:
    last = ("40|40|ann|fit|COMPLETED", text)
    workload = read(tmp_path, COMPLETED, FAILED, *ARRAY, last)
    assert others_of(workload, 40) == {*others}
    assert workload.cleaning == dict.fromkeys(reasons, 1)


@pytest.mark.parametrize(
    ("line", "others"),
    [
        ("sbatch --dependency=afterok:12:13 -p gpu run.sh", (12, 13)),
        ("sbatch --dependency afterok:12,afterany:20_1 run.sh", (12, 21)),
        ("/usr/bin/sbatch -d afterok:12 run.sh", (12,)),
        ("sbatch -dafterany:12 run.sh", (12,)),
        ("sbatch --depend=afterany:20_* run.sh", (20, 21, 22)),
        ("sbatch --dependency='afterok:12?afterok:13' run.sh", ()),
        ("srun -d after:12+5 hostname", ()),
        ("sbatch -d afterok:12 -d afterok:13 run.sh", (13,)),  # the last holds
        ("sbatch --deadline=now+1hour run.sh -d 5", ()),
        ("sbatch run.sh --dep=none --wrap-d after", ()),
        ("", ()),
        ("sbatch --dependency=12 run.sh", (12,)),
        ("sbatch --dependency=AFTEROK:12:13 run.sh", (12, 13)),
        ("sbatch run.sh -d 12", ()),
        ("sbatch -d afterok:12 --wrap 'a | b'", (12,)),
    ],
)
@pytest.mark.parametrize("end", ["", "|"])  # of sacct -P, and of --parsable
def test_dependencies_of_commands(
    tmp_path: Path, line: str, others: tuple[int, ...], end: str
) -> None:
    rows = [(job_fields, f"sbatch a.sh{end}") for job_fields, _ in (COMPLETED, FAILED, *ARRAY)]
    last = ("40|40|ann|fit|COMPLETED", f"{line}{end}")
    workload = read(tmp_path, *rows, last, head=HEAD.replace("Dependency", "SubmitLine") + end)
    assert others_of(workload, 40) == {*others}
    assert others_of(workload, 13) == set()
    if "|" not in line + end:  # a column of dependencies holds before commands
        rows = [(job_fields, f"|{line}") for job_fields, _ in rows]
        last = ("40|40|ann|fit|COMPLETED", f"afterany:13|{line}")
        head = HEAD.replace("Dependency", "Dependency|SubmitLine")
        workload = read(tmp_path, *rows, last, head=head)
        assert others_of(workload, 40) == {13}


def test_tasks_follow_tasks(tmp_path: Path) -> None:
    tasks = [(f"30_{k}|{raw}|ann|b|COMPLETED", "aftercorr:20") for k, raw in ((1, 31), (3, 30))]
    workload = read(tmp_path, *ARRAY, *tasks)
    assert others_of(workload, 31) == {21}
    assert others_of(workload, 30) == {20}
    assert workload.more_preceding is None


def test_tasks_without_numbers_of_their_own_are_numbered_anew(tmp_path: Path) -> None:
    rows = [(job_fields.partition("|")[0], "") for job_fields, _ in ARRAY]
    rows += [rows[1], ("40", "afterok:20"), ("41", "afterany:20_3")]  # 20_2 ran twice
    head = "JobID|Submit|Start|End|AllocCPUS|Dependency"
    workload = read(tmp_path, *rows, head=head)
    assert workload.job_number.tolist() == [42, 43, 44, 43, 40, 41]
    assert workload.array.tolist() == [20, 20, 20, 20, -1, -1]
    assert others_of(workload, 40) == {42, 43, 44}
    assert others_of(workload, 41) == {44}
    reason = "repaired: task of an array numbered anew, for the dump has no JobIDRaw"
    assert workload.cleaning[reason] == 4


test_mistakes = mistakes_of(globals(), errors=WorkloadError)
