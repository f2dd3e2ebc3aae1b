"""``hpcgym train xnes``: weights of a mixed policy, found by search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.agents.settings import METHODS, EpisodeSettings, XnesSettings
from hpcgym.cli import options
from hpcgym.cli.files import ForceOption
from hpcgym.cli.groups import grouped
from hpcgym.cli.loading import PoolReading, WorkloadOption
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.cli.train_options import NumberOption, WeightsOption, policy_features


def _feature_sets() -> Iterable[tuple[str, str]]:
    from hpcgym.agents.search import FEATURE_SETS

    sets = [(name, ", ".join(features)) for name, features in FEATURE_SETS.items()]
    return [*sets, *policy_features()]


class TrainXnes(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym train xnes --workload KTH-SP2 --clean legrand",
        "hpcgym train xnes --workload KTH-SP2 --features xnes3 --budget 2000 --seed 1",
        "hpcgym train xnes --workload trace.swf.gz --episodes windows --features area,wait,f1",
        "hpcgym evaluate xnes.json --workload KTH-SP2 --clean legrand --episodes weeks",
    )
    lists: ClassVar[Lists] = {
        "Methods (--method)": METHODS.items,
        "Features to weigh (--features)": _feature_sets,
    }
    brief: ClassVar[Lists] = {"Cleaning recipes and filters (--clean)": options.recipes}


@dataclass(frozen=True)
class _Slices(EpisodeSettings):
    """What vectors are tried on."""

    panel: ClassVar[str] = "Experiment"

    episodes: Annotated[
        str,
        typer.Option(
            metavar="windows|weeks|months|whole",
            help="What a slice is: a window of jobs from anywhere, a week, a month, or all of the"
            " part.",
        ),
    ] = "weeks"
    number: NumberOption = None


@grouped
def train_xnes(
    *,
    workload: WorkloadOption,
    output: WeightsOption = Path("xnes.json"),
    force: ForceOption = False,
    features: Annotated[
        str,
        typer.Option(
            metavar="xnes3|xnes6|NAME,NAME",
            help="Features to weigh; see the list.",
            rich_help_panel="Experiment",
        ),
    ] = "xnes6",
    search: XnesSettings,
    episodes: _Slices,
    rules: options.WeighedRules,
    reading: PoolReading,
) -> None:
    """Search for the weights of a mixed policy that are best on training slices.

    Thousands of simulations a second try weight vectors on all slices; XNES then looks near the
    best ones. Needs no extra. An interrupted search leaves FILE.checkpoint, and the same command
    goes on from there.
    """
    from hpcgym.agents.xnes import Xnes
    from hpcgym.envs.core.episodes import Episodes
    from hpcgym.progress import say
    from hpcgym.scheduler.asked_for import check_fair_share, counts_usage
    from hpcgym.scheduler.rules import Scheduler

    scheduler = Scheduler(**rules.given())
    agent = Xnes(features, scheduler=scheduler, **vars(search))
    check_fair_share(rules.fair_share, counts_usage(agent.rules, agent.features))
    source = reading.load(workload)
    offered = Episodes(source, **episodes.of_episodes())
    number = offered.usual if episodes.number is None else episodes.number
    chosen = offered.named(number, search.seed)
    slices = [offered.workload_of(episode) for episode in chosen]
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    show = _shower(say, search.budget, len(slices), search.metric)
    try:
        agent.fit(slices, checkpoint=checkpoint, progress=show)
    except KeyboardInterrupt:
        if checkpoint.exists():
            note(f"\nwrote {checkpoint}; the same command goes on from there")
        raise
    agent.save(output)
    weights = ", ".join(f"{weight:.3g} {name}" for name, weight in agent.weights_.items())
    found = f"{search.metric} {agent.best_:.4g} on {len(slices)} {episodes.episodes}"
    note(f"\n{found} with {weights}")
    note(f"wrote {output}; hpcgym evaluate {output} --workload ... compares it")


def _shower(
    say: Callable[[str], None], budget: int, n_slices: int, metric: str
) -> Callable[[int, float], None]:
    """Return what shows how far a search is, every now and then."""
    from hpcgym.progress import SHOW_S

    begin = shown = 0.0
    before = 0

    def show(done: int, best: float) -> None:
        nonlocal begin, shown, before
        now = time.monotonic()
        text = f"{done / budget:4.0%}  {done:,} of {budget:,} vectors on {n_slices:,} slices  "
        if not before:  # the first vectors had to wait for the compiler, and tell of no rate
            begin, shown, before = now, now, done
        elif now - shown < SHOW_S and done < budget:
            return
        else:
            shown = now
            each = (now - begin) / (done - before)
            text += f"{n_slices / max(each, 1e-9):,.0f} simulations/s  "
            text += f"{each * (budget - done):,.0f} s left  "
        say(f"{text}best {metric} {best:.4g}")

    return show
