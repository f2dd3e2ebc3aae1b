"""Options of ``hpcgym evaluate``: the slices to compare on, and what is around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

from hpcgym.agents.settings import EpisodeSettings
from hpcgym.cli.train_options import NumberOption

_AROUND = ("start", "warmup", "arrivals", "horizon")


@dataclass(frozen=True)
class Slices(EpisodeSettings):
    """What policies are compared on: of the part that agents have not seen."""

    panel: ClassVar[str] = "Experiment"

    part: Annotated[
        str,
        typer.Option(
            "--slices",
            metavar="test|train|all",
            help="Part of the workload in time; agents are trained on the first part.",
            show_default="test; all with --protocol prequential",
        ),
    ] = ""
    episodes: Annotated[
        str,
        typer.Option(
            metavar="windows|weeks|months|whole",
            help="What a slice is: a window of jobs, a week, a month, or all of the part.",
        ),
    ] = "windows"
    number: NumberOption = None
    start: Annotated[
        str | None,
        typer.Option(
            metavar="empty|warm|SCHEDULER",
            help="What a slice begins with: an empty machine, or the jobs that run and wait at"
            " that time in the schedule of EASY (warm), or of another scheduler, on the"
            " whole workload.",
            show_default="as agents were trained, or empty",
        ),
    ] = None
    warmup: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|none",
            help="How long before its slice a simulation begins, such as 1d; only the jobs of"
            " the slice count.",
            show_default="as agents were trained, or none",
        ),
    ] = None
    arrivals: Annotated[
        str | None,
        typer.Option(
            metavar="stop|continue",
            help="Whether later jobs keep coming, up to the horizon.",
            show_default="as agents were trained, or stop",
        ),
    ] = None
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|none",
            help="When a slice is over, such as 7d after its first submission; jobs that still"
            " wait are charged the time that they have waited.",
            show_default="as agents were trained, or none",
        ),
    ] = None

    def around(self) -> dict[str, Any]:
        """Return what is around slices, as ``evaluate`` takes it."""
        return {name: getattr(self, name) for name in _AROUND}

    def changed(self) -> dict[str, Any]:
        """Return what says how slices are cut, by option; None where it is as usual."""
        usual = Slices()
        return {
            f"--{name}": None if getattr(self, name) == getattr(usual, name) else True
            for name in ("episodes", "jobs", *_AROUND)
        }
