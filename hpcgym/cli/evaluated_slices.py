"""Options of ``hpcgym evaluate``: the slices to compare on, and what is around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from hpcgym.agents.settings import EpisodeSettings
from hpcgym.cli.train_options import NumberOption

_AROUND = ("start", "warmup", "arrivals", "horizon")


@dataclass(frozen=True)
class Slices(EpisodeSettings):
    """What policies are compared on: of the part that agents have not seen."""

    part: Annotated[
        str,
        typer.Option(
            "--slices",
            metavar="test|train|all",
            help="Part of the workload in time: what agents are trained on comes first.",
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
        str,
        typer.Option(
            metavar="empty|warm|SCHEDULER",
            help="What a slice begins with: an empty machine, or what runs and waits then in the"
            " schedule of EASY (warm), or of another scheduler, on the whole workload.",
        ),
    ] = "empty"
    warmup: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long before its slice all begin, such as 1d; the jobs of the slice count.",
        ),
    ] = None
    arrivals: Annotated[
        str,
        typer.Option(
            metavar="stop|continue", help="Whether later jobs go on to come, up to the horizon."
        ),
    ] = "stop"
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When a slice is over, such as 7d after its first submission; jobs that wait then"
            " are charged what they have waited.",
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
