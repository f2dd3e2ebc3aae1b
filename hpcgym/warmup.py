"""Compile beforehand what a first use would have to wait for: each part does something tiny."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numba import get_num_threads

from hpcgym.agents.lookahead import Lookahead
from hpcgym.baselines.policies import Baseline
from hpcgym.cluster import NodeGroup, NodePower, failures_of, find_cluster
from hpcgym.cluster.pool import Cluster
from hpcgym.compilation import kept, notice
from hpcgym.engine.answers import nag
from hpcgym.engine.machines.pool import easy
from hpcgym.envs import any_version
from hpcgym.errors import check_choice
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.estimates import learned
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.simulation.continued import continued
from hpcgym.simulation.run import simulate
from hpcgym.speedups import generate_speedups
from hpcgym.workload import load_workload, write_swf
from hpcgym.workload.model import Workload

_PROCESSORS = 8
_SINGLE = "lublin:jobs=40,processors=8,seed=1,load=2"
_POWER = NodePower(60.0, 150.0, 5.0, shutdown_time_s=5, boot_time_s=30)


def warmup(
    parts: Iterable[str] | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> dict[str, float]:
    """Compile parts of hpcgym, so that no later process has to.

    Parameters
    ----------
    parts : names of :data:`PARTS`; by default all.
    progress : called with the name of each part and None before it is compiled, and with its
        seconds after.

    Returns
    -------
    seconds : by part, how long compiling took [s]; 0.0 where it had been done before.

    Raises
    ------
    HpcgymError : a name that there is not.

    Examples
    --------
    >>> from hpcgym.warmup import warmup
    >>> list(warmup(["simulator"]))
    ['simulator']
    """
    names = list(dict.fromkeys(check_parts(PARTS if parts is None else parts)))
    seconds: dict[str, float] = {}
    with notice.quietly(), any_version():
        for name in names:
            if progress is not None:
                progress(name, None)
            before = notice.spent_s()
            PARTS[name]()
            seconds[name] = notice.spent_s() - before
            if progress is not None:
                progress(name, seconds[name])
    return seconds


def kept_in() -> str | None:
    """Return the folder of compiled code; None where it is kept nowhere, or nothing is compiled."""
    return kept.folder_of(easy.run)


def check_parts(parts: Iterable[str]) -> list[str]:
    """Return names of parts.

    Raises
    ------
    HpcgymError : a name that there is not.
    """
    names = [parts] if isinstance(parts, str) else parts
    return [check_choice("part", name, PARTS) for name in names]


# --- Simulations ----------------------------------------------------------------------------------


def _jobs() -> Workload:
    """Return jobs that wait for each other."""
    return load_workload(_SINGLE)


def _nodes(power: NodePower | None = None) -> Cluster:
    """Return as many processors, as nodes of two cores and two units of memory each."""
    group = NodeGroup("node", _PROCESSORS // 2, {"core": 2, "mem": 2}, power)
    return Cluster(groups=(group,))


def _units() -> Workload:
    """Return jobs whose units are more than single cores."""
    jobs = _jobs()
    one = np.ones(len(jobs), np.int64)
    return replace(jobs, units=jobs.requested_processors, per_unit={"core": one, "mem": one})


def _extract(jobs: Workload, **rules: Any) -> None:
    """Simulate, and go on from the middle of it."""
    result = simulate(jobs, **rules)
    simulate(continued(result, _middle(jobs)), **rules)


def _middle(jobs: Workload) -> int:
    """Return a time when some jobs have been submitted, and others come."""
    return int(np.median(jobs.submit_time)) + 1


def _simulator() -> None:
    jobs = _jobs()
    for backfill in ("easy", "depth:2", "conservative"):
        _extract(jobs, backfill=backfill)
    _extract(jobs, estimate="ave2")
    simulate(jobs, hold=0.1)
    simulate(jobs, policy=_by_wait)
    simulate(jobs, cluster=Cluster(_PROCESSORS, shutdown_after_s=60))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.swf"
        write_swf(jobs, path)
        load_workload(path)


def _simulator_of_nodes() -> None:
    simulate(_jobs(), cluster=_nodes())  # single cores
    jobs = _units()
    for backfill in ("easy", "depth:2", "conservative"):
        _extract(jobs, backfill=backfill, cluster=_nodes(), allocation="random")
    simulate(jobs, _in_order, cluster=_nodes(), allocation="random")


def _failures() -> None:
    cluster = _nodes()
    failures = failures_of(cluster, 86_400, mtbf=20_000.0, repair=3600.0)
    simulate(_units(), cluster=cluster, failures=failures)


def _restricted() -> None:
    simulate(_jobs(), quota="user:jobs=9")
    simulate(_units(), quota="user:jobs=9", backfill="depth:2", cluster=_nodes())


def _preemption() -> None:
    simulate(_jobs(), preemption="queue:interactive>batch")
    simulate(_units(), preemption="queue:interactive>batch", backfill="depth:2", cluster=_nodes())


def _in_order(view: PassView) -> list[int]:
    """Start jobs by submission: a dispatcher that does all that a view can do."""
    order = np.arange(len(view.job))
    if view.fits().any():
        view.plan(order)
        view.placed(order[1:], view.free, after=order[:1])
    return view.in_order(order)


def _by_wait(view: PassView) -> Any:
    """Return the scores of a policy that is a function."""
    return view.wait


def _learning() -> None:
    jobs = _jobs()
    for estimate in ("e-loss", "data-driven"):  # compiled, and a predictor in Python
        rules: dict[str, Any] = {"estimate": estimate, "policy_estimate": estimate, "policy": "spf"}
        for backfill in ("easy", "depth:2", "conservative"):
            simulate(jobs, backfill=backfill, **rules)
    simulate(_units(), cluster=_nodes(), estimate="e-loss")
    part = simulate(jobs).as_workload().extract(_middle(jobs))
    simulate(part, estimate="e-loss", correction="predicted-again")
    _regression()


def _regression() -> None:
    """Learn as :class:`hpcgym.agents.runtime_regression.RuntimeRegression` does, without river."""
    x, phi, terms = np.ones(1), np.ones(3), np.ones((learned.N_ROWS, 3))  # by 1, x and its square
    loss, degree = np.zeros(1, learned.LOSS), 2
    loss["degree"], loss["eta"] = degree, 1.0
    nag.predict_from(x, phi, terms, degree)
    nag.learn_from(x, phi, terms, np.ones(2), loss[0], 1.0, 1.0, 1.0)


def _fair_share() -> None:
    for backfill in ("easy", "depth:2", "conservative"):
        rules = {"policy": "fairshare", "backfill": backfill}
        _extract(_jobs(), **rules)
        _extract(_units(), cluster=_nodes(), **rules)
    _steps("JobSelection", workload=_jobs(), backfill_order="fairshare")


def _expressions() -> None:
    rules: dict[str, Any] = {
        "policy": "wait ** 2",
        "backfill_order": "log(1 + wait) / requested",
    }
    for backfill in ("easy", "depth:2", "conservative"):
        _extract(_jobs(), backfill=backfill, **rules)
        _extract(_units(), cluster=_nodes(), backfill=backfill, **rules)
    for more in ({"policy_estimate": "ave2"}, {"backfill_order": "fairshare"}):
        simulate(_jobs(), **rules | more)
    env: Any = gymnasium.make("hpcgym/QueueOrdering-v0", workload=_jobs(), jobs=20)
    _, info = env.reset(seed=0)
    baseline = Baseline("wait ** 2")
    baseline.begin(env)
    baseline.act(None, info)


def _limits() -> None:
    cluster = _nodes(_POWER)
    cap = PowerCap.of(cluster, 0.9)
    budget = EnergyBudget.of(cluster, 0.9, 0, 86_400)
    for estimate in ("requested", "e-loss"):
        simulate(_jobs(), cluster=cluster, limits=[cap, budget], estimate=estimate)
    simulate(_jobs(), _in_order, cluster=cluster, limits=[cap, budget])


def _corun() -> None:
    jobs = load_workload("codes:jobs=20,processes=8,processors=64,seed=1")
    simulate(jobs, "easy-co", cluster="8x2x4", speedups="generated:codes=16")


def _corun_files() -> None:
    jobs = load_workload("codes:jobs=20,processes=8,processors=64,seed=1")
    cluster = replace(find_cluster("8x2x4"), io_bandwidth_gb_s=1)
    shares, demands = np.full(16, 0.5), np.full(16, 50.0)
    speedups = replace(generate_speedups(16), io_share=shares, io_demand_mb_s=demands)
    simulate(jobs, "easy-co", cluster=cluster, speedups=speedups)
    _steps("CoSchedule", workload=jobs, cluster=cluster, speedups=speedups)


# --- Many simulations -----------------------------------------------------------------------------


def _lookahead() -> None:
    look = Lookahead(["spf", "saf"])
    look.run(_jobs())
    env: Any = gymnasium.make(
        "hpcgym/MixedPolicy-v0", workload=_jobs(), jobs=20, **look.env_options
    )
    observation, info = env.reset(seed=0)
    look.begin(env)
    look.act(observation, info)


def _restricted_many() -> None:
    _steps("JobSelection", workload=_jobs(), quota="user:jobs=9")


def _preemption_many() -> None:
    _steps("QueueOrdering", workload=_jobs(), preemption="queue:interactive>batch")


# --- Environments ---------------------------------------------------------------------------------


def _steps(name: str, **arguments: Any) -> None:
    """Do a step in an environment, and in two at once, on threads where there are any."""
    arguments["jobs"] = 10
    env = gymnasium.make(f"hpcgym/{name}-v0", **arguments)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    envs = gymnasium.make_vec(f"hpcgym/{name}-v0", 2, threads=_threads(), **arguments)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())


def _threads() -> int:
    """Return two, or one where numba has no more."""
    return min(2, int(get_num_threads()))


def _environments() -> None:
    for estimate in ("requested", "e-loss"):
        _steps("JobSelection", workload=_jobs(), estimate=estimate)


def _environments_that_go_on() -> None:
    _steps("JobSelection", workload=_jobs(), start="warm")


def _environments_on_nodes() -> None:
    for estimate in ("requested", "e-loss"):
        _steps("JobSelection", workload=_units(), cluster=_nodes(), estimate=estimate)


def _environments_under_limits() -> None:
    for estimate in ("requested", "e-loss"):
        _steps("PowerCap", workload=_jobs(), cluster=_nodes(_POWER), estimate=estimate)


def _environments_of_shared_nodes() -> None:
    _steps("CoSchedule")


#: Name of a part -> function that has all of it compiled; words are in ``notice.PARTS``.
PARTS: dict[str, Callable[[], None]] = {
    "simulator": _simulator,
    "environments": _environments,
    "nodes": _simulator_of_nodes,
    "failures": _failures,
    "restricted": _restricted,
    "restricted-many": _restricted_many,
    "preemption": _preemption,
    "preemption-many": _preemption_many,
    "learning": _learning,
    "fair-share": _fair_share,
    "expressions": _expressions,
    "limits": _limits,
    "corun": _corun,
    "corun-files": _corun_files,
    "lookahead": _lookahead,
    "environments-warm": _environments_that_go_on,
    "environments-nodes": _environments_on_nodes,
    "environments-limits": _environments_under_limits,
    "environments-corun": _environments_of_shared_nodes,
}
