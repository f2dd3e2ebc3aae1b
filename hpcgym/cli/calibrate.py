"""``hpcgym calibrate``: what may explain that a log's past is not what a site's rules simulate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.cli import loading, output
from hpcgym.cli.lineup import rules_of
from hpcgym.cli.running import explained
from hpcgym.cli.tables import Sheet, of_frame, rows_of
from hpcgym.progress import counting
from hpcgym.units import HOUR_S, duration

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.report.figures import Drawing
    from hpcgym.workload import Workload

#: How many settings people see, of the first step and of each other, the best first.
_SHOWN = (10, 3)


@explained()
def calibrate(
    *,
    workload: str,
    scheduler: str | None = None,
    most: int = 3,
    reading: loading.PeriodReading,
    how: output.ResultOptions,
) -> None:
    """Say which settings may explain that a log's past differs from what today's rules simulate.

    It tries nodes that were out of service, limits of users, accounts, QOS and partitions as tight
    as the log keeps them, no partitions, other backfilling and depths of it, and other orders; then
    further ones on top of the best. They are chosen on the first half of the time. How much they
    explain of the second half says how far to trust them. These are some dozens of simulations; it
    shows about how long they still take.

    Scheduler
    ---------
    scheduler NAME : The site's own, as far as you know it: a name, or a file. [default: that of
        --cluster, if it is a slurm.conf; else easy]
    most N : How many settings are combined at most.

    Examples
    --------
    hpcgym calibrate jobs.txt --cluster slurm.conf
    hpcgym calibrate jobs.txt --cluster slurm.conf --scheduler slurm.conf:qos=qos.txt
    hpcgym calibrate KTH-SP2 --scheduler easy --most 2 --format csv
    """
    from hpcgym.machine import Cluster
    from hpcgym.machine.slurm import conf_in
    from hpcgym.study.calibration import calibrate as run

    usual = conf_in(reading.cluster or "") or "easy"
    rules = rules_of(usual if scheduler is None else scheduler, reading.given())
    jobs = reading.load(workload, schedulers=[rules])
    machine = reading.machine or Cluster(jobs.processors)
    table = run(jobs, rules, machine, most=most, progress=counting)
    how.show(
        output.CommandResult(
            sheet=lambda: _sheet(jobs, table),
            rows=lambda: rows_of(table),
            workloads=[jobs],
            drawings=lambda: _drawings(jobs, table),
        )
    )


def _sheet(jobs: Workload, table: pd.DataFrame) -> Sheet:
    """Return what people see: the best settings of each step."""
    past = float(jobs.wait_time.mean())
    own, best = table.iloc[0], table[table.chosen].iloc[-1]
    shown = _joined(_best(table))
    text = f"mean wait {duration(past)} recorded, {duration(own.mean_wait_s)} simulated"
    if own.difference == 0:
        same = (
            "The recorded and the simulated schedule do not differ: each job waits as long in both"
        )
        return Sheet([f"{jobs.name}: {text}", same], [])
    if best.step == 0:
        said = "nothing that was tried explains the difference in the first half of the time"
    else:
        said = (
            f"{best.settings}: explains {best.explained:.0%} of the difference in the first half of"
            f" the time, on which it was chosen, and {best.explained_later:.0%} in the second; mean"
            f" wait {duration(best.mean_wait_s)}"
        )
        if best.explained_later < best.explained / 2:
            said += ". So the second half does not bear it out: something else is behind it"
    mark = "* marks the settings as given, where the search began, and then what each step chose"
    left = len(table) - len(shown)
    more = [f"{left:,} other settings explain less, or cannot be: --format csv has all"]
    return Sheet([f"{jobs.name}: {text}"], [of_frame(shown)], [mark, said, *(more if left else [])])


def _drawings(jobs: Workload, table: pd.DataFrame) -> dict[str, Drawing]:
    """Return the mean waits under the settings that people see, beside the recorded one."""
    from hpcgym.report.figures import of_means

    rows = _best(table)
    none = float("nan")
    means = {
        settings or "as given": (wait / HOUR_S, none, none)
        for settings, wait in zip(rows["settings"], rows["mean_wait_s"], strict=True)
    }
    past = float(jobs.wait_time.mean()) / HOUR_S
    return {"waits": of_means(means, "mean wait (hours); line: as recorded", past)}


def _best(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that people see: the given settings, and the best of each step."""
    import pandas as pd

    parts = [table.iloc[:1]]
    for step in range(1, int(table.step.max()) + 1):
        tried = table[(table.step == step) & (table.problem == "")]
        parts.append(tried.sort_values("explained", ascending=False).head(_SHOWN[step > 1]))
    return pd.concat(parts)


def _joined(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows as people read them."""
    import pandas as pd

    share = {name: rows[name].map("{:.0%}".format) for name in ("explained", "explained_later")}
    return pd.DataFrame(
        {
            "settings": rows["settings"].replace("", "as given"),
            "chosen": rows["chosen"].map({True: "*", False: ""}),
            "mean wait": rows["mean_wait_s"].map(duration),
            "explains, first half": share["explained"],
            "second half": share["explained_later"],
        }
    )
