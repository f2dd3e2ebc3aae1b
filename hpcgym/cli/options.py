"""Options that several commands have, and what their values become."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.errors import HpcgymError, all_of

if TYPE_CHECKING:
    from hpcgym.machine import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.signals import Signal
    from hpcgym.scheduler.limits import Limit
    from hpcgym.workload import Workload


def given(**overrides: Any) -> dict[str, Any]:
    """Return the options that were given: the scheduler keeps its own for others."""
    return {name: value for name, value in overrides.items() if value is not None}


def given_rules(**texts: str | None) -> dict[str, Any]:
    """Return the rules that were given, as variants of schedulers have them: None for "none"."""
    from hpcgym.baselines.schedulers import rule_value

    return {rule: rule_value(rule, text) for rule, text in given(**texts).items()}


# --- Rules of schedulers --------------------------------------------------------------------------


@dataclass(frozen=True)
class Backfilling:
    """Whether jobs are backfilled in environments in which agents learn.

    Scheduler
    ---------
    backfill easy|until-shadow|none : Whether jobs are backfilled; until-shadow: only those that end
        before the first waiting job can start. [default: easy]
    """

    backfill: str | None = None


@dataclass(frozen=True)
class PredictedRules(Backfilling):
    """The same, in which order, and what run times are taken to be.

    Scheduler
    ---------
    backfill_order fcfs|sjbf|NAME : Order of backfilling.
    estimate NAME : How run times are predicted for backfilling; see hpcgym list estimates.
    policy_estimate NAME : Which run times policies look at in place of requested times; names as
        for --estimate.
    """

    backfill_order: str | None = None
    estimate: str | None = None
    policy_estimate: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the rules that were given, by name: the scheduler keeps its own for others."""
        return given_rules(**vars(self))


@dataclass(frozen=True)
class WeighedRules(PredictedRules):
    """The same, and what counts beside the weights of a policy.

    Scheduler
    ---------
    threshold TIME|none : Jobs that waited longer come first, whatever the policy.
    hold SHARE|KEY=VALUE,...|none : Long jobs start only if up to this share of the machine stays
        free behind them: share=0.1, from_s=3600, factor=64, erode_s=14400,
        by=requested|policy_estimate|both.
    relax TIME|none : Until the first job that waits has waited so long (24h), others may start
        before it if they end in time by --candidate-estimate, and may break its promise.
    candidate_estimate NAME : These run times; names as for --estimate. [default: those of policies,
        or typical-ratio in place of requested times]
    fair_share FILE|KEY=VALUE,...|none : For policies by usage: half_life_s=604800, damping=1,
        accounts=group, formula=fair-tree, charged=gpu; or a TOML file with these and the tables
        shares and accounts.
    """

    threshold: str | None = None
    hold: str | None = None
    relax: str | None = None
    candidate_estimate: str | None = None
    fair_share: str | None = None


@dataclass(frozen=True)
class _AllRules(WeighedRules):
    """The same, with all rules that environments and single simulations have.

    Scheduler
    ---------
    correction requested|incremental|recursive-doubling|predicted-again|kill|next-second : What
        replaces a prediction that was too short: the requested time; somewhat more (incremental);
        twice the time so far; what the estimate says then (predicted-again); nothing, because the
        job is killed (kill); or, for dispatchers, the next second, over and over (next-second).
    passes per-timestamp|per-event : When jobs may start: once at each time, after all events of
        that time; or after each submission and each end, as in older simulators. [default:
        per-timestamp]
    quota user:jobs=10|...|FILE|none : How many jobs, processors, GPUs or licences jobs may have at
        once: of each user, group, queue, partition or array (user:gpu=4), of one of them
        (queue=normal:processors=512), of each user of one
        (queue=normal/user:jobs=10+processors=64), or of all (all:licence.matlab=20); of one job:
        job:gpu=8. How much running jobs still may use: group:gpu-minutes=10000, or have used and
        still may: group/half-life=7d:gpu-minutes-in-all=10000. How many may run or wait:
        user:submitted=50; other jobs are submitted later. Put ';' between several quotas. Or a file
        that sacctmgr -P show qos or show assoc printed, or a dump of sacct, for the throttles of
        its arrays.
    maintenance BEGIN/END|...|FILE|none : When the machine is closed to jobs, which is known from
        the beginning: dates or seconds of the log (2026-03-01T08:00/2026-03-02T08:00). Add
        :processors=32 or :nodes=gpu,0-3 to close a part of it, and on nodes :accounts=a|b, :users=c
        or :reservations=d of those that may run there. Put ';' between several. Or a file like that
        of --failures, or what scontrol show reservation printed.
    preemption partition:interactive>batch|...|none : Which jobs may stop others to start at
        once: those of a partition, a queue or QOS (qos:high>low), a user or a group. Put ';'
        between several. Stopped jobs wait again and run from the beginning; add ',cancel', and they
        do not run again, or ',suspend', and they go on later. With ',exempt=600' no run is stopped
        in its first 600 s; with ',grace=120' a job runs on for 120 s once it is to stop.
    dependencies none|after|closed-loop : When jobs that follow others (preceding_job, think_time)
        are submitted: at the log's time (none); at this time, but not before the others have ended
        and their user has thought (after); or right after that, whatever the log says
        (closed-loop). [default: none]
    """

    correction: str | None = None
    passes: str | None = None
    quota: str | None = None
    maintenance: str | None = None
    preemption: str | None = None
    dependencies: str | None = None


@dataclass(frozen=True)
class _Order:
    """The order of the queue; in help before the other rules.

    Scheduler
    ---------
    policy NAME|EXPRESSION|WEIGHTS : Order of the queue: a policy of hpcgym list policies; an
        expression, highest value first, such as '20 * wait - requested * processors', or, with wide
        jobs first while much is free, '-(0.5-2.4*free)*log(processors)'; or six weights such as
        0.1,-0.2,0,0,0,0.7 of processors, requested time, wait, ratio, expansion and area.
    """

    policy: str | None = None


@dataclass(frozen=True)
class SimulatedRules(_AllRules, _Order):
    """Those of single simulations, which have more ways to backfill.

    Scheduler
    ---------
    backfill none|easy|until-shadow|K|slurm|conservative|fill|first-come:K : Which queued jobs have
        a reservation that others must not delay: none, and no job overtakes; the first (easy;
        until-shadow: others must end before it begins); the first K; all (conservative). slurm: as
        Slurm does it, every 30 s (slurm:bf_interval=60). With --speedups also fill: any job that
        finds room starts; first-come:K: the job that came first has a reservation, and of the next
        K start those that are over by then as requested.
    backfill_order fcfs|sjbf|NAME : Order in which jobs are tried for backfilling: submission,
        shortest predicted run time first, a policy, or that of a scheduler, such as evolved.
        [default: as goes with the policy: fcfs with fcfs, fair share its own, else spf]
    dispatch_time SECONDS|measured : How long each call of a dispatcher takes: the jobs that it
        names start so much later. measured: the time on the clock, so no two runs are the same.
    """

    backfill: str | None = None
    backfill_order: str | None = None
    dispatch_time: str | None = None


@dataclass(frozen=True)
class EvaluatedRules(_AllRules):
    """Those of a leaderboard: by default each agent has what it was trained with.

    Scheduler
    ---------
    backfill easy|none : With or without backfilling, in environments and references. [default: as
        agents were trained, or easy]
    backfill_order fcfs|sjbf|NAME : Order of backfilling in environments and of policies by name.
        [default: as agents were trained, or spf]
    estimate NAME : How run times are predicted for backfilling, in environments and of policies by
        name; names as for hpcgym simulate. Schedulers with an estimate of their own, such as
        easy++, keep it and its correction. [default: as agents were trained, or requested]
    policy_estimate NAME : Which run times policies look at in place of requested times, likewise.
        [default: as agents were trained, or requested]
    """

    backfill: str | None = None
    backfill_order: str | None = None
    estimate: str | None = None
    policy_estimate: str | None = None


# --- Options for limits of power and energy -------------------------------------------------------


class LimitOption(NamedTuple):
    """A limit of the options, and what it follows.

    Attributes
    ----------
    limit, follow, swing : as :func:`hpcgym.scheduler.limits.read_limit` returns them.
    text : as it was given, with its option, for messages.
    """

    limit: Limit
    follow: str
    swing: float
    text: str


@dataclass(frozen=True)
class LimitOptions:
    """Limits of power and energy, and how they are kept.

    Power
    -----
    cap KEY=VALUE,...|none : A limit of power, on a machine of --cluster, such as
        percent=60,start=25h,end=26h. watts, or percent of the power with all nodes busy; start and
        end, seconds of the workload, or such as 25h; announced, the time from which it is known;
        kills, if jobs are killed for it. For hours of each day: follow=price or follow=carbon, with
        swing from 0 to 1. The limit is then higher when the signal of --price or --carbon is lower,
        with the same mean; --repeat day repeats a file of one day. May be repeated.
    budget KEY=VALUE,... : A limit of energy, such as percent=60,start=86400,end=345600,shutdown.
        joules, or percent of the energy with all nodes busy; start and end; period, the seconds
        between two readings of the meter; shutdown, if idle nodes are switched off; free_node_w,
        the watts that powercap, reduce-pc and energy-bud reckon a node without a job to draw, on or
        off. follow and swing work as in --cap. May be repeated.
    power none|shut|dvfs|mix|powercap|reduce-pc|energy-bud : How limits are kept: nodes are switched
        off (shut), jobs are slowed down (dvfs), both (mix), or neither; under budgets powercap,
        reduce-pc or energy-bud. Each job then has nodes of its own.
    """

    cap: list[str] | None = None
    budget: list[str] | None = None
    power: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the rules of schedulers that were given."""
        return given_rules(power=self.power)

    def read(self, machine: Cluster | None) -> tuple[LimitOption, ...] | None:
        """Return the limits; None without any of these options.

        Raises
        ------
        HpcgymError : limits without a machine, an unknown key, or a value that cannot be; the
            message names the option.
        """
        caps, budgets = (
            _but_none(option, texts or ())
            for option, texts in (("--cap", self.cap), ("--budget", self.budget))
        )
        limited = caps or budgets
        if not limited and self.power is None:
            return None
        if not limited and self.power != "none":
            raise HpcgymError(f"--power {self.power} needs limits: give --cap or --budget")
        if machine is None or not machine.groups:
            raise HpcgymError(
                "--cap, --budget and --power are for machines whose nodes have a power; --cluster"
                " says which"
            )
        from hpcgym.scheduler.limits import EnergyBudget, PowerCap, read_limit

        def read(option: str, text: str) -> LimitOption:
            made = PowerCap if option == "--cap" else EnergyBudget
            return LimitOption(*read_limit(machine, made, text, option), f"{option} {text}")

        pairs = [("--cap", text) for text in caps] + [("--budget", text) for text in budgets]
        return tuple(all_of(lambda pair: read(*pair), pairs))


def _but_none(option: str, texts: Sequence[str]) -> list[str]:
    """Return the texts of limits; no limits if the only one is "none".

    Raises
    ------
    HpcgymError : "none" beside a limit.
    """
    if len(texts) > 1 and "none" in texts:
        raise HpcgymError(
            f"{option} none stands alone, since all limits that are given hold at once: to compare"
            f" with no limit, run the command again with only {option} none and --power none, by"
            " which each job still has nodes of its own"
        )
    return [] if [*texts] == ["none"] else [*texts]


def following(
    asked: Sequence[LimitOption] | None, signals: Mapping[str, Signal], machine: Cluster | None
) -> tuple[Limit, ...] | None:
    """Return the limits that a simulation keeps: what follows a signal as many.

    Parameters
    ----------
    asked : what :meth:`LimitOptions.read` returns.
    signals : metric -> signal, of ``--price`` and ``--carbon``.
    machine : that of ``--cluster``.

    Raises
    ------
    HpcgymError : a signal that was not given, or that the limit cannot follow.
    """
    if asked is None:
        return None
    from hpcgym.schedule.signals import follow
    from hpcgym.scheduler.limits import FOLLOWED

    limits: list[Limit] = []
    for option in asked:
        if not option.follow:
            limits.append(option.limit)
            continue
        signal = signals.get(FOLLOWED[option.follow])
        if signal is None or machine is None:
            raise HpcgymError(f"{option.text}: it needs --{option.follow} FILE")
        try:
            limits += follow(option.limit, signal, option.swing, machine)
        except HpcgymError as error:
            raise HpcgymError(f"{option.text}: {error}") from None
    return tuple(limits)


#: Options of commands that are arguments of one environment or the other.
_OF_ENVIRONMENTS = {
    "share": ("hpcgym/EnergyBudget-v1", "hpcgym/PowerCap-v1"),
    "shutdown": ("hpcgym/EnergyBudget-v1",),
}


def of_environment(env: str | None, share: float | None, shutdown: bool | None) -> dict[str, Any]:
    """Return what was given of an environment's limits.

    Raises
    ------
    HpcgymError : an option of another environment.
    """
    options = given(share=share, shutdown=shutdown)
    for name in options:
        if env is not None and env not in _OF_ENVIRONMENTS[name]:
            raise HpcgymError(f"--{name} is for {' and '.join(_OF_ENVIRONMENTS[name])}, not {env}")
    return options


# --- Options for carbon intensities and prices ----------------------------------------------------


@dataclass(frozen=True)
class SignalOptions:
    """What energy costs, and how much carbon it stands for, over time.

    Power
    -----
    carbon FILE : CSV file with the carbon intensity over time, such as the columns time_s and
        g_per_kwh: adds the metric carbon_g.
    price FILE : CSV file with the price of energy over time, such as the columns datetime and
        eur_per_mwh: adds the metric cost.
    time_zero DATE : The date of the workload's second 0, such as 2024-01-01T00:00Z, for --carbon
        and --price with date-times; by default the date in its header.
    repeat day|week : Repeat the first day or week of --carbon and --price before and after it.
    """

    carbon: Path | None = None
    price: Path | None = None
    time_zero: str | None = None
    repeat: str | None = None

    def read(self, jobs: Workload, machine: Cluster | None) -> dict[str, Signal]:
        """Return the signals by the metric that they make."""
        if self.carbon is None and self.price is None:
            if self.time_zero is not None or self.repeat is not None:
                raise HpcgymError("--time-zero and --repeat are for --carbon and --price")
            return {}
        from hpcgym.schedule.metrics import watts_given
        from hpcgym.schedule.signals import read_signal, zero_of

        if not watts_given(machine, jobs):
            raise HpcgymError(
                "--carbon and --price need watts, and nobody gave any: name a machine with powers,"
                " such as --cluster taurus, or a TOML file with idle_power_w and busy_power_w"
            )
        zero = zero_of(jobs.header) if self.time_zero is None else self.time_zero
        signals = {}
        for metric, path in (("carbon_g", self.carbon), ("cost", self.price)):
            if path is None:
                continue
            signal = read_signal(path, time_zero=zero, repeat=self.repeat)
            if (signal.unit == "g") != (metric == "carbon_g"):
                wanted = "grams" if metric == "carbon_g" else "money"
                raise HpcgymError(f"{path} tells {signal.unit}, not {wanted}, for its energy")
            signals[metric] = signal
        return signals


def add_metrics(result: Result, signals: Mapping[str, Signal]) -> None:
    """Add to a result's metrics what its energy comes to."""
    from hpcgym.schedule.signals import total_of

    for metric, signal in signals.items():
        result.metrics[metric] = total_of(result, signal)


# --- Where tasks are done -------------------------------------------------------------------------


@dataclass(frozen=True)
class ExecutorOptions:
    """Where tasks are done.

    Running
    -------
    executor NAME : Where tasks run; see hpcgym list executors. Results are the same. processes:4
        starts four processes on this machine. [default: processes, one for each processor]
    """

    executor: str = "processes"

    def given(self) -> dict[str, Any]:
        """Return the executor, and how many processes it starts; None: its own number."""
        kind, colon, number = self.executor.partition(":")
        if kind != "processes" or not colon:
            return {"executor": self.executor, "workers": None}
        if not number.isdecimal() or int(number) < 1:
            raise HpcgymError(
                f"--executor {self.executor}: processes:N needs a whole number above 0"
            )
        return {"executor": kind, "workers": int(number)}

    def become_mpi(self) -> None:
        """Begin again under ``python -m mpi4py.futures``, which has other ranks wait for tasks.

        Raises
        ------
        HpcgymError : an unknown executor, or no MPI.
        """
        from hpcgym.study.executors import check_executor, check_mpi, leads_mpi

        check_executor(*self.given().values())
        if self.executor != "mpi" or leads_mpi():
            return
        check_mpi()
        python = [sys.executable, "-m", "mpi4py.futures", "-m", "hpcgym"]
        os.execv(sys.executable, [*python, *sys.argv[1:]])
