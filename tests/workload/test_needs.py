"""What jobs need, whether it fits, and how long their queues are expected to wait."""

import numpy as np
import pytest

from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.workload import Workload, check_fits, expected_waits, fitting, needs_of
from hpcgym.workload.needs import units_held

RESOURCES = ("core", "mem", "gpu")
CAPACITY = np.array([[4, 1000, 0]] * 3 + [[8, 4000, 2]])


def make(units=None, per_unit=None, header=None, **columns):
    n = len(next(iter(columns.values()), units))
    columns = {"submit_time": np.arange(n), "job_number": np.arange(n) + 10, **columns}
    return Workload.from_columns(
        columns, processors=20, name="log", units=units, per_unit=per_unit, header=header
    )


def test_jobs_with_units():
    demands = {"gpu": [1, 0], "core": [2, 3]}
    workload = make(units=[3, 1], per_unit=demands)
    assert needs_of(workload, RESOURCES).tolist() == [[3, 2, 0, 1], [1, 3, 0, 0]]
    assert needs_of(workload, ("core", "gpu")).tolist() == [[3, 2, 1], [1, 3, 0]]


def test_processors_are_units_of_one_core():
    workload = make(requested_processors=[3, 1, 2], requested_memory=[1000, -1, 1001])
    assert needs_of(workload, RESOURCES).tolist() == [[3, 1, 1, 0], [1, 1, 0, 0], [2, 1, 2, 0]]
    assert needs_of(workload, ("core",)).tolist() == [[3, 1], [1, 1], [2, 1]]
    with pytest.raises(WorkloadError, match=r"log: job 11 asks for no processors"):
        needs_of(make(requested_processors=[1, 0]), RESOURCES)


def test_a_resource_that_the_machine_lacks():
    workload = make(units=[1, 1, 1], per_unit={"mic": [0, 0, 2]})
    problem = r"log: job 12 asks for 2 'mic' a unit, which the machine lacks; it has core"
    with pytest.raises(WorkloadError, match=problem):
        needs_of(workload, RESOURCES)
    assert needs_of(workload.take(slice(0, 2)), RESOURCES).tolist() == [[1, 1, 0, 0]] * 2


def test_a_machine_without_memory_does_not_count_it():
    """As one of Slurm with CR_Core; its jobs have memory in dumps all the same."""
    workload = make(units=[1, 2, 1], per_unit={"mem": [500, 0, 700]})
    assert needs_of(workload, ("core",)).tolist() == [[1, 1], [2, 1], [1, 1]]
    kept = fitting(workload, ("core",), np.full((2, 1), 4))
    assert len(kept) == 3
    assert needs_of(workload, ("core", "mem"))[:, 2].tolist() == [500, 0, 700]


def test_units_that_the_empty_machine_holds():
    needs = np.array([[1, 1, 0, 0], [1, 3, 0, 0], [1, 1, 600, 0], [1, 1, 0, 1], [1, 9, 0, 0]])
    assert units_held(needs, CAPACITY).tolist() == [20, 3 + 2, 3 + 6, 2, 0]


def test_units_are_not_spread_over_nodes():
    workload = make(units=[5, 6, 1], per_unit={"core": [3, 3, 8]})
    needs = needs_of(workload, RESOURCES)
    check_fits(workload.take([0, 2]), needs[[0, 2]], CAPACITY)
    with pytest.raises(WorkloadError) as caught:
        check_fits(workload, needs, CAPACITY, RESOURCES)
    text = str(caught.value)
    assert "log: job 11 asks for 6 units of 3 core; the empty machine holds 5" in text
    assert "The same holds for" not in text  # the others
    assert "fitting(" in text


def test_fitting_drops_and_counts():
    workload = make(units=[5, 6, 1, 1], per_unit={"core": [3, 3, 8, 1], "mic": [0, 0, 0, 1]})
    kept = fitting(workload, RESOURCES, CAPACITY)
    assert kept.job_number.tolist() == [10, 12]
    assert kept.cleaning == {"dropped: fits no empty machine": 2}
    check_fits(kept, needs_of(kept, RESOURCES), CAPACITY)
    assert fitting(kept, RESOURCES, CAPACITY).cleaning == kept.cleaning
    with pytest.raises(WorkloadError, match="log: no job fits on the empty machine"):
        fitting(workload.take([1]), RESOURCES, CAPACITY)


def test_expected_waits_by_the_names_of_queues():
    header = {"Queue": ["1 Debug", " 2  parallel jobs of 6 h ", "3 long", "none", "4"]}
    workload = make(queue=[1, 2, 3, 4, -1], header=header)
    queues = {"debug": 60, "parallel": 7200, "other": 600}
    strange = (
        "queues that the machine does not have, 'long', 4: .* is expected of them, 7200 s; JSON"
    )
    with pytest.warns(WorkloadWarning, match=strange):
        waits = expected_waits(workload, queues)
    assert waits.tolist() == [60, 7200, 7200, 7200, 7200]
    strange = (
        r"does not have, 'Debug', 4: the longest wait of its own \(parallel jobs of 6 h, LONG\)"
    )
    with pytest.warns(WorkloadWarning, match=strange):
        waits = expected_waits(workload, {"parallel jobs of 6 h": 5, "LONG": 1})
    assert waits.tolist() == [5, 5, 1, 5, 5]


@pytest.mark.filterwarnings("error")
def test_nothing_is_strange_of_queues_that_are_known_or_not_told():
    workload = make(queue=[1, -1], header={"Queue": ["1 debug"]})
    assert expected_waits(workload, {"debug": 60, "long": 600}).tolist() == [60, 600]
    assert expected_waits(workload, {}).tolist() == [1.0] * 2


def test_a_resource_that_is_called_otherwise():
    workload = make(units=[1], per_unit={"gpus": [2]})
    with pytest.raises(WorkloadError, match=r"has core, mem, gpu, of which 'gpu' may be meant$"):
        needs_of(workload, RESOURCES)
    with pytest.raises(WorkloadError, match=r"has core, GPUs, of which 'GPUs' may be meant$"):
        needs_of(workload, ("core", "GPUs"))
    with pytest.raises(WorkloadError, match=r"it has core, mic$"):
        needs_of(workload, ("core", "mic"))


def test_a_job_without_a_number_is_named_by_its_row():
    workload = make(requested_processors=[1, 0], job_number=[-1, -1])
    with pytest.raises(WorkloadError, match="log: the job of row 1 asks for no processors"):
        needs_of(workload, RESOURCES)
