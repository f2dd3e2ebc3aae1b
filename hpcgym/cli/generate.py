"""``hpcgym generate``: workloads from a model."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import options
from hpcgym.cli.running import ExplainedCommand, Lists, note, working
from hpcgym.errors import HpcgymError

ENDINGS = (".swf", ".swf.gz", ".csv", ".csv.gz", ".parquet")

#: Parameters of the generator lublin.
PARAMETERS = {
    "jobs": "number of jobs",
    "processors": "size of the machine",
    "seed": "of the random numbers: the same one gives the same workload",
    "load": "offered load, such as 0.9: arrivals are spread until the jobs need that share of the"
    " machine; without it, as the model has them",
    "classes": "2: interactive and batch jobs; 1: all jobs alike",
    "users": "number of users; without it, it grows with the jobs",
}


def _parameters() -> Iterable[tuple[str, str]]:
    from hpcgym.workload.lublin import lublin

    for name, parameter in inspect.signature(lublin).parameters.items():
        default = "" if parameter.default is None else f" [default: {parameter.default:,}]"
        yield name, PARAMETERS[name] + default


class Generate(ExplainedCommand):
    """The command with the generator's parameters in its help."""

    examples = (
        "hpcgym generate lublin:jobs=100000,processors=512,load=0.9,seed=1 jobs.swf.gz",
        "hpcgym generate lublin jobs.csv",
    )
    lists: ClassVar[Lists] = {"Parameters of lublin": _parameters}


def generate(
    generator: Annotated[
        str,
        typer.Argument(
            metavar="GENERATOR",
            help="Name and parameters: lublin, or lublin:NAME=VALUE,NAME=VALUE.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUT",
            help="File to write: .swf, .swf.gz, .csv, .csv.gz or .parquet.",
            show_default=False,
        ),
    ],
) -> None:
    """Generate a workload and write it into a file.

    The generator is the model of Lublin and Feitelson (JPDC 2003): arrivals with a daily cycle,
    sizes, run times; with a model of users and of the times they request. Other commands take
    the same text instead of a file.
    """
    from hpcgym.workload import load_workload, write_swf, write_table
    from hpcgym.workload.load import GENERATORS

    if generator.partition(":")[0] not in GENERATORS:
        known = ", ".join(GENERATORS)
        raise HpcgymError(f"{generator!r} is not a generator; there is: {known}")
    options.check_file(output, ENDINGS, "workload")
    with working(f"generating {output}"):
        workload = load_workload(generator, "none")
        write = write_swf if output.name.casefold().endswith((".swf", ".swf.gz")) else write_table
        write(workload, output)
    note(f"wrote {len(workload):,} jobs for {workload.processors:,} processors to {output}")
