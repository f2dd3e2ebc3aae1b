"""Evaluations where jobs share nodes: co-schedulers, and policies that act in CoSchedule."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.agents.saved import read_spec
from hpcgym.baselines.pair_policies import PAIR_POLICIES, PairPolicy
from hpcgym.baselines.schedulers import COSCHEDULERS, find_scheduler
from hpcgym.envs.core.episodes import Episode, Episodes
from hpcgym.errors import HpcgymError, check_choice, unknown
from hpcgym.evaluation.brought import (
    Seeds,
    acts,
    as_policy,
    imported,
    load_agent,
    unfolded,
    warn_of_seen,
)
from hpcgym.evaluation.leaderboard import Leaderboard, Measured, board_of
from hpcgym.evaluation.lineup import (
    by_name,
    find_policy,
    listed,
    other_scheduler,
)
from hpcgym.evaluation.stage import Failures, act_out, check_spaces, measured_on
from hpcgym.files import shaped
from hpcgym.progress import Progress, silent
from hpcgym.scheduler.own_code import names_code
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload

if TYPE_CHECKING:
    pass


#: The environment in which policies act.
ENVIRONMENT = "hpcgym/CoSchedule-v0"

#: Rows that are always there.
REFERENCES = ("easy-co", "sjf-co", "filler-co")

#: The row that all are compared with.
REFERENCE = "filler-co"

#: Metrics that are kept; policies are ranked by the first, and the second has intervals too.
METRICS = ("mean_bsld", "makespan_s", "mean_wait_s", "utilization")


def is_meant(env: Any, policies: Any) -> bool:
    """Tell whether an evaluation is one where jobs share nodes.

    By its environment, or where none is given by a policy, or a file of one, that was made for it;
    ``policies`` are those of :func:`hpcgym.evaluation.lineup.listed`.
    """
    if env is not None:
        return bool(env == ENVIRONMENT)
    given = policies.values() if isinstance(policies, Mapping) else policies
    every = [
        one
        for each in given
        for one in (each.members.values() if isinstance(each, Seeds) else [each])
    ]
    return any(getattr(one, "env_id", _told(one)) == ENVIRONMENT for one in every)


def _told(policy: Any) -> Any:
    """Return what the file beside a model says of its environment."""
    if not isinstance(policy, str | Path) or Path(policy).suffix != ".zip":
        return None
    try:
        return read_spec(policy).get("env_id")
    except HpcgymError:
        return None  # said by who loads it


def evaluate_shared(
    policies: Any,
    whole: Workload,
    part: Episodes,
    chosen: Sequence[Episode],
    cluster: Any,
    env_options: Mapping[str, Any] | None,
    seed: int,
    resamples: int,
    progress: Progress | None,
    metric: str,
    reference: str | None,
) -> Leaderboard:
    """Compare policies where jobs share nodes; see :func:`hpcgym.evaluation.evaluate`.

    Parameters
    ----------
    policies : of :func:`hpcgym.evaluation.lineup.listed`: names of
        :data:`~hpcgym.baselines.schedulers.COSCHEDULERS` or ``Scheduler``
        objects, which are simulated; names of
        :data:`~hpcgym.baselines.pair_policies.PAIR_POLICIES`, paths of saved agents and objects
        with ``act``, which act in CoSchedule.
    part, chosen : the slices.
    cluster : the machine; None: that of saved agents, or the usual one of CoSchedule.
    env_options : of the environment, such as ``speedups`` and ``partners``; they go before those of
        saved agents, but for what a policy looks at. Co-schedulers have ``speedups`` in common with
        it, not its rules.

    metric, reference : as of :func:`hpcgym.evaluation.evaluate`.

    Raises
    ------
    HpcgymError : a policy that is none of these, or agents of different machines or speedups.
    """
    lineup, groups = unfolded(by_name(policies, _find_policy, _other))
    for name in REFERENCES:
        lineup.setdefault(name, COSCHEDULERS[name])
    alone = [row for row in lineup if all(row not in rows for rows in groups.values())]
    compared = REFERENCE if reference is None else reference
    check_choice("reference", compared, [*alone, *groups])
    metrics = (metric, *METRICS)
    acting = {name: one for name, one in lineup.items() if not isinstance(one, Scheduler)}
    warn_of_seen(acting, whole, part)
    options = dict(env_options or {})
    if cluster is not None:
        options["cluster"] = cluster
    # those that bring no environment follow the first that does
    usual = _brought(acting.values())
    envs = {}
    for name, policy in acting.items():
        kind = "an agent for which an environment can be made"
        with shaped(name, kind) if hasattr(policy, "env_options") else nullcontext():
            envs[name] = _make(policy, whole, part, usual, options)
        check_spaces(name, policy, envs[name])
    base = _agreed(envs) if envs else _make(None, whole, part, usual, options)
    machine = {"cluster": base.options.cluster, "speedups": base.speedups}
    values: dict[str, list[dict[str, float]]] = {}
    failures: Failures = {}
    with (progress or silent)("evaluating", len(lineup) * len(chosen)) as step:
        for name, policy in lineup.items():

            def play(
                episode: Episode, name: str = name, policy: Any = policy
            ) -> Mapping[str, float | int]:
                step(f"{name}: {episode.name}")
                if isinstance(policy, Scheduler):
                    return simulate(part.workload_of(episode), policy, **machine).metrics
                return _play(envs[name], policy, episode, seed)

            values[name] = measured_on(chosen, name, policy, metrics, play, failures)
    slices = [episode.name for episode in chosen]
    beside = tuple(name for name in METRICS if name != "makespan_s")
    return board_of(
        Measured(values, slices, metric, beside, failures, groups),
        {name: one if isinstance(one, Scheduler) else None for name, one in lineup.items()},
        makespans=True,
        static_weights={},
        seed=seed,
        resamples=resamples,
        references=(compared,),
    )


def _find_policy(policy: Any) -> Any:
    """Return a scheduler, or a policy that acts, or say that it is none."""
    policy = as_policy(policy)
    if isinstance(policy, Scheduler) and policy.dispatcher is not None:
        raise HpcgymError("a dispatcher does not go with speedups of jobs that share nodes")
    if isinstance(policy, Scheduler) or acts(policy):
        return policy
    if isinstance(policy, Path):
        return load_agent(policy)
    if not isinstance(policy, str):
        raise HpcgymError(
            "where jobs share nodes a policy is a name, a path, a Scheduler or an object with act,"
            f" not {policy!r}"
        )
    if policy.partition(":")[0].strip() in COSCHEDULERS:
        return find_scheduler(policy)
    if policy in PAIR_POLICIES:
        return PairPolicy(policy)
    if os.path.exists(policy):
        return load_agent(policy)
    if names_code(policy):
        return _find_policy(imported(policy))
    known = [*COSCHEDULERS, *PAIR_POLICIES]
    raise HpcgymError(unknown("policy", policy, known, "a saved agent's path"))


def _other(name: str, policy: Any) -> Any:
    """Return what a name stands for, if that is something else than this policy."""
    if name in PAIR_POLICIES:
        same = type(policy) is PairPolicy and policy.name == name
        return None if same else PairPolicy(name)
    scheduler = COSCHEDULERS.get(name)
    return None if scheduler == policy else scheduler


def _brought(policies: Iterable[Any]) -> dict[str, Any]:
    """Return the machine and the speedups of the first policy that brings an environment."""
    given = [one.env_options for one in policies if hasattr(one, "env_options")]
    theirs: dict[str, Any] = given[0] if given else {}
    return {name: theirs[name] for name in ("cluster", "speedups") if name in theirs}


def _make(
    policy: Any,
    whole: Workload,
    part: Episodes,
    usual: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Any:
    """Return an environment that has the slices of this evaluation, as a policy needs it."""
    from hpcgym.envs import CoSchedule  # takes long to import

    slices = {"episodes": part.kind, "jobs": part.jobs, "train_share": part.train_share}
    theirs = dict(getattr(policy, "env_options", {"window": 64, **usual}))
    kept = {name: theirs[name] for name in ("action", "observation") if name in theirs}
    arguments = {**theirs, **given, **kept, **slices}
    arguments.pop("sampler", None)  # slices are named here, not drawn
    return CoSchedule(whole, part="all", **arguments)


def _agreed(envs: Mapping[str, Any]) -> Any:
    """Return the first of some environments; all have its machine and its speedups.

    Raises
    ------
    HpcgymError : machines or speedups that differ.
    """
    first, base = next(iter(envs.items()))
    for name, env in envs.items():
        same = env.speedups.digest == base.speedups.digest
        if not same or env.options.cluster != base.options.cluster:
            raise HpcgymError(
                f"{name} and {first} act with other speedups, or on another machine: give both"
                " (--speedups, --cluster), or evaluate apart"
            )
    return base


def _play(env: Any, policy: Any, episode: Episode, seed: int) -> Mapping[str, float | int]:
    """Let a policy act to the end of an episode; return the metrics of its schedule."""
    rows = {"start": episode.start, "jobs": episode.stop - episode.start}
    _, info = act_out(env, policy, env.reset(seed=seed, options=rows))
    metrics: Mapping[str, float | int] = info["metrics"]
    return metrics


def found_policies(
    policies: Any, env: str | None = None, find: Callable[[Any], Any] = find_policy
) -> Any:
    """Return the policies of an evaluation by their names, found; as given if jobs share nodes.

    Parameters
    ----------
    policies, env : as :func:`hpcgym.evaluation.evaluate` takes them, which takes this, too.
    find : says what each policy is.

    Raises
    ------
    HpcgymError : as of ``find``.
    """
    given = listed(policies)
    return given if is_meant(env, given) else by_name(given, find, other_scheduler)
