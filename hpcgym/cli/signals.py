"""Options for carbon intensities and prices, and the metrics that come of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hpcgym.cluster import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.signals import Signal
    from hpcgym.workload import Workload


@dataclass(frozen=True)
class SignalOptions:
    """What energy costs, and how much carbon it stands for, over time."""

    panel: ClassVar[str] = "Power"

    carbon: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file with the carbon intensity over time, such as the columns time_s and"
            " g_per_kwh: adds the metric carbon_g.",
            show_default=False,
        ),
    ] = None
    price: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file with the price of energy over time, such as the columns datetime and"
            " eur_per_mwh: adds the metric cost.",
            show_default=False,
        ),
    ] = None
    time_zero: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="The date of the workload's second 0, such as 2024-01-01T00:00Z, for --carbon"
            " and --price with date-times; by default the date in its header.",
            show_default=False,
        ),
    ] = None
    repeat: Annotated[
        str | None,
        typer.Option(
            metavar="day|week",
            help="Repeat the first day or week of --carbon and --price before and after it.",
            show_default=False,
        ),
    ] = None

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
        found = {}
        for metric, path in (("carbon_g", self.carbon), ("cost", self.price)):
            if path is None:
                continue
            signal = read_signal(path, time_zero=zero, repeat=self.repeat)
            if (signal.unit == "g") != (metric == "carbon_g"):
                wanted = "grams" if metric == "carbon_g" else "money"
                raise HpcgymError(f"{path} tells {signal.unit}, not {wanted}, for its energy")
            found[metric] = signal
        return found


def add_metrics(result: Result, signals: Mapping[str, Signal]) -> None:
    """Add to a result's metrics what its energy comes to."""
    if not signals:
        return
    from hpcgym.schedule.signals import total_of

    for metric, signal in signals.items():
        result.metrics[metric] = total_of(result, signal)
