"""``hpcgym tune``: a scheduler for one's own log."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hpcgym.cli import loading, names, options, output
from hpcgym.cli.files import as_given
from hpcgym.cli.groups import Option
from hpcgym.cli.loading import PoolReading, simulating
from hpcgym.cli.running import explained, note
from hpcgym.cli.tables import Sheet, of_frame, rows_of
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.recorded import write_beside
from hpcgym.words import signed

if TYPE_CHECKING:
    from hpcgym.report.figures import Drawing

# --- ``hpcgym tune``: a scheduler for one's own log -----------------------------------------------


def _measures() -> Iterable[tuple[str, str]]:
    from hpcgym.schedule.measures import MEASURES

    return [(name.removesuffix("_h"), meaning) for name, meaning in MEASURES.items()]


def _shared_orders() -> Iterable[tuple[str, str]]:
    weighed = "a weighted sum of fit, popularity and shortness, whose weights are searched"
    return [*names.shared_policies(), ("weights", weighed)]


def _orders() -> Iterable[tuple[str, str]]:
    weighed = "a weighted sum of features, whose weights are searched"
    return [*names.policies(), ("weights", weighed)]


@dataclass(frozen=True)
class _Searched:
    """What is searched, for what, and how long.

    Experiment
    ----------
    objective weekly_bsld|mean_bsld|mean_wait : What the search minimises: the mean bounded slowdown
        of weeks, each of which counts as much as any other; that of all jobs; or the mean wait.
    bound TEXT : A condition that must be kept: 'max_wait <= 7d', 'p99_wait <= 1.5 easy'. May be
        repeated; none for no bound at all. [default: 'p99_wait <= 1.5 easy' and 'max_wait <= 1.5
        easy']
    split SHARE : Share of the log's time for the search; the rest is for judging.
    budget N : About how many rules are tried after a first look at all kinds, which tries some
        3,000 rules by itself, 500 where jobs share nodes.
    seed N : Seed of all random choices.
    """

    objective: str = "weekly_bsld"
    bound: list[str] | None = None
    split: float = 0.5
    budget: int = 3000
    seed: int = 0

    def given(self) -> dict[str, Any]:
        """Return what a plan takes."""
        arguments = {name: value for name, value in vars(self).items() if name != "bound"}
        if self.bound is not None:
            arguments["bounds"] = _none_alone("--bound", self.bound)
        return arguments


@dataclass(frozen=True)
class _Shared:
    """What jobs run that share nodes, and which rules of that are searched.

    Shared nodes
    ------------
    cluster NAME|FILE : The machine whose nodes jobs share, with --speedups; see the list.
    speedups FILE|generated:... : Search the rules of jobs that share nodes: how fast codes run
        beside each other; values as for hpcgym simulate.
    codes SEED : Give each job a code of --speedups, drawn at random.
    """

    cluster: str | None = None
    speedups: str | None = None
    codes: int | None = None

    def read(self, processors: int | None) -> loading.Sharing | None:
        """Return what jobs run that share nodes; None without ``--speedups``."""
        from hpcgym.machine import find_cluster

        if self.speedups is None and self.cluster is not None:
            raise HpcgymError(
                "--cluster needs --speedups: without it the machine is a pool of processors, and"
                " --processors says how many"
            )
        if self.cluster is not None and processors is not None:
            raise HpcgymError("--cluster or --processors, not both")
        machine = None if self.cluster is None else find_cluster(self.cluster)
        return loading.SharingOptions(self.speedups, self.codes).read(machine)

    @property
    def words(self) -> str:
        """The options with which other commands simulate the same."""
        options = {"cluster": self.cluster, "speedups": self.speedups, "codes": self.codes}
        return "".join(f" --{name} {value}" for name, value in options.items() if value is not None)


def _space(search: list[str] | None, shared: bool) -> Any:
    """Return the space of rules that are searched."""
    from hpcgym.study import SharedSpace, Space

    kind = SharedSpace if shared else Space
    known = [field.name for field in fields(kind) if field.init]
    given: dict[str, Any] = {}
    for text in search or ():
        name, _, values = text.partition("=")
        check_choice("--search", name, known)
        given[name] = [] if text == "levers=none" else values
    return kind(**given)


def _none_alone(option: str, given: list[str]) -> list[str]:
    """Return the values of an option; an empty list where the only one is "none".

    Raises
    ------
    HpcgymError : none, and something else.
    """
    if "none" not in given:
        return given
    if len(given) > 1:
        raise HpcgymError(f"{option}: none stands alone")
    return []


@explained(
    lists={
        "Measures of bounds (--bound)": _measures,
        "Orders of the queue (--search orders=)": _orders,
        "The same with --speedups, beside those": _shared_orders,
    }
)
def tune(
    *,
    workload: str,
    folder: Annotated[Path, Option("--output")] = Path("tuned"),
    searched: _Searched,
    against: list[str] | None = None,
    search: list[str] | None = None,
    shared: _Shared,
    reading: PoolReading,
    executor: options.ExecutorOptions,
    how: output.ResultOptions,
) -> None:
    """Search for the scheduler that serves your log best, and judge it on later weeks.

    The search tries orders, run times, ways to backfill, thresholds and held-back jobs on the
    early part of the log, within bounds on waits. The result is compared with EASY, SAF and your
    own rules on the later part, and may be no better. The same command continues an
    interrupted search. With --speedups jobs share nodes: the search tries orders, partners and
    bounds on pairs, and co-schedulers take the place of SAF.

    Scheduler
    ---------
    against NAME : Schedulers to compare with, such as your present rules, in addition to easy and
        saf (with --speedups easy and all co-schedulers). A name, a variant such as
        saf:threshold=288000, or a file.
    search RULES=NAME,... : Which rules are searched, in place of the usual ones. orders: of the
        queue, see the lists. features to weigh: xnes3, xnes6 or names as in hpcgym train xnes.
        estimates of run times, as in hpcgym simulate --estimate. backfilling: none, easy,
        until-shadow, depth:K, conservative; with --speedups none, easy, fill. backfill_orders:
        fcfs, spf, saf or same, that of the queue. levers that may be added: threshold, hold; with
        --speedups threshold, pairs_above; or none. With --speedups also allocations, how jobs lie
        on nodes (compact, spread, half-socket, part:K), and partners (fill, best, first,
        used).

    Output
    ------
    folder FOLDER : Folder for scheduler.toml and tables.

    Examples
    --------
    hpcgym tune KTH-SP2 --clean legrand --bound 'max_wait <= 21d'
    hpcgym tune jobs.swf.gz --against easy-sjbf --against saf:threshold=288000
    hpcgym tune jobs.swf.gz --bound 'p99_wait <= 1.2 easy' --bound 'max_wait <= 7d'
    hpcgym tune jobs.swf.gz --search orders=saf,spf --search estimates=requested
    hpcgym compare jobs.swf.gz --scheduler easy,saf,tuned/scheduler.toml
    hpcgym tune jobs.swf.gz --cluster 100x2x24 --speedups pairs.csv --codes 1 --budget 600
    """
    executor.become_mpi()
    from hpcgym.schedule.provenance import provenance_of_workloads
    from hpcgym.study import Plan
    from hpcgym.study import tune as run

    plan = Plan(_space(search, shared.speedups is not None), **searched.given())
    sharing = shared.read(reading.processors)
    again = simulating(as_given(workload).replace("standard input", "-"), reading)
    _check_folder(folder, how.force)
    where: dict[str, Any] = {}
    if sharing is not None:
        where = {"cluster": sharing.machine, "speedups": sharing.speedups}
        reading = replace(reading, processors=sharing.machine.processors)
    log = reading.load(workload)
    if sharing is not None:
        log = sharing.with_codes(log)
    checkpoint = folder / "search.checkpoint"
    try:
        tuned = run(
            log, plan, against=against or (), checkpoint=checkpoint, progress=shower(),
            **where, **executor.given(),
        )  # fmt: skip
    except KeyboardInterrupt:
        if checkpoint.exists():
            note(f"\nwrote {checkpoint}; the same command goes on from there")
        raise
    files = tuned.save(folder)
    write_beside(files[0], provenance_of_workloads([log]))
    rows = [{"workload": log.name, **row} for row in rows_of(tuned.board.reset_index())]
    how.show(
        output.CommandResult(
            sheet=lambda: Sheet(
                [],
                [
                    of_frame(_board(tuned), f"{log.name}: the later part"),
                    of_frame(tuned.ablation, f"{log.name}: parts given up, the least loss first"),
                ],
            ),
            rows=lambda: rows,
            workloads=[log],
            drawings=lambda: _drawings(tuned),
        )
    )
    note(tuned.verdict)
    note(f"wrote {', '.join(path.name for path in files)} into {folder}")
    note(f"{' '.join(again)}{shared.words} --scheduler {shlex.quote(str(files[0]))} simulates it")


def _drawings(tuned: Any) -> dict[str, Drawing]:
    """Return how far the tuned scheduler is from each other one."""
    from hpcgym.report.figures import of_means

    columns = tuned.board[["tuned_percent", "low", "high"]].iloc[1:]
    means = {str(name): tuple(row) for name, row in zip(columns.index, columns.values, strict=True)}
    return {"tuned": of_means(means, f"{tuned.objective} of tuned against it (%)", 0)}


def _board(tuned: Any) -> Any:
    """Return the board as people read it."""
    board = tuned.board.drop(columns=["low", "high"])
    ends = zip(tuned.board["low"], tuned.board["high"], strict=True)
    words = ["" if math.isnan(low) else f"[{signed(low)}, {signed(high)}]" for low, high in ends]
    words[0] = ""  # it is not compared with itself
    board.insert(list(board).index("tuned_percent") + 1, "interval", words)
    board["kept"] = board["kept"].map({True: "yes", False: "no"})
    names = {"tuned_percent": "tuned against it [%]", "early": f"{tuned.objective}, early"}
    return board.rename(columns=names).reset_index()


def _check_folder(folder: Path, force: bool) -> None:
    """Say before the search what is wrong with the folder that its results go to."""
    from hpcgym.report.canvas import require_matplotlib

    path = folder / "scheduler.toml"
    if path.exists() and not force:
        raise HpcgymError(f"{path} is there already: choose another folder (--output)")
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise HpcgymError(f"{folder} is a file, or not yours; --output names a folder")
    require_matplotlib()


def shower() -> Callable[[int, str, float], None]:
    """Return what says how far a search is, at each stage."""
    before = ""

    def show(tried: int, stage: str, loss: float) -> None:
        nonlocal before
        if stage != before:
            before = stage
            best = "" if math.isnan(loss) else f"  least loss {loss:.3f}"
            note(f"{stage}: {tried:,} rules tried{best}")

    return show
