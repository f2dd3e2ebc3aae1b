"""Windows that are open to some jobs, as reservations of Slurm are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym.errors import HpcgymWarning
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.scheduler.restrictions import Window, read_windows
from hpcgym.workload.model import Workload

test_mistakes = mistakes_of(globals())

MACHINE = Cluster(groups=(NodeGroup("n[1-3]", 3, {"core": 4}),))
RULES = ("none", "easy", "conservative", "depth:2", "slurm:bf_interval=1")
SHOWN = """\
ReservationName=course StartTime=2024-03-01T10:00:00 EndTime=2024-03-01T12:00:00 Duration=02:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=all Flags=SPEC_NODES,WEEKLY
   TRES=cpu=8
   Users=ann,bob Groups=(null) Accounts=physics Licenses=(null) State=INACTIVE BurstBuffer=(null)

ReservationName=upgrade StartTime=2024-03-02T10:00:00 EndTime=2024-03-02T12:00:00 Duration=02:00:00
   Nodes=n[1-3] NodeCnt=3 CoreCnt=12 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)

ReservationName=some StartTime=2024-03-01T10:00:00 EndTime=2024-03-01T12:00:00 Duration=02:00:00
   Nodes=n3 NodeCnt=1 CoreCnt=2 Features=(null) PartitionName=all Flags=SPEC_NODES
     NodeName=n3 CoreIDs=0-1
   Users=ann Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)
"""


def jobs(**columns: Any) -> Workload:
    """Return five jobs of a node each: the third and the last are of bob, the others of ann."""
    run = [100, 40, 30, 30, 60]
    given = {"submit_time": [0, 0, 5, 5, 6], "run_time": run, "requested_time": run}
    given |= {"requested_processors": [4] * 5, "user_id": [1, 1, 2, 1, 2], "group_id": [7] * 5}
    made = Workload.from_columns(given | columns, processors=12)
    header = {"User": ["1 ann", "2 bob"], "Group": ["7 physics"], "Reservation": ["1 course"]}
    if "reservation" not in columns:
        del header["Reservation"]
    return replace(made, header=header)


def starts(workload: Workload, backfill: str, windows: str) -> list[int]:
    """Return the starts of jobs, which are proved, and as the reference makes them."""
    rules: dict[str, Any] = {"cluster": MACHINE, "backfill": backfill, "maintenance": windows}
    result = hpcgym.simulate(workload, **rules)
    assert "windows" in hpcgym.validate_schedule(result)
    again = hpcgym.simulate(workload, engine="reference", **rules)
    assert again.start.tolist() == result.start.tolist()
    return result.start.tolist()


@pytest.mark.filterwarnings("ignore:.*EASY's reservation")
@pytest.mark.parametrize("backfill", RULES)
def test_only_some_may_run_in_a_window(backfill: str) -> None:
    """Two of three nodes are bob's from 20 s to 90 s: ann's second job of 40 s waits for that."""
    begun = starts(jobs(), backfill, "20/90:nodes=0-1:users=bob")
    closed = starts(jobs(), backfill, "20/90:nodes=0-1")
    assert closed == [0, 90, 90, 100, 120]
    expected = {"none": closed, RULES[-1]: [0, 90, 5, 90, 100]}
    assert begun == expected.get(backfill, [0, 90, 5, 90, 6])


def test_windows_may_overlap_and_jobs_run_into_them() -> None:
    """Twice the same window is as one; one that ran before takes nothing from those that may."""
    window = "20/90:nodes=0-1:users=bob"
    assert starts(jobs(), "conservative", f"{window};{window}") == [0, 90, 5, 90, 6]
    wide = {"wait_time": [0, 99, 99, 99, 99], "requested_processors": [2, 4, 2, 4, 4]}
    part = jobs(**wide).extract(3)
    for backfill in RULES[1:]:
        result = hpcgym.simulate(
            part, cluster="1x1x4", backfill=backfill, maintenance="20/90:users=bob"
        )
        hpcgym.validate_schedule(result)
        assert result.start[result.workload.submit_time == 5][0] == 5


def test_who_asked_for_it_where_the_log_tells_that() -> None:
    """By account all may; but if the log tells who asked for the reservation, one does."""
    window = "20/90:nodes=0-1:accounts=physics:reservations=course"
    assert starts(jobs(), "conservative", window) == [0, 0, 5, 35, 40]
    asked = jobs(reservation=[-1, -1, -1, -1, 1])
    assert starts(asked, "conservative", window) == [0, 90, 90, 100, 6]
    # of other reservations nobody may be
    assert starts(asked, "easy", window.replace("course", "other"))[4] >= 90


def test_what_scontrol_printed(tmp_path: Path) -> None:
    path = tmp_path / "reservations.txt"
    path.write_text(SHOWN)
    with pytest.warns(HpcgymWarning) as caught:
        course, upgrade = read_windows(path)
    texts = " ".join(str(warning.message) for warning in caught)
    assert "reservations left out, which are no times of whole nodes: 1; some" in texts
    assert (
        "reservations that repeat, of which only the time that is shown counts: 1; course" in texts
    )
    assert (course.nodes, course.accounts, course.users) == ("n[1-2]", ("physics",), ("ann", "bob"))
    assert course.reservations == ("course",)
    assert str(upgrade) == "2024-03-02T10:00:00/2024-03-02T12:00:00:nodes=n[1-3]"
    assert Window.parse(str(course)) == course
    one_line = SHOWN.replace("\n   ", " ").replace("\n\n", "\n")
    path.write_text(one_line)  # of scontrol -o
    with pytest.warns(HpcgymWarning):
        assert read_windows(path) == (course, upgrade)


@pytest.mark.parametrize(
    ("who", "may"),
    [
        ({"accounts": ("physics",)}, [True] * 5),
        ({"users": ("bob",)}, [False, False, True, False, True]),
        ({"accounts": ("physics",), "users": ("bob",)}, [False, False, True, False, True]),
        ({"accounts": ("other",), "users": ("bob",)}, [False] * 5),
        ({"reservations": ("course",)}, [False] * 5),
    ],
)
def test_a_job_is_of_the_accounts_and_of_the_users(who: dict[str, Any], may: list[bool]) -> None:
    window = Window("20", "90", nodes="0-1", **who)
    assert window.may_use(jobs()).tolist() == may


@pytest.mark.parametrize(
    ("names", "who"),
    [
        ("Users=root", ()),
        ("Users=root,ann", ((), ("ann",), ("course",))),
        ("Users=root Accounts=physics", ()),
        ("Users=ann Accounts=physics", (("physics",), ("ann",), ("course",))),
    ],
)
def test_root_runs_no_jobs(tmp_path: Path, names: str, who: tuple[Any, ...]) -> None:
    line = SHOWN.splitlines()[0].replace("Duration=02:00:00", f"Nodes=n1 Flags=MAINT {names}")
    (tmp_path / "shown.txt").write_text(f"{line}\n")
    (window,) = read_windows(str(tmp_path / "shown.txt"))
    assert window.open_to == who


def test_nodes_that_the_machine_leaves_out_are_told(tmp_path: Path) -> None:
    """Of three printed nodes the machine has two, and of another reservation none."""
    path = tmp_path / "reservations.txt"
    begin, end = ("2024-03-01T00:00:20", "2024-03-01T00:01:30")
    line = f"ReservationName={{}} StartTime={begin} EndTime={end} Nodes={{}} Flags=MAINT Users=root"
    path.write_text(f"{line.format('a', 'n[1-2,8]')}\n{line.format('b', 'm7')}\n")
    workload = jobs()
    dated = replace(workload, header={**workload.header, "UnixStartTime": ["1709251200"]})
    for backfill in RULES[1:]:
        message = r"windows name 2 nodes that the machine does not have: m7, n8"
        with pytest.warns(HpcgymWarning, match=message):
            begun = starts(dated, backfill, str(path))
        assert begun == starts(jobs(), backfill, "20/90:nodes=0-1")
    with pytest.raises(hpcgym.HpcgymError, match="'m7' is neither"):  # unless it was printed
        starts(dated, "easy", "20/90:nodes=n1,m7")


def test_no_reservations_are_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "none.txt"
    path.write_text("No reservations in the system\n")
    assert read_windows(path) == ()
    result = hpcgym.simulate(jobs(), cluster=MACHINE, maintenance=path)
    assert result.start.tolist() == hpcgym.simulate(jobs(), cluster=MACHINE).start.tolist()


def test_a_window_that_is_open_to_nobody_is_told() -> None:
    with pytest.warns(HpcgymWarning, match="open to: 20/90:nodes=0-1:accounts=pysics"):
        hpcgym.simulate(jobs(), cluster=MACHINE, maintenance="20/90:nodes=0-1:accounts=pysics")
