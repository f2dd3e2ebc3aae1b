"""``hpcgym generate``: workloads from a model."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from hpcgym.cli.files import Written
from hpcgym.cli.groups import entries_in
from hpcgym.cli.running import explained, note
from hpcgym.errors import HpcgymError, unknown
from hpcgym.files.recorded import ending_of, note_of, write_beside
from hpcgym.files.writing import is_stream
from hpcgym.own_code import find, sources
from hpcgym.progress import working
from hpcgym.workload.generators import GENERATORS


class _Parameters:
    """What the parameters of generators are.

    Options
    -------
    jobs : number of jobs
    processors : size of the machine
    seed : of the random numbers: the same one gives the same workload
    load : offered load, such as 0.9: arrivals are spread until the jobs need that share of the
        machine; without it, as the model has them
    classes : 2: interactive and batch jobs; 1: all jobs alike
    users : number of users; without it, it grows with the jobs
    repeat : how many times all its jobs come
    unequal : 1: user k has k times the jobs of user 1; 0: all have the same
    nodes : of the machine, with 8 GPUs each
    spread : by which share of usual power the first user needs less and the last more
    node_cores : cores of a node, which jobs do not share
    speedups : file whose codes the jobs run, or generated:codes=16
    mix : random: codes are drawn; list: one code after the other; shuffle: the list shuffled
    arrivals : at-once, constant, poisson or random
    interval : mean distance of arrivals [s]
    requested : requested over run time
    processes : of each code, where the speedups do not tell it
    units : of a job: assumed, or figure-6: at most what the published figure 6 allows
    days : time in which the jobs come [default: 30, or as long as the jobs take]
    """


def _parameters(generator: str) -> Iterable[tuple[str, str]]:
    generate = find("generators", generator, GENERATORS)
    for name, parameter in inspect.signature(generate).parameters.items():
        entry = entries_in(_Parameters.__doc__)[name]
        value = entry.default if parameter.default is None else parameter.default
        shown = f"{value:,}" if isinstance(value, int | float) else value
        yield name, f"{entry.help}" + ("" if shown is None else f" [default: {shown}]")


@explained(lists={f"Parameters of {name}": partial(_parameters, name) for name in GENERATORS})
def generate(
    generator: str,
    output: Annotated[
        Path,
        Written(
            "workload",
            (".swf", ".swf.gz", ".csv", ".csv.gz", ".parquet", ".json", ".json.gz"),
        ),
    ],
    force: bool = False,
) -> None:
    """Generate a workload and write it into a file.

    lublin is the model of Lublin and Feitelson (JPDC 2003): arrivals with a daily cycle, sizes, run
    times; with a model of users and of the times they request. eurora and kit are like the logs of
    Eurora and ForHLR II, helios like those of a GPU cluster: jobs ask for units with cores, memory
    and accelerators. SWF keeps only cores and memory of these; a warning counts the jobs that lose
    some. light-esp is a fixed mix of
    230 jobs, parts of a machine of any size; only tables keep its power. codes are jobs that run
    known codes, for co-scheduling; a file of speedups tells their processes and run times. Other
    commands take the same text in place of a file.

    Arguments
    ---------
    generator GENERATOR : lublin, eurora, kit, helios, light-esp or codes, and its parameters, as in
        eurora:days=30,load=1.2.
    output OUTPUT : File to write: .swf, .csv or .json, also with .gz, or .parquet.

    Examples
    --------
    hpcgym generate lublin:jobs=100000,processors=512,load=0.9,seed=1 jobs.swf.gz
    hpcgym generate lublin jobs.csv
    hpcgym generate eurora:days=30,load=0.8,seed=1 jobs.json
    hpcgym generate light-esp:processors=180,repeat=4,users=3,spread=0.3 jobs.csv
    hpcgym generate codes:speedups=aris.json,jobs=500,arrivals=poisson,interval=60 jobs.swf
    """
    from hpcgym.schedule.provenance import provenance_of_workloads
    from hpcgym.workload import load_workload, write_swf, write_table
    from hpcgym.workload.load import is_generator

    if not is_generator(generator):
        name = generator.partition(":")[0]
        raise HpcgymError(unknown("generator", name, GENERATORS, others=sources("generators")))
    with working(f"generating {output}"):
        workload = load_workload(generator, "none")
        record = provenance_of_workloads([workload])
        if ending_of(output) == ".swf":
            notes = [note_of(record), *workload.header.get("Note", [])]
            write_swf(replace(workload, header={**workload.header, "Note": notes}), output)
        else:
            write_table(workload, output)
            if not is_stream(output):
                write_beside(output, record)
    note(f"wrote {len(workload):,} jobs for {workload.processors:,} processors to {output}")
