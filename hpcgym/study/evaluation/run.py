"""``evaluate``: policies and references on the same slices of a workload."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.chance import RANDOM
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.envs.core.base import given_way, settings_in
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.slices import PERIODS, Episode
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.envs.ids import full_id
from hpcgym.errors import (
    HpcgymError,
    PolicyWarning,
    WorkloadWarning,
    check_choice,
    check_whole,
    unknown,
    warn_caller,
)
from hpcgym.machine import Cluster
from hpcgym.own_code import failure, own_rules, place_in
from hpcgym.progress import Progress, silent
from hpcgym.schedule.groups import GROUPED_BY, group_metrics, metrics_by
from hpcgym.schedule.measures import result_within
from hpcgym.schedule.metrics import is_of_resource, ranking_metrics
from hpcgym.scheduler.allocations import check_allocation
from hpcgym.scheduler.asked_for import SITE_RULES
from hpcgym.scheduler.estimates.learning import Learned
from hpcgym.scheduler.rules import RulesOfEnvironments, Scheduler
from hpcgym.scheduler.unused import told_already, warn_of_unused
from hpcgym.simulation.run import learn_at
from hpcgym.study.evaluation.environments import (
    SHARED,
    Agents,
    Environments,
    MisfitError,
    around_of,
    restrictions,
    warn_of_seen,
)
from hpcgym.study.evaluation.leaderboard import Leaderboard
from hpcgym.study.evaluation.platform import ENERGIES
from hpcgym.study.evaluation.policies import (
    STATIC,
    Policies,
    env_of,
    of_shared_nodes,
    options_of,
    read_policies,
)
from hpcgym.study.evaluation.references import (
    OF_BUDGETS,
    OF_SHARED_NODES,
    best_static,
    chance,
    check_static,
    find_reference,
    has_budgets,
    references,
    rows_of,
    static_row,
    static_rules,
    unlike,
)
from hpcgym.study.evaluation.user_policies import REMEDY, acts
from hpcgym.units import duration
from hpcgym.workload import Workload, load_workload
from hpcgym.workload.checks import check_jobs, needs_on
from hpcgym.workload.load import machine_of

if TYPE_CHECKING:
    import pandas as pd

#: What errors say of arrays that do not go together, or of a wrong action.
_OF_SHAPES = "shape|dimension|out of bounds|must be an index"

#: Metrics of a schedule that are kept beside the one by which policies are ranked.
METRICS = ("mean_bsld", "max_wait_s", "area_weighted_wait_s", "mean_wait_s", "utilization")

#: The same where jobs share nodes has intervals.
MAKESPANS = ("makespan_s",)


class RulesOfSlices(RulesOfEnvironments, total=False):
    """What :func:`evaluate` takes as rules, for type checkers: also what is around slices."""

    start: str | Scheduler | Mapping[str, Any]
    warmup: str | float | None
    arrivals: str
    horizon: str | float | None


def evaluate(
    policies: Any = (),
    workload: Any = "lublin:jobs=10000,processors=256,seed=0",
    *,
    slices: str = "test",
    episodes: str = "windows",
    jobs: int = 256,
    n: int | None = None,
    train_share: float = 0.5,
    seed: int = 0,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    env: str | None = None,
    env_options: Mapping[str, Any] | None = None,
    budget: int = 200,
    resamples: int = 2000,
    metric: str = "mean_bsld",
    reference: str | None = None,
    by: str | None = None,
    progress: Progress | None = None,
    **rules: Unpack[RulesOfSlices],
) -> Leaderboard:
    """Compare policies on the same slices of a workload, each from an empty machine or a full one.

    References are always there: EASY, EASY-SJBF, SAF and F1, or with ``backfill="none"`` FCFS, SJF,
    SAF and F1 (no F1 where the schedule says when jobs are submitted); "random", a random order of
    the queue, or where policies act in JobSelection, QueueOrdering or MixedPolicy "random
    (acting)", random actions there (see :mod:`hpcgym.baselines.chance`); and "best-static", the
    best weights that do not change, over the features of Legrand 2018 (or of MixedPolicy, if
    policies act in it). These weights are chosen on the training part only: of the pure policies
    and random vectors, 200 (``budget``) in all, those with the least mean BSLD over 100 training
    windows, or all training weeks or months, whatever the ``metric``.

    Parameters
    ----------
    policies : one, several, or several with names of one's own in a mapping: a name of
        :data:`hpcgym.baselines.SCHEDULERS` or :data:`hpcgym.baselines.dispatchers.DISPATCHERS`, six
        weights (``"0.1,-0.2,0,0,0,0.7"``), a dispatcher of one's own or a ``Scheduler``, which are
        simulated; "lookahead", for :class:`hpcgym.agents.lookahead.Lookahead`, the path of a saved
        agent or of a model of Stable-Baselines3 (``.zip``, with its environment beside it by
        :func:`hpcgym.agents.save_spec`), a function of ``(observation, info)`` or an object with
        such an ``act`` and maybe ``begin(env)``, such as
        :class:`hpcgym.baselines.policies.Expert`, or a class of such objects that is made without
        arguments, which act in an environment; a function of one argument is a dispatcher; or
        "package.module:name" of any of these. A list in the mapping, or the text
        "name=one.pt,other.pt", is several trainings of one agent: one row, with the means over
        them and intervals of :mod:`hpcgym.study.intervals`. Under limits also a rule of
        :data:`hpcgym.scheduler.rules.POWER`, which is EASY that keeps them so, or one with a
        scheduler, as "reduce-pc+saf".
    workload : a workload, or what :func:`hpcgym.load_workload` takes.
    slices : "test", "train" or "all": the chronological part to evaluate on.
    episodes, jobs, train_share : what a slice is; see :class:`hpcgym.envs.core.episodes.Episodes`.
    start, warmup, arrivals, horizon : the beginning and end of a slice; see the same class. By
        default they are those of the environments in which policies act: of a saved agent's, or of
        the version of ``env``, such as "hpcgym/JobSelection-v2"; without an environment, a slice
        begins with an empty machine and ends with its last job. ``warmup=None`` and
        ``horizon=None``: without.
    n : number of slices, a random choice; by default all weeks or months, and of windows as many as
        there are, up to 100. No job is in two slices: see
        :meth:`hpcgym.envs.core.episodes.Episodes.apart`.
    seed : of the choice of slices, of the random weights, of the resamples and of resets.
    cluster : the machine, as :func:`hpcgym.simulate` takes it, of simulations and environments; by
        default as many processors as the workload's machine had.
    env : where policies act: the id of an environment such as "hpcgym/JobSelection-v2". Saved
        agents know theirs. If it sets limits of power or energy, all that is simulated keeps them
        too, on its machine.
    env_options : further arguments of the environment.
    budget : number of weight vectors that are tried, each on all training slices; 0: none, and no
        "best-static".
    resamples : of the confidence intervals, which means over fewer than five slices do not have.
    metric : ranks policies; a name of :data:`hpcgym.schedule.metrics.METRICS` of which less or more
        is better. Slices without a value, such as those without long jobs for ``mean_bsld_long``,
        are left out.
    reference : row, or name of a reference, with which all are compared: how far they are above it,
        with p-values. By default EASY, with ``backfill="none"`` FCFS, or as described below.
    by : "class" or "user": ``Leaderboard.groups`` has the metric of each class of jobs, or user, on
        each slice. The metric must be one of jobs, and not of whole schedules.
    progress : shows how far it is; :func:`hpcgym.progress.counting` does on a terminal.
    rules : ``backfill``, ``backfill_order``, ``estimate``, ``policy_estimate``, ``correction``,
        ``passes``, ``allocation``, ``threshold``, ``hold``, ``relax``, ``candidate_estimate``,
        ``fair_share``, ``quota``, ``maintenance``, ``preemption`` and ``dependencies`` of
        environments and of simulated policies; ``Scheduler`` objects, and names of the EASY family,
        only take the last four, if they have none of their own. By default those of the
        environment; without one, the rules of ``SCHEDULERS``. With ``quota=None`` no row has a
        quota; the same holds for other rules that may be None. The correction of dispatchers is
        "next-second" unless it is given here, or the environment has another than "requested".

    Schedulers whose estimates learn begin each slice with what a simulation of the whole trace
    under them has learned before it, from the jobs that have ended by then. Policies that act in
    environments, dispatchers, and all on machines with nodes begin it knowing nothing.

    Rows are called as the policies are. A name whose rules differ here from those for which it
    stands in :func:`hpcgym.simulate` has them behind it, such as "saf (backfill fcfs)".

    Under limits the table has the energy of all, as a whole and while limits hold; schedulers keep
    them by the environment's own rule; and with budgets "powercap" is a row, too, to which
    ``above_reference`` compares all.

    With env="hpcgym/CoSchedule-v1", or a saved agent of it, jobs share nodes. Rows are names of
    :data:`~hpcgym.baselines.schedulers.COSCHEDULERS` or ``Scheduler`` objects, which are simulated,
    and policies that act there: names of :data:`~hpcgym.baselines.pair_policies.PAIR_POLICIES`,
    saved agents and objects with ``act``. "easy-co", "sjf-co" and "filler-co" are always there, and
    no row of chance. ``env_options`` has the ``speedups``; if machine or speedups are not given,
    they are those of saved agents. The table has the makespans.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or an environment that does not fit, which a
        policy says by an HpcgymError of its ``begin``. What else policies, dispatchers and
        environments of one's own do wrong is noted in ``Leaderboard.failures`` instead.
    WorkloadError : a job that the empty machine does not hold.

    Warns
    -----
    PolicyWarning : a policy or a dispatcher that failed on some slices.
    TrainingWarning : a model whose training has seen jobs of the slices, unless these are of the
        training part on purpose.
    WorkloadWarning : the last week or month of the log is a slice, and less than half of it is in
        the log.

    Examples
    --------
    >>> from hpcgym.study import evaluate
    >>> board = evaluate("spf", "lublin:jobs=3000,processors=64", n=3, budget=20)
    >>> sorted(board.table.index)
    ['best-static', 'easy', 'easy-sjbf', 'f1', 'random', 'saf', 'spf']
    """
    if not is_of_resource(metric):  # nan where the machine lacks it
        check_choice("metric", metric, ranking_metrics())
    _check_grouping(by, metric)
    check_whole("budget", budget, 0)
    check_whole("resamples", resamples, 1)
    compared = read_policies(policies)
    shared: dict[str, Any] = {**rules}
    given = {name: shared.pop(name) for name in NOTHING_AROUND if name in shared}
    whole = workload if isinstance(workload, Workload) else load_workload(workload, cluster=cluster)
    if whole.initial is not None:
        raise HpcgymError(
            f"evaluate begins each slice with an empty machine, and {whole.name} with the jobs that"
            f" run at {whole.initial.begin} s: evaluate on the whole trace"
        )
    if not isinstance(env, str | None):
        raise HpcgymError(f"env must be the id of an environment, not {env!r}")
    env = None if env is None else full_id(env)
    acting = compared.acting
    env_ids = {env_of(policy, None) for policy in acting.values()}
    sharing = env == SHARED if env is not None else SHARED in env_ids
    _check_sharing(compared, sharing, shared, by)
    env = SHARED if sharing else env
    place = env or next(iter(env_ids - {None}), None)
    agents = Agents(acting, shared, env, settings_in(place, env_options or {}))
    bound = Scheduler(**restrictions(agents, SITE_RULES))
    around = around_of(given, agents, bool(given_way(episodes, whole, bound)))
    machine = None if cluster is None else machine_of(whole, cluster, None)
    part = Episodes(
        whole, episodes, jobs, slices, train_share, **around, past_jobs=math.inf, cluster=machine,
        rules=restrictions(agents),
    )  # fmt: skip
    chosen = part.apart(n, seed)
    _warn_of_short_period(whole, part, chosen)
    warn_of_seen(acting, whole, part)
    with told_already():
        envs = Environments(whole, machine, part, agents, seed)
    outcomes = _Outcomes(envs, part, chosen, compared.trainings, metric, by)
    shows = progress or silent
    try:
        if sharing:
            attributes = _on_shared_nodes(outcomes, compared, reference, shows)
        else:
            check_allocation(shared.get("allocation") or "first-fit", envs.machine)
            attributes = _with_references(outcomes, compared, whole, reference, budget, seed, shows)
    finally:
        envs.close()
    left_out = _left_out(whole, part, chosen)
    board = outcomes.board(
        whole.name, seed=seed, resamples=resamples, left_out=left_out, **attributes
    )
    _warn_of_failures(board)
    return board


# --- Policies on slices, one after another --------------------------------------------------------


@dataclass
class _Outcomes:
    """What policies have reached on the slices of an evaluation.

    Attributes
    ----------
    envs, part, chosen : where they act, and the slices.
    trainings : of the policies.
    metric, by : of :func:`evaluate`.
    schedulers : row -> its scheduler; None for what acts.
    values : row -> metrics of each slice; none where it failed.
    failures : (row, slice) -> what went wrong.
    groups : rows of :attr:`hpcgym.study.Leaderboard.groups`, but for the workload.
    """

    envs: Environments
    part: Episodes
    chosen: Sequence[Episode]
    trainings: Mapping[str, tuple[str, ...]]
    metric: str
    by: str | None
    schedulers: dict[str, Scheduler | None] = field(default_factory=dict)
    values: dict[str, list[Mapping[str, float | int]]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)

    def run(
        self, name: str, policy: Any, step: Callable[[str], None], known: Known | None = None
    ) -> None:
        """Run a policy on all slices, and keep what it reaches.

        Parameters
        ----------
        name : of its row.
        policy : a scheduler, or what acts.
        step : called for each slice.
        known : slice -> what a scheduler has learned of run times before.

        Raises
        ------
        MisfitError : a policy that cannot act in its environment.
        Exception : what the schedulers of this library raise.
        """
        self.schedulers[name] = policy if isinstance(policy, Scheduler) else None
        self.values[name] = []
        for episode in self.chosen:
            step(f"{name}: {episode.name}")
            metrics: Mapping[str, float | int] = {}
            try:
                metrics = self.envs.run(name, policy, episode, (known or {}).get(episode.name))
            except MisfitError:
                raise
            except Exception as error:  # whatever a user's policy does
                own = own_rules(policy).values() if isinstance(policy, Scheduler) else [policy]
                if not own:
                    raise
                guilty = next((rule for rule in own if place_in(rule, error)), None)
                said = failure(error, guilty)
                if acts(policy) and not options_of(policy) and re.search(_OF_SHAPES, str(error)):
                    said += f"; if it needs other arguments of its environment, {REMEDY}"
                self.failures[name, episode.name] = said
            else:
                if self.by is not None:
                    self._group(name, episode)
            self.values[name].append(metrics)

    def _group(self, name: str, episode: Episode) -> None:
        """Keep the metric of each class of jobs, or user."""
        by, metric = str(self.by), self.metric
        result = self.envs.result()
        if not self.part.alone:
            result = result_within(result, *episode.counting)
        for group, metrics in metrics_by(result, by, [metric]).items():
            self.groups.append({
                "slice": episode.name, by: group, "scheduler": name,
                "jobs": metrics["jobs"], metric: metrics[metric],
            })  # fmt: skip

    def board(self, workload: str, others: Sequence[str], **attributes: Any) -> Leaderboard:
        """Return the leaderboard.

        Parameters
        ----------
        workload : its name.
        others : metrics that have intervals, beside the one that ranks.
        attributes : more attributes of the leaderboard.

        Raises
        ------
        HpcgymError : no slice has a value of the metric for all that did not fail.
        """
        import pandas as pd

        index = pd.Index([episode.name for episode in self.chosen], name="slice")
        frames = {
            metric: pd.DataFrame(
                {name: [float(metrics.get(metric, "nan")) for metrics in them]
                 for name, them in self.values.items()},
                index=index,
            )
            for metric in (self.metric, *others, *METRICS)
        }  # fmt: skip
        ranked = frames[self.metric].copy()
        for row, where in self.failures:
            ranked.loc[where, row] = 0.0
        known = ranked.notna().all(axis=1)
        if not known.any():
            raise HpcgymError(
                f"metric {self.metric!r}: there is no value of it on any slice; it is of"
                " schedules, or of jobs, that are not among these"
            )
        row_of = {member: name for name, members in self.trainings.items() for member in members}
        failures: dict[tuple[str, str], str] = {}
        for (row, where), error in self.failures.items():
            key = row_of.get(row, row), where
            said = error if row == key[0] else f"{row.removeprefix(f'{key[0]}: ')}: {error}"
            failures[key] = f"{failures[key]}; {said}" if key in failures else said
        return Leaderboard(
            {metric: frame[known] for metric, frame in frames.items()},
            {
                row_of.get(name, name): None if name in row_of else scheduler
                for name, scheduler in self.schedulers.items()
            },
            metric=self.metric,
            trainings=self.trainings,
            failures=failures,
            intervals_of=tuple(others),
            groups=self._groups(workload, row_of, {name for name, _ in failures}),
            around=self.part.around,
            unseen=self.envs.unseen,
            **attributes,
        )

    def _groups(
        self, workload: str, row_of: Mapping[str, str], failed: set[str]
    ) -> pd.DataFrame | None:
        """Return the metric of groups of jobs, without rows that failed somewhere."""
        import pandas as pd

        by = self.by
        if by is None:
            return None
        columns = ["workload", "slice", by, "scheduler", "jobs", self.metric]
        rows = [
            {
                "workload": workload,
                **row,
                "scheduler": row_of.get(row["scheduler"], row["scheduler"]),
            }
            for row in self.groups
        ]
        table = pd.DataFrame(
            [row for row in rows if row["scheduler"] not in failed], columns=columns
        )
        return table.groupby(columns[:4], sort=False, as_index=False).mean() if row_of else table


#: Slice -> what a scheduler has learned of run times before it begins.
Known = Mapping[str, Learned]


def _on_shared_nodes(
    outcomes: _Outcomes, compared: Policies, reference: str | None, progress: Progress
) -> dict[str, Any]:
    """Run policies where jobs share nodes; return attributes of the leaderboard."""
    always = {name: COSCHEDULERS[name] for name in OF_SHARED_NODES}
    rows = compared.policies | {
        n: scheduler for n, scheduler in always.items() if n not in compared.policies
    }
    against = find_reference(reference or OF_SHARED_NODES[-1], rows, {}, compared)
    with progress("evaluating", len(rows) * len(outcomes.chosen)) as step:
        for row, policy in rows.items():
            outcomes.run(row, policy, step)
    easy = OF_SHARED_NODES[0]
    return {"reference": against, "compared": True, "others": MAKESPANS, "easy": easy}


def _with_references(
    outcomes: _Outcomes,
    compared: Policies,
    whole: Workload,
    reference: str | None,
    budget: int,
    seed: int,
    progress: Progress,
) -> dict[str, Any]:
    """Run policies and references; return attributes of the leaderboard."""
    envs, part, chosen = outcomes.envs, outcomes.part, outcomes.chosen
    platform, machine = envs.platform, envs.machine
    jobs = part.workload if part.alone else whole
    check_jobs(jobs, machine.processors)
    needs_on(jobs, machine)
    training: list[Workload] = []
    if budget > 0:
        first = Episodes(jobs, part.kind, part.jobs, "train", part.train_share)
        training = [first.workload_of(episode) for episode in first.named(first.usual, seed + 1)]
        check_static(envs.rules)
    slices = [part.workload_of(episode) for episode in chosen]
    always = (OF_BUDGETS,) if has_budgets(platform.limits, slices) else ()
    rows, row_of = rows_of(compared, envs, slices, always)
    known = [policy for policy in rows.values() if isinstance(policy, Scheduler)]
    weighed = [Scheduler().but(**envs.rules)] if envs.counts_usage else []
    warn_of_unused([jobs], [*known, *weighed], envs.features if weighed else ())
    by_chance, policy_of_chance = chance(envs, len(part.workload), seed)
    rows[by_chance], static = policy_of_chance, static_row(envs)
    row_of |= {RANDOM: by_chance, STATIC: static}
    against = row_of[always[0] if always else references(envs.rules)[0]]
    if reference is not None:
        against = find_reference(
            reference, [*rows, *([static] if training else [])], row_of, compared
        )
    total = budget + (len(rows) + bool(training)) * len(chosen)
    weights: dict[str, float] = {}
    with told_already(), progress("evaluating", total) as step:
        if training:
            plain = static_rules(envs, envs.features)
            weights = best_static(training, envs.features, plain, budget, seed, step, platform)
            rows[static] = plain.but(policy=weights)
        for name, policy in rows.items():
            outcomes.run(name, policy, step, _learned(policy, jobs, part, chosen, machine))
    return {
        "reference": against,
        "compared": bool(reference or always),
        "others": () if platform.limits is None else ENERGIES,
        "static_weights": weights,
        "unlike": unlike(rows, envs),
        "easy": row_of[references(envs.rules)[0]],
    }


def _learned(
    policy: Any, jobs: Workload, part: Episodes, chosen: Sequence[Episode], machine: Cluster
) -> dict[str, Learned]:
    """Return what a scheduler has learned of run times before each slice begins, by its name."""
    simulated = isinstance(policy, Scheduler) and policy.dispatcher is None
    if not simulated or machine.groups or not part.alone:
        return {}
    # one simulation of the whole trace, which is stopped where slices begin, in order of time
    begins = [int(part.workload_of(episode).submit_time[0]) for episode in chosen]
    learned = learn_at(jobs, policy, begins, machine)
    return {episode.name: it for episode, it in zip(chosen, learned, strict=True) if it is not None}


# --- What is checked before, and said after -------------------------------------------------------


def _check_grouping(by: str | None, metric: str) -> None:
    """Raise an HpcgymError unless groups of jobs have a metric."""
    if by is None:
        return
    check_choice("by", by, GROUPED_BY)
    known = group_metrics()
    if metric not in known:
        raise HpcgymError(
            f"{metric} is of whole schedules, and has no value by {by}; these are of jobs:"
            f" {', '.join(name for name in known if name != 'jobs')}"
        )


def _check_sharing(
    compared: Policies, sharing: bool, rules: Mapping[str, Any], by: str | None
) -> None:
    """Raise an HpcgymError for arguments that are not for shared nodes, or only for these."""
    for name, policy in compared.policies.items():
        if not sharing and of_shared_nodes(policy):
            raise HpcgymError(
                f"{name} is for jobs that share nodes: it needs --env CoSchedule (env={SHARED!r})"
            )
        dispatches = isinstance(policy, Scheduler) and policy.dispatcher is not None
        if sharing and not acts(policy) and (dispatches or not isinstance(policy, Scheduler)):
            raise HpcgymError(
                f"{name} does not know nodes that jobs share: name a co-scheduler, such as easy-co,"
                " or what acts there"
            )
    if sharing and by is not None:
        raise HpcgymError("there are no metrics by class or user where jobs share nodes")
    for rule in rules if sharing else ():
        raise HpcgymError(unknown("argument", rule, ("env_options", "cluster", "episodes")))


def _left_out(whole: Workload, part: Episodes, chosen: Sequence[Episode]) -> int:
    """Return how many jobs of the weeks or months that are chosen cross the end of theirs."""
    if part.kind not in PERIODS or not part.alone:
        return 0
    numbers = [episode.period for episode in chosen]
    submitted = int(np.isin(_periods(whole, part.kind), numbers).sum())
    return submitted - sum(episode.stop - episode.start for episode in chosen)


def _warn_of_short_period(whole: Workload, part: Episodes, chosen: Sequence[Episode]) -> None:
    """Say so if the log ends before half of the last of its weeks or months, and that is chosen."""
    if part.kind not in PERIODS:
        return
    length, label = PERIODS[part.kind]
    last = int(_periods(whole, part.kind)[-1])
    covered = int(whole.submit_time[-1]) - whole.first_submit_s - last * length
    if last == max(episode.period for episode in chosen) and 2 * covered < length:
        warn_caller(
            f"{whole.name}: the last {label}, {last}, ends after {duration(covered)}; it counts as"
            f" much as a whole {label}",
            WorkloadWarning,
        )


def _periods(whole: Workload, kind: str) -> NDArray[np.int64]:
    """Return the number of the week or month that each job was submitted in."""
    return (whole.submit_time - whole.first_submit_s) // PERIODS[kind][0]


def _warn_of_failures(board: Leaderboard) -> None:
    """Say of each policy that failed on how many slices, and what went wrong on the first."""
    for name in dict.fromkeys(policy for policy, _ in board.failures):
        at = [where for policy, where in board.failures if policy == name]
        warn_caller(
            f"{name} failed on {len(at)} of {len(board.by_slice)} slices, first on {at[0]}:"
            f" {board.failures[name, at[0]]}; see Leaderboard.failures",
            PolicyWarning,
        )
