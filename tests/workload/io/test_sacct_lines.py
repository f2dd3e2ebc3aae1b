"""Lines of dumps of sacct with any separator, also where names hold it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistakes import mistakes_of

from hpcgym import load_workload
from hpcgym.workload import Workload
from hpcgym.workload.io.swf_header import names_of

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning")

HEAD = ["JobID", "JobName", "User", "State", "Submit", "Start", "ElapsedRaw", "Comment", "ReqMem",
        "AllocCPUS", "AllocTRES"]  # fmt: skip
JOB = ["7", "run.sh", "ann", "CANCELLED by 12", "2024-03-01T12:00:00", "2024-03-01T12:00:10", "50",
       "none", "4G", "4", "cpu=4,mem=4G,node=1"]  # fmt: skip
IN_FIELD = "repaired: separator in a name or a list, told by the fields beside it"


def read(folder: Path, text: str, **options: object) -> Workload:
    path = folder / "jobs.txt"
    path.write_text(text)
    return load_workload(path, "none", **options)  # type: ignore[arg-type]


def changed(**values: str) -> list[str]:
    return [values.get(name, text) for name, text in zip(HEAD, JOB, strict=True)]


def check_job(workload: Workload) -> None:
    """All that JOB tells."""
    assert workload.job_number.tolist() == [7]
    assert workload.wait_time.tolist() == [10]
    assert workload.run_time.tolist() == [50]
    assert workload.requested_processors.tolist() == [4]
    assert workload.requested_memory.tolist() == [1_024_000]
    assert workload.status.tolist() == [5]
    assert names_of(workload, "user_id") == {1: "ann"}


@pytest.mark.parametrize(
    "separator", ["^|^", "||", "@@", "~", "\x1f", "::::", "|;|", "%", "\t|", r"\t", "<SEP>"]
)
def test_separators_of_any_length(tmp_path: Path, separator: str) -> None:
    for closed in ("", separator):  # as by --parsable2 and --parsable
        lines = [separator.join(fields) + closed for fields in (HEAD, JOB)]
        workload = read(tmp_path, "\n".join(lines) + "\n")
        check_job(workload)
        assert workload.cleaning == {}


#: As sites dump all fields: bars and line breaks lie in those between which others tell the bounds.
ALL = ("JobID", "User", "State", "Submit", "Start", "ElapsedRaw", "SubmitLine", "Suspended",
       "Constraints", "SystemCPU", "AllocCPUS", "UserCPU", "WorkDir")  # fmt: skip


@pytest.mark.parametrize(
    ("submitted", "constraints", "more"),
    [
        ("sbatch --wrap=env | grep PATH", "", 0),
        ("sbatch -C a|b run.sh", "a|b", 0),
        ("sbatch --wrap=cd /scratch\n./first\n./second", "", 2),
        ("sbatch --wrap=a | b\n\nc | d", "x|y", 1),
    ],
)
def test_bars_and_line_breaks_in_all_fields(
    tmp_path: Path, submitted: str, constraints: str, more: int
) -> None:
    """Records of which one is broken, each with its own processors."""
    times = ("2024-03-01T12:00:00", "2024-03-01T12:00:10", "50")
    rows = [
        (str(n), "ann", "COMPLETED", *times, line, "00:00:00", of, "00:00.006", str(n), "00:01",
         "/home/ann")
        for n, line, of in ((1, "sbatch", ""), (2, submitted, constraints), (3, "srun a", ""))
    ]  # fmt: skip
    workload = read(tmp_path, "\n".join(map("|".join, [ALL, *rows])) + "\n")
    assert workload.job_number.tolist() == workload.requested_processors.tolist() == [1, 2, 3]
    assert workload.run_time.tolist() == [50] * 3
    broken = "repaired: line with which a record goes on after a line break in a field"
    assert workload.cleaning.get(broken, 0) == more


def test_line_breaks_in_the_last_field(tmp_path: Path) -> None:
    """Where the command stands last, as the page advises."""
    names = [*HEAD, "SubmitLine"]
    lines = [names, [*JOB, "sbatch --wrap=echo a\necho b\n./c"], [*changed(JobID="8"), "sbatch"]]
    workload = read(tmp_path, "\n".join(map("|".join, lines)) + "\n")
    assert workload.job_number.tolist() == [7, 8]
    broken = "repaired: line with which a record goes on after a line break in a field"
    assert workload.cleaning[broken] == 2


def test_what_was_cut_is_joined_to_no_other_record(tmp_path: Path) -> None:
    cut = "|".join(JOB[:5])
    text = "\n".join(["|".join(HEAD), cut, "|".join(JOB), cut]) + "\n"
    workload = read(tmp_path, text, errors="skip")
    check_job(workload)
    assert workload.cleaning["dropped: line with too few fields"] == 2


@given(
    name=st.text("ab| ", max_size=9),
    comment=st.text("7:|=", max_size=9),
)
def test_names_may_hold_the_separator(
    tmp_path_factory: pytest.TempPathFactory, name: str, comment: str
) -> None:
    lines = ["|".join(HEAD), "|".join(changed(JobName=name, Comment=comment))]
    workload = read(tmp_path_factory.mktemp("dump"), "\n".join(lines))
    check_job(workload)
    assert workload.cleaning == ({IN_FIELD: 1} if "|" in name + comment else {})


def test_lists_may_hold_the_separator(tmp_path: Path) -> None:
    workload = read(tmp_path, f"{','.join(HEAD)}\n{','.join(JOB)}\n")
    check_job(workload)
    assert workload.cleaning == {IN_FIELD: 1}


def test_constraints_with_unclear_bounds_are_those_of_the_command(tmp_path: Path) -> None:
    """Where they end is not told: what stands beside them may hold the separator, too."""
    head = "|".join(["Container", "Constraints", *HEAD, "SubmitLine"])
    line = "|".join(["", "a", "b", *JOB, "sbatch -C a|b run.sh"])
    workload = read(tmp_path, f"{head}\n{line}\n")
    check_job(workload)
    assert names_of(workload, "constraint") == {1: "a|b"}
    assert workload.cleaning[IN_FIELD] == 1
    line = "|".join(["", "a", *JOB, "sbatch -C b|c run.sh"])
    assert names_of(read(tmp_path, f"{head}\n{line}\n"), "constraint") == {1: "a"}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL])
def test_tables_with_quotes(tmp_path: Path, separator: str, quoting: int) -> None:
    """As a program writes them that has read a dump, with numbers of rows before."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")  # type: ignore[arg-type]
    writer.writerow(["", *HEAD])
    writer.writerow(["0", *changed(JobName=f'a{separator}"b"', Comment=separator)])
    workload = read(tmp_path, text.getvalue(), format="sacct")
    check_job(workload)
    assert workload.cleaning == {}


def test_where_a_field_begins_may_be_unclear(tmp_path: Path) -> None:
    """Nobody can tell which of the texts between two names is the user's."""
    beside = [*HEAD[:2], "WorkDir", *HEAD[2:]]
    workload = read(tmp_path, "|".join(beside) + "\n" + "|".join(["7", "a", "b|c", *JOB[2:]]))
    check_job(workload)


@pytest.mark.parametrize("separator", ["|", "^|^", "\t", ","])
def test_dumps_without_names_of_fields(tmp_path: Path, separator: str) -> None:
    lines = [separator.join(JOB), separator.join(changed(JobID="7.batch"))]
    for closed in ("", separator):
        text = "".join(line + closed + "\n" for line in lines)
        workload = read(tmp_path, text, fields=",".join(HEAD).replace("JobName", "JobName%30"))
        check_job(workload)
        assert workload.cleaning["dropped: step of a job"] == 1
    check_job(read(tmp_path, text, fields=HEAD))


def test_messages_and_fields_that_stand_there_twice(tmp_path: Path) -> None:
    lines = [[*HEAD, "JobID"], [*JOB, "7"]]
    dump = "\n".join(map("|".join, lines)) + "\n"
    workload = read(tmp_path, f"sacct: error: no connection: Retrying\n{dump}sacct: error: again\n")
    check_job(workload)
    assert workload.cleaning == {"dropped: message of sacct": 2}


def with_command(**values: str) -> str:
    """Return a dump of a job whose command, the last field, holds bars."""
    head = [*(name for name in HEAD if name not in {"JobName", "Comment"}), "SubmitLine"]
    job = dict(zip(HEAD, JOB, strict=True)) | {"SubmitLine": "sbatch a | tee b | c"} | values
    return "|".join(head) + "\n" + "|".join(job[name] for name in head) + "\n"


def test_a_command_with_bars_hides_no_wrong_field(tmp_path: Path) -> None:
    """The row of a wrong date tells that, not the bars in the command, which is the last field."""
    check_job(read(tmp_path, with_command()))


test_mistakes = mistakes_of(globals())
