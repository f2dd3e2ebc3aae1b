"""``hpcgym machines`` and ``hpcgym speedups``: machines, and pairs of codes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli.files import Written
from hpcgym.cli.groups import grouped
from hpcgym.cli.running import note
from hpcgym.cli.tables import Format, Sheet, Table, show
from hpcgym.errors import HpcgymError
from hpcgym.progress import working

if TYPE_CHECKING:
    from hpcgym.machine import Cluster, Partition
    from hpcgym.machine.speedups import Heatmap


# --- ``hpcgym machines`` --------------------------------------------------------------------------


@grouped()
def machines(
    name: Annotated[str | None, typer.Argument()] = None,
    of: str | None = None,
    format: Format = Format.table,
) -> None:
    """List the ready-made machines, or print one as the TOML file that would describe it.

    A machine has groups of nodes with resources and power, and expected waits of its queues. To
    describe another machine, print one into a file and change it.

    Arguments
    ---------
    name NAME : The machine to print: a ready-made one, a TOML file, a slurm.conf, or a description
        such as 100x2x24.

    Options
    -------
    of LOG : Print the machine of a log's partitions: each as large as the most that the log shows
        in use.

    Examples
    --------
    hpcgym machines
    hpcgym machines eurora > mine.toml
    hpcgym machines mine.toml --format json
    hpcgym machines /etc/slurm/slurm.conf > mine.toml
    hpcgym machines --of grid.swf.gz > grid.toml
    """
    from hpcgym.machine import cluster_toml, find_cluster, machine_names
    from hpcgym.workload import load_workload
    from hpcgym.workload.needs import machine_of_partitions

    if of is not None:
        if name is not None or format is not Format.table:
            raise typer.BadParameter("it prints TOML, and stands alone", param_hint="'--of'")
        typer.echo(cluster_toml(machine_of_partitions(load_workload(of))), nl=False)
        return
    if name is not None and format is Format.table:
        _print_toml(name)
        return
    names = machine_names() if name is None else [name]
    clusters = [find_cluster(machine) for machine in names]
    rows = [_facts(cluster, machine) for cluster, machine in zip(clusters, names, strict=True)]
    whole = [{**row, "groups": _groups(c)} for row, c in zip(rows, clusters, strict=True)]
    show(
        format,
        lambda: _sheet(rows),
        lambda: [{key: _text(value) for key, value in row.items()} for row in rows],
        lambda: whole if name is None else whole[0],
    )


def _print_toml(name: str) -> None:
    """Print a machine as TOML: a ready-made one with its comments, a file as it is understood."""
    from hpcgym.machine import cluster_toml, find_cluster, machine_names
    from hpcgym.machine.files import machine_text
    from hpcgym.machine.slurm import ENDING

    if name.endswith(ENDING):
        typer.echo(_slurm_text(name), nl=False)
        return
    cluster = find_cluster(name)
    ready_made = name.casefold() in machine_names() and cluster == find_cluster(name.casefold())
    text = machine_text(name.casefold()) if ready_made else cluster_toml(cluster)
    typer.echo(text, nl=False)


def _slurm_text(path: str) -> str:
    """Return a slurm.conf as TOML; as comments its partitions, and what is not of the machine."""
    from hpcgym.machine import cluster_toml
    from hpcgym.machine.slurm import read_slurm_conf

    conf = read_slurm_conf(path)
    lines = [cluster_toml(conf.cluster)]
    if conf.cluster.partitions:
        lines.append("# Partitions; a job gets nodes of its own one, which must let it run:")
        lines += [f"# {one.name}: {_limits(one)}" for one in conf.cluster.partitions]
        lines.append("")
    if conf.others:
        lines.append("# Not of the machine; --scheduler names those that it does not follow:")
        lines += [f"# {one.where}: {one.name}={one.value}" for one in conf.others] + [""]
    return "\n".join(lines)


def _limits(partition: Partition) -> str:
    """Return what a partition has and limits, in words."""
    from hpcgym.naming import duration

    nodes = len(partition.nodes)
    longest = partition.max_time_s
    allowed = partition.allow_accounts
    denied = () if allowed else partition.deny_accounts
    refused = () if partition.allow_qos else partition.deny_qos
    told = [
        (True, f"{nodes} node{'' if nodes == 1 else 's'}"),
        (partition.default, "default"),
        (longest is not None, f"at most {duration(longest or 0)}"),
        (partition.max_nodes is not None, f"at most {partition.max_nodes} nodes a job"),
        (partition.min_nodes > 1, f"at least {partition.min_nodes} nodes a job"),
        (bool(allowed), f"accounts {', '.join(allowed)}"),
        (bool(denied), f"no account {', '.join(denied)}"),
        (bool(partition.allow_qos), f"QOS {', '.join(partition.allow_qos)}"),
        (bool(refused), f"no QOS {', '.join(refused)}"),
        (partition.exclusive, "whole nodes"),
        (partition.priority_tier != 1, f"tier {partition.priority_tier}"),
        (partition.state != "up", partition.state),
    ]
    return ", ".join(text for so, text in told if so)


def _facts(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return a machine as a row of the list, with all that it has of each resource.

    Of a node the least and greatest power by state, where groups of nodes tell it [W].
    """
    total = cluster.capacity.sum(axis=0).tolist()
    powers = [group.power for group in cluster.groups if group.power is not None]
    return {
        "name": cluster.name or name,
        "nodes": cluster.nodes,
        "resources": dict(zip(cluster.node_resources, total, strict=False)),
        "partitions": {one.name: len(one.nodes) for one in cluster.partitions},
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


def _groups(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the groups of nodes, with what one node has of each resource; none of a pool."""
    return [
        {
            "name": group.name,
            "nodes": group.nodes,
            "sockets": group.sockets,
            "per_node": dict(group.resources),
        }
        for group in cluster.groups
    ]


def _text(value: Any) -> Any:
    """Return amounts by name as one text, other values as they are."""
    if not isinstance(value, dict):
        return value
    return ", ".join(f"{amount:.15g} {name}" for name, amount in value.items())


def _sheet(rows: list[dict[str, Any]]) -> Sheet:
    """Return the list for people."""
    lines = []
    for row in rows:
        resources = (
            f"{amount / 1000:,.0f} GB mem" if name == "mem" else f"{amount:,} {name}"
            for name, amount in row["resources"].items()
        )
        waits = (f"{name} ({wait / 3600:g} h)" for name, wait in row["queues"].items())
        watts = (f"{state} {value:g} W" for state, value in row["node_w"].items())
        lists = (", ".join(cells) or "-" for cells in (resources, waits, watts))
        lines.append([row["name"], *lists, f"{row['nodes']:,}"])
    return Sheet([], [Table(("name", "resources", "queues", "power of a node", "nodes"), lines, 4)])


# --- ``hpcgym speedups`` --------------------------------------------------------------------------


@grouped()
def speedups(
    source: str,
    format: Format = Format.table,
    output_file: Annotated[
        Path | None, typer.Option("--output"), Written("file of speedups", (".csv", ".json"))
    ] = None,
    picture: Annotated[
        Path | None, Written("picture", (".png", ".svg", ".pdf"), drawn=True)
    ] = None,
    force: bool = False,
) -> None:
    """Tell how fast codes run beside each other, draw it, or write it in another form.

    The speedup of a code beside another is its run time alone on whole nodes, divided by its run
    time on half of each socket with the other code on the other halves. Below 1 it is slowed down.
    The table has the mean over all neighbours, and the mean that others have beside the code.

    Arguments
    ---------
    source FILE|generated:... : Speedups of pairs of codes: CSV, JSON, load files of ELiSE, or
        generated ones, generated:codes=16,mean=1.1,spread=0.1,seed=0.

    Output
    ------
    output_file FILE : Write the speedups as .csv (pairs only) or .json (all that is known).
    picture FILE : Draw the heatmap: .png, .svg or .pdf.

    Examples
    --------
    hpcgym speedups aris.json
    hpcgym speedups loads.json --output aris.csv    # from ELiSE's form to a table
    hpcgym speedups generated:codes=16,mean=1.1,spread=0.1,seed=0 --picture heatmap.png
    """
    from hpcgym.machine.speedups import find_speedups, write_speedups

    heatmap = find_speedups(source)
    if output_file is not None:
        write_speedups(heatmap, output_file)
        note(f"wrote {output_file}")
    if picture is not None:
        from hpcgym.report import draw_speedups
        from hpcgym.report.canvas import figure_of, picture_suffix, save_figure

        with working(f"drawing {picture}"):
            save_figure(figure_of(draw_speedups(heatmap)), picture, picture_suffix(picture))
        note(f"wrote {picture}")
    rows = _rows(heatmap)
    facts = {**heatmap.describe(), "mean_speedup": heatmap.mean_speedup, "codes": rows}
    show(format, lambda: _codes(heatmap, rows), lambda: rows, lambda: facts)


#: What is known of a code -> its heading, and how it is written for people.
_COLUMNS = {
    "code": ("code", ""),
    "processes": ("processes", ","),
    "compact_s": ("compact (s)", ",.1f"),
    "alone": ("alone", ".3f"),
    "mean_speedup": ("mean speedup", ".3f"),
    "least": ("least", ".3f"),
    "greatest": ("greatest", ".3f"),
    "mean_of_others": ("mean of others", ".3f"),
    "unknown_pairs": ("unknown pairs", ","),
    "io_share": ("I/O share", "g"),
    "io_demand_mb_s": ("MB/s a core", "g"),
}


def _rows(heatmap: Heatmap) -> list[dict[str, Any]]:
    """Return what is known of each code; of what is not, None or no number."""
    import pandas as pd

    speedup = pd.DataFrame(heatmap.speedup)
    found = {
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
    told = {name: list(values) for name, values in found.items() if values is not None}
    return [dict(zip(told, row, strict=True)) for row in zip(*told.values(), strict=True)]


def _codes(heatmap: Heatmap, rows: list[dict[str, Any]]) -> Sheet:
    """Return what is known for people."""
    unknown = f"{heatmap.unknown:,} of {heatmap.speedup.size:,} pairs unknown"
    dropped = f" · {heatmap.dropped:,} measurements left out" if heatmap.dropped else ""
    mean = "" if heatmap.unknown == heatmap.speedup.size else f" · mean {heatmap.mean_speedup:.4f}"
    title = f"{heatmap.source} · {len(heatmap)} codes{mean} · {unknown}{dropped}"
    shown = {name: told for name, told in _COLUMNS.items() if name in rows[0]}
    lines = [
        [
            "-" if row[name] is None or row[name] != row[name] else format(row[name], form)
            for name, (_, form) in shown.items()
        ]
        for row in rows
    ]
    headings = [heading for heading, _ in shown.values()]
    return Sheet([title, f"SHA-256 {heatmap.digest}"], [Table(headings, lines)])
