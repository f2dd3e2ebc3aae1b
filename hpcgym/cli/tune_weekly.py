"""``hpcgym tune-weekly``: what weights reach that are chosen anew each week."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

from hpcgym.cli import names, options
from hpcgym.cli.groups import grouped
from hpcgym.cli.loading import PoolReading, WorkloadArgument
from hpcgym.cli.options import Format
from hpcgym.cli.reproduce import print_tables
from hpcgym.cli.running import ExplainedCommand, Lists
from hpcgym.cli.train_options import policy_features
from hpcgym.cli.tune import shower


class TuneWeekly(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym tune-weekly KTH-SP2 --clean legrand",
        "hpcgym tune-weekly jobs.swf.gz --features area,wait --vectors 500",
    )
    lists: ClassVar[Lists] = {
        "Features (--features)": policy_features,
        "Cleaning recipes and filters (--clean)": names.recipes,
    }


@grouped
def tune_weekly(
    *,
    workload: WorkloadArgument,
    features: Annotated[
        str,
        typer.Option(
            metavar="xnes3|xnes6|NAME,...",
            help="Features to weigh; area must be among them.",
            rich_help_panel="Experiment",
        ),
    ] = "xnes6",
    vectors: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of weight vectors to choose from.",
            rich_help_panel="Experiment",
        ),
    ] = 3000,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of these vectors.", rich_help_panel="Experiment")
    ] = 0,
    reading: PoolReading,
    format: options.FormatOption = Format.table,
) -> None:
    """Show what weights reach that are chosen anew each week by the weeks before.

    They are compared with SAF, with the best weights that never change, and with the best weights
    of each week, which are known only in hindsight. This shows what on-line tuning can gain on your
    log.
    """
    from hpcgym.tuning.online import tune_online

    log = reading.load(workload)
    found = tune_online(log, features, vectors=vectors, seed=seed, progress=shower("simulations"))
    print_tables({log.name: found.table}, "weights chosen anew each week", format, [log])
