"""Rows that are in each evaluation: chance, and the best static weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.agents.saved import read_spec
from hpcgym.baselines.chance import RANDOM, RandomActions, random_order
from hpcgym.baselines.labels import labelled
from hpcgym.baselines.pair_policies import PAIR_POLICIES, PairPolicy
from hpcgym.baselines.schedulers import COSCHEDULERS, find_scheduler
from hpcgym.envs.core.cutting import Episode
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError, PolicyWarning, check_choice, unknown, warn_caller
from hpcgym.evaluation.brought import (
    Groups,
    Seeds,
    acts,
    as_policy,
    folded,
    folded_failures,
    imported,
    load_agent,
    options_of,
    unfolded,
    warn_of_seen,
)
from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.lineup import (
    STATIC,
    by_name,
    find_policy,
    listed,
    named_scheduler,
    other_scheduler,
    scheduler_of,
    under_limits,
)
from hpcgym.evaluation.stage import MisfitError, Stage, act_out, check_spaces
from hpcgym.files import shaped
from hpcgym.scheduler.asked_for import (
    OF_JOBS,
    SITE_RULES,
    check_scheduler,
    lifted_by,
    settled,
    under_site_rules,
    without_idle_shares,
)
from hpcgym.scheduler.own_code import failure, names_code, own_rules, place_in
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


# --- What was measured of policies on slices, made into a leaderboard -----------------------------


@dataclass(frozen=True)
class Measured:
    """Values of policies.

    Attributes
    ----------
    values : row -> its metrics on each slice, nan where it failed.
    slices : their names.
    metric : by which rows are ranked.
    beside : metrics that are shown beside it.
    failures : (row, slice) -> what went wrong.
    groups : rows of the table that are several of these.
    """

    values: Mapping[str, Sequence[Mapping[str, float]]]
    slices: Sequence[str]
    metric: str
    beside: Sequence[str]
    failures: Mapping[tuple[str, str], str]
    groups: Groups

    def frame(self, metric: str) -> pd.DataFrame:
        """Return a metric, a row a slice, a column a row of the lineup."""
        import pandas as pd

        index = pd.Index(list(self.slices), name="slice")
        columns = {name: [one[metric] for one in found] for name, found in self.values.items()}
        return pd.DataFrame(columns, index=index)

    def with_value(self) -> list[bool]:
        """Return which slices have a value of the metric for all that did not fail.

        Raises
        ------
        HpcgymError : none has.
        """
        frame = self.frame(self.metric)
        for row, where in self.failures:
            frame.loc[where, row] = 0.0
        known: list[bool] = frame.notna().all(axis=1).tolist()
        if not any(known):
            raise HpcgymError(
                f"metric {self.metric!r}: there is no value of it on any slice; it is of schedules,"
                " or of jobs, that are not among these"
            )
        return known


def board_of(
    measured: Measured,
    schedulers: Mapping[str, Scheduler | None],
    *,
    energies: Sequence[str] = (),
    makespans: bool = False,
    **given: Any,
) -> Leaderboard:
    """Return what was measured as a leaderboard.

    Parameters
    ----------
    measured : the values.
    schedulers : row of the lineup -> its rules; None for what acted.
    energies : metrics [J] that have intervals.
    makespans : whether makespans have.
    given : other attributes of the leaderboard.
    """
    import pandas as pd

    known, groups = measured.with_value(), measured.groups

    def frame(metric: str) -> pd.DataFrame:
        return folded(measured.frame(metric)[known], groups)

    def members(metric: str) -> dict[str, pd.DataFrame]:
        found = measured.frame(metric)[known]
        return {name: found[list(rows)] for name, rows in groups.items()}

    others = [*energies, *(["makespan_s"] if makespans else [])]
    beside = [name for name in measured.beside if name not in (measured.metric, *others)]
    ranked = frame(measured.metric)
    rows = {**schedulers, **dict.fromkeys(groups)}
    return Leaderboard(
        by_slice=ranked,
        schedulers={str(name): rows[str(name)] for name in ranked},
        failures=folded_failures(measured.failures, groups),
        costs=pd.DataFrame({name: frame(name).mean(skipna=False) for name in beside}),
        energy={name: frame(name) for name in energies},
        makespans=frame("makespan_s") if makespans else None,
        metric=measured.metric,
        members={m: members(m) for m in (measured.metric, *others)} if groups else {},
        **given,
    )


# --- One policy after another on the slices of an evaluation --------------------------------------

#: (policy, slice) -> what went wrong.
Failures = dict[tuple[str, str], str]

#: A title and a number of steps -> a context that gives a function to call before each step.
Progress = Callable[[str, int], AbstractContextManager[Callable[[str], None]]]


def measured_on(
    chosen: Sequence[Episode],
    name: str,
    policy: Any,
    metrics: Sequence[str],
    play: Callable[[Episode], Mapping[str, float | int]],
    failures: Failures,
) -> list[dict[str, float]]:
    """Return the metrics of a policy on each slice, nan where it failed.

    Parameters
    ----------
    name : of the policy.
    metrics : those that are kept.
    play : returns the metrics of the policy's schedule of a slice.
    failures : gets what code of the user's does wrong, and where.

    Raises
    ------
    MisfitError : a policy that cannot act in its environment.
    Exception : what the schedulers of this library raise.
    """
    values = []
    for episode in chosen:
        found: Mapping[str, float | int] = {}
        try:
            found = play(episode)
        except MisfitError:
            raise
        except Exception as error:  # whatever a user's policy does
            own = own_rules(policy).values() if isinstance(policy, Scheduler) else [policy]
            if not own:
                raise
            guilty = next((one for one in own if place_in(one, error)), None)
            failures[name, episode.name] = failure(error, guilty)
        values.append({metric: float(found.get(metric, "nan")) for metric in metrics})
    return values


def warn_of_failures(board: Leaderboard) -> None:
    """Say of each policy that failed on how many slices, and what went wrong on the first.

    Warns
    -----
    PolicyWarning : for each of them.
    """
    for name in dict.fromkeys(policy for policy, _ in board.failures):
        at = [where for policy, where in board.failures if policy == name]
        warn_caller(
            f"{name} failed on {len(at)} of {len(board.by_slice)} slices, first on {at[0]}:"
            f" {board.failures[name, at[0]]}; see Leaderboard.failures",
            PolicyWarning,
        )


def silent(title: str, total: int) -> AbstractContextManager[Callable[[str], None]]:
    """Show no progress."""
    return nullcontext(lambda text: None)


# --- Evaluations where jobs share nodes -----------------------------------------------------------

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


# --- Under which rules the rows of an evaluation keep jobs back -----------------------------------


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


def schedulers_of(found: Any, rules: Mapping[str, Any]) -> list[Scheduler]:
    """Return the schedulers for which the jobs of an evaluation must be fit.

    The first has the rules that are given, or that agents bring along from their training; others
    are rows with rules of their own, such as "saf:quota=user:jobs=2" or a slurm.conf.

    Parameters
    ----------
    found : of :func:`found_policies`.
    rules : as :func:`hpcgym.evaluation.evaluate` takes them.

    Raises
    ------
    HpcgymError : a rule that a row cannot have.
    """
    rows = unfolded(found)[0] if isinstance(found, Mapping) else {}
    acting = filter(acts, rows.values())
    kept = settled(OF_JOBS, rules, map(options_of, acting))
    simulated = [one for one in rows.values() if not acts(one)]
    lifted = lifted_by(rules)
    known = (one if isinstance(one, Scheduler) else named_scheduler(one, kept) for one in simulated)
    return [Scheduler().but(**kept), *(under_site_rules(one, kept, lifted) for one in known)]


# --- Rows that are in each evaluation: chance, and the best static weights ------------------------


def by_chance(stage: Stage, jobs: int, seed: int) -> tuple[str, Any]:
    """Return what the row of chance is called, and who that is, for so many jobs."""
    acting = f"{RANDOM} (acting)"
    if stage.add_random(acting):
        return acting, RandomActions(seed)
    scheduler = under_limits(scheduler_of("spf", stage.rules), stage.limits)
    found = random_order(without_idle_shares(scheduler), jobs, seed)
    return _under_site_rules(RANDOM, found), found


def static_row(rules: Mapping[str, Any]) -> str:
    """Return what the row of the best static weights is called under the rules of an evaluation."""
    return _under_site_rules(STATIC, scheduler_of("spf", rules))


def _under_site_rules(name: str, scheduler: Scheduler) -> str:
    """Return a name with the rules of a site behind it."""
    return labelled(name, Scheduler(), scheduler, SITE_RULES)


def check_static(rules: Mapping[str, Any]) -> None:
    """Raise an HpcgymError for rules that static weights cannot be chosen under."""
    try:
        check_scheduler(Scheduler().but(**rules), "environments")
    except HpcgymError as error:
        raise HpcgymError(f"{error}; budget=0 (--budget 0) leaves best-static out") from None
