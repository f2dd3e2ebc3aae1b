"""``hpcgym machines``: machines, and how fast codes run side by side on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from hpcgym.cli import output
from hpcgym.cli.files import Written
from hpcgym.cli.groups import Option
from hpcgym.cli.running import explained, note
from hpcgym.cli.tables import Format, Sheet, of_frame, of_rows, rows_of
from hpcgym.errors import HpcgymError
from hpcgym.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Cluster, Partition
    from hpcgym.machine.slurm.keys import OtherSetting
    from hpcgym.machine.slurm.lines import SlurmFiles
    from hpcgym.machine.speedups import Heatmap
    from hpcgym.report.figures import Drawing


# --- ``hpcgym machines`` --------------------------------------------------------------------------


@explained()
def machines(
    name: str | None = None,
    of: str | None = None,
    speedups: str | None = None,
    output_file: Annotated[
        Path | None, Option("--output"), Written("file of speedups", (".csv", ".json"))
    ] = None,
    *,
    how: output.ResultOptions,
) -> None:
    """List the ready-made machines, or print one as the TOML file that would describe it.

    A machine has groups of nodes with resources and power, and expected waits of its queues. To
    describe another machine, print one into a file and change it.

    With --speedups: tell how fast codes run beside each other, draw it, or write it in another
    form. The speedup of a code beside another is its run time alone on whole nodes, divided by its
    run time on half of each socket with the other code on the other halves. Below 1 it is slowed
    down. The table has the mean over all neighbours, and the mean that others have beside the code.

    Arguments
    ---------
    name NAME : The machine to print: a ready-made one, a TOML file, a description such as 100x2x24,
        or a slurm.conf, maybe with :qos=FILE and +assoc=FILE behind it. Of that file it also lists
        what --scheduler follows, and what not.

    Machine
    -------
    of LOG : Print the machine of a log's partitions: each as large as the most that the log shows
        in use.
    speedups FILE|generated:... : Tell of pairs of codes in place of machines: CSV, JSON, load files
        of ELiSE, or generated ones, generated:codes=16,mean=1.1,spread=0.1,seed=0.

    Output
    ------
    output_file FILE : Write the speedups as .csv (pairs only) or .json (all that is known).

    Examples
    --------
    hpcgym machines
    hpcgym machines eurora > mine.toml
    hpcgym machines mine.toml --format json
    hpcgym machines /etc/slurm/slurm.conf > mine.toml
    hpcgym machines --of grid.swf.gz > grid.toml
    hpcgym machines --speedups loads.json --output aris.csv    # from ELiSE's form to a table
    hpcgym machines --speedups generated:codes=16,mean=1.1,spread=0.1,seed=0 --picture pairs.png
    """
    from hpcgym.machine import cluster_toml, find_cluster, machine_names
    from hpcgym.own_code import sources
    from hpcgym.workload import load_workload
    from hpcgym.workload.partitions import machine_of_partitions

    if speedups is not None:
        _tell_of_codes(speedups, output_file, how)
        return
    if any((output_file, how.picture, how.html, how.figures)):
        raise HpcgymError(
            "--output, --picture, --html and --figures are for --speedups; print a machine into a"
            " file"
        )
    if of is not None:
        if name is not None or how.format is not Format.table:
            raise click.BadParameter("it prints TOML, and stands alone", param_hint="'--of'")
        click.echo(cluster_toml(machine_of_partitions(load_workload(of))), nl=False)
        return
    if name is not None and how.format is Format.table:
        _print_toml(name)
        return
    names = machine_names() if name is None else [name]
    clusters = [find_cluster(machine) for machine in names]
    rows = [_facts(cluster, machine) for cluster, machine in zip(clusters, names, strict=True)]
    packages = sources("machines") if name is None else {}
    for machine, row in zip(names, rows, strict=True):  # of others called as they are found
        row |= {"name": machine, "package": packages[machine]} if machine in packages else {}
    whole = [{**row, "groups": _groups(c)} for row, c in zip(rows, clusters, strict=True)]
    lines = [{key: _text(value) for key, value in row.items()} for row in rows]
    columns = ("name", "package", "resources", "queues", "node_w", "nodes")
    how.show(
        output.CommandResult(
            sheet=lambda: Sheet([], [of_rows(lines, *columns)]),
            rows=lambda: lines,
            facts=lambda: {"machines": whole} if name is None else whole[0],
            drawings=dict,
        )
    )


def _print_toml(name: str) -> None:
    """Print a machine as TOML: a ready-made one with its comments, a file as it is understood."""
    from hpcgym.machine import cluster_toml, find_cluster
    from hpcgym.machine.files import machine_text, ready_made
    from hpcgym.machine.slurm.lines import files_of

    if (slurm := files_of(name)) is not None:
        click.echo(_slurm_text(name, slurm), nl=False)
        return
    cluster = find_cluster(name)
    own = name.casefold() in ready_made() and cluster == find_cluster(name.casefold())
    click.echo(machine_text(name.casefold()) if own else cluster_toml(cluster), nl=False)


def _slurm_text(name: str, files: SlurmFiles) -> str:
    """Return a slurm.conf as TOML; as comments its partitions, and what becomes of all else."""
    from hpcgym.machine import cluster_toml
    from hpcgym.scheduler.slurm_conf import read_rules

    read = read_rules(files)
    partitions = read.conf.cluster.partitions
    lines = [cluster_toml(read.conf.cluster)]
    if partitions:
        shown = [f"# {partition.name}: {_told(partition)}" for partition in partitions]
        lines += ["# Partitions: a job has the nodes and the limits of its own:", *shown, ""]
    rules = read.scheduler.describe()
    lines.append(f"# Followed: the rules of --scheduler {name}, each with its settings:")
    for rule in ("policy", "backfill", "fair_share", "preemption", "quota"):
        settings = [setting for setting, of in read.followed if of == rule]
        if settings or rules[rule]:
            lines += [f"# {rule}: {part}" for part in str(rules[rule] or "none").split("; ")]
            lines += _listed("#   ", settings)
    left = [f"# {setting}; Slurm's default counts" for setting in read.wrong]
    for why in dict.fromkeys(why for _, why in read.left):
        left += _listed("# ", [setting for setting, other in read.left if other == why], f": {why}")
    left += [f"# {setting}: not simulated" for some in read.left_of.values() for setting in some]
    lines += ["", "# Not followed, and why:", *left] if left else []
    return "\n".join([*lines, ""])


def _listed(begin: str, settings: Iterable[OtherSetting], why: str = "") -> list[str]:
    """Return comments that list settings, those that say the same in one line."""
    alike: dict[tuple[bool, str, str], list[str]] = {}
    for setting in settings:
        alike.setdefault((bool(setting.of), setting.key, setting.value), []).append(
            f"{begin}{setting}"
        )
    comments = []
    for first, *rest in alike.values():
        more = f" (and {counted(len(rest), 'more such line')})" if rest else ""
        comments.append(f"{first}{more}{why}")
    return comments


def _told(partition: Partition) -> str:
    """Return what a partition has and limits."""
    parts = [counted(len(partition.nodes), "node")]
    for field in fields(partition):
        value = getattr(partition, field.name)
        if field.name not in ("name", "nodes") and value != field.default:
            parts.append(f"{field.name}={','.join(value) if isinstance(value, tuple) else value}")
    return ", ".join(parts)


def _facts(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return a machine as a row of the list, with all that it has of each resource.

    Of a node the least and greatest power by state, where groups of nodes tell it [W].
    """
    total = dict(zip(cluster.node_resources, cluster.capacity.sum(axis=0).tolist(), strict=False))
    powers = [group.power for group in cluster.groups if group.power is not None]
    return {
        "name": cluster.name or name,
        "nodes": cluster.nodes,
        "resources": {name: _or_any(amount) for name, amount in total.items()},
        "partitions": {partition.name: len(partition.nodes) for partition in cluster.partitions},
        "queues": dict(cluster.queues),
        "node_w": {
            "off": min(power.off_w for power in powers),
            "idle": min(power.idle_w for power in powers),
            "busy": max(power.busy_levels_w[-1] for power in powers),
        }
        if powers
        else {},
        "io_bandwidth_gb_s": cluster.io_bandwidth_gb_s,
    }


def _or_any(amount: int) -> int | str:
    """Return an amount of a resource; "any" of what limits nobody, as files of machines have it."""
    from hpcgym.machine.files import ANY
    from hpcgym.machine.pool import ANY_NUMBER

    return ANY if amount >= ANY_NUMBER else amount


def _groups(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the groups of nodes, with what one node has of each resource; none of a pool."""
    return [
        {
            "name": group.name,
            "nodes": group.nodes,
            "sockets": group.sockets,
            "per_node": {name: _or_any(amount) for name, amount in group.resources.items()},
        }
        for group in cluster.groups
    ]


def _text(value: Any) -> Any:
    """Return amounts by name as one text, other values as they are."""
    if not isinstance(value, dict):
        return value
    return ", ".join(
        f"{amount if isinstance(amount, str) else f'{amount:.15g}'} {name}"
        for name, amount in value.items()
    )


# --- ``hpcgym machines --speedups`` ---------------------------------------------------------------


def _tell_of_codes(source: str, file: Path | None, how: output.ResultOptions) -> None:
    """Print how fast codes run beside each other, and write and draw it."""
    from hpcgym.machine.speedups import find_speedups, write_speedups

    heatmap = find_speedups(source)
    if file is not None:
        write_speedups(heatmap, file)
        note(f"wrote {file}")
    codes = _codes(heatmap)
    facts = {**heatmap.describe(), "mean_speedup": heatmap.mean_speedup, "codes": rows_of(codes)}
    unknown = f"{heatmap.unknown:,} of {heatmap.speedup.size:,} pairs unknown"
    dropped = f" · {heatmap.dropped:,} measurements left out" if heatmap.dropped else ""
    mean = "" if heatmap.unknown == heatmap.speedup.size else f" · mean {heatmap.mean_speedup:.4f}"
    title = f"{heatmap.source} · {len(heatmap)} codes{mean} · {unknown}{dropped}"
    above = [title, f"SHA-256 {heatmap.digest}"]
    how.show(
        output.CommandResult(
            sheet=lambda: Sheet(above, [of_frame(codes)]),
            rows=lambda: rows_of(codes),
            facts=lambda: facts,
            drawings=lambda: {"speedups": _drawn(heatmap)},
        )
    )


def _drawn(heatmap: Heatmap) -> Drawing:
    """Return the heatmap of the speedups."""
    from hpcgym.report import draw_speedups
    from hpcgym.report.figures import COLUMN_INCHES, on_axes

    return on_axes(partial(draw_speedups, heatmap), 0.9 * COLUMN_INCHES, grows=True)


def _codes(heatmap: Heatmap) -> pd.DataFrame:
    """Return what is known of each code, a row each."""
    import pandas as pd

    speedup = pd.DataFrame(heatmap.speedup)
    columns = {
        "code": heatmap.codes,
        "processes": [number if number > 0 else None for number in heatmap.processes.tolist()],
        "compact_s": heatmap.compact_s,
        "alone": heatmap.alone,
        "mean_speedup": speedup.mean(axis=1),
        "least": speedup.min(axis=1),
        "greatest": speedup.max(axis=1),
        "mean_of_others": speedup.mean(axis=0),
        "unknown_pairs": speedup.isna().sum(axis=1),
        "io_share": heatmap.io_share,
        "io_demand_mb_s": heatmap.io_demand_mb_s,
    }
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})
