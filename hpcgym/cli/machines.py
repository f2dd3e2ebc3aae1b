"""``hpcgym machines``: the ready-made machines, and files that describe one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli import completion, options, output
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster, Partition
    from hpcgym.cluster.slurm import OtherSetting


class Machines(ExplainedCommand):
    """The command with its examples."""

    examples = (
        "hpcgym machines",
        "hpcgym machines eurora > mine.toml",
        "hpcgym machines mine.toml --format json",
        "hpcgym machines /etc/slurm/slurm.conf > mine.toml",
        "hpcgym machines --of grid.swf.gz > grid.toml",
    )


def machines(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The machine to print: a ready-made one, a TOML file, a slurm.conf, or a"
            " description such as 100x2x24.",
            show_default=False,
            autocompletion=completion.machines,
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            metavar="LOG",
            help="Print the machine of a log's partitions: each as large as the most that the"
            " log shows in use.",
            show_default=False,
        ),
    ] = None,
    format: options.FormatOption = Format.table,
) -> None:
    """List the ready-made machines, or print one as the TOML file that would describe it.

    A machine has groups of nodes with resources and power, and expected waits of its queues. To
    describe another machine, print one into a file and change it.
    """
    from hpcgym.cluster import cluster_toml, find_cluster, machine_names
    from hpcgym.workload import load_workload
    from hpcgym.workload.partitions import machine_of_partitions

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
    if format is Format.json:
        whole = [{**row, "groups": _groups(c)} for row, c in zip(rows, clusters, strict=True)]
        output.print_json(whole if name is None else whole[0])
    elif format is Format.csv:
        output.print_csv([{key: _text(value) for key, value in row.items()} for row in rows])
    else:
        _print_table(rows)


def _print_toml(name: str) -> None:
    """Print a machine as TOML: a ready-made one with its comments, a file as it is understood."""
    from hpcgym.cluster import cluster_toml, find_cluster, machine_names
    from hpcgym.cluster.files import machine_text
    from hpcgym.cluster.slurm import ENDING

    if name.endswith(ENDING):
        typer.echo(_slurm_text(name), nl=False)
        return
    cluster = find_cluster(name)
    ready_made = name.casefold() in machine_names() and cluster == find_cluster(name.casefold())
    text = machine_text(name.casefold()) if ready_made else cluster_toml(cluster)
    typer.echo(text, nl=False)


def _slurm_text(path: str) -> str:
    """Return a slurm.conf as TOML; as comments its partitions, and what is not of the machine."""
    from hpcgym.cluster import cluster_toml
    from hpcgym.cluster.slurm import read_slurm_conf
    from hpcgym.scheduler.slurm_conf import followed_and_not

    conf = read_slurm_conf(path)
    lines = [cluster_toml(conf.cluster)]
    if conf.cluster.partitions:
        lines.append("# Partitions; a job gets nodes of its own one, which must let it run:")
        lines += [f"# {one.name}: {_limits(one)}" for one in conf.cluster.partitions]
        lines.append("")
    try:
        found = followed_and_not(conf)
        with_qos = f"Followed by --scheduler {path}:qos=FILE, what sacctmgr -P show qos printed:"
        told = {
            "Not of the machine; followed by --scheduler with this file:": found.by_scheduler,
            with_qos: found.with_qos,
            "Followed by no simulation:": found.by_none,
        }
    except HpcgymError as error:
        lines.append(f"# As a --scheduler the file is refused: {error}\n")
        told = {"Not of the machine:": list(conf.others)}
    for title, settings in told.items():
        if settings:
            lines.append(f"# {title}")
            lines += map(_setting, settings)
            lines.append("")
    return "\n".join(lines)


def _setting(one: OtherSetting) -> str:
    """Return a setting as a comment, and what is probably meant by one that is not known."""
    hint = f" (unknown; did you mean {one.near}?)" if one.near else ""
    return f"# {one.where}: {one.name}={one.value}{hint}"


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
    """Return a machine as a row of the list, with all that it has of each resource."""
    total = cluster.capacity.sum(axis=0).tolist()
    return {
        "name": cluster.name or name,
        "nodes": cluster.nodes,
        "resources": dict(zip(cluster.node_resources, total, strict=False)),
        "partitions": {one.name: len(one.nodes) for one in cluster.partitions},
        "queues": dict(cluster.queues),
        "node_w": _watts(cluster),
        "io_bandwidth_gb_s": cluster.io_bandwidth_gb_s,
    }


def _watts(cluster: Cluster) -> dict[str, float]:
    """Return the least and greatest power of a node by state, where groups of nodes tell it [W]."""
    powers = [group.power for group in cluster.groups if group.power is not None]
    if not powers:
        return {}
    return {
        "off": min(power.off_w for power in powers),
        "idle": min(power.idle_w for power in powers),
        "busy": max(power.busy_levels_w[-1] for power in powers),
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


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Print the list for people."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for key in ("name", "nodes", "resources", "queues", "power of a node"):
        table.add_column(key, justify="right" if key == "nodes" else "left")
    for row in rows:
        resources = (
            f"{amount / 1000:,.0f} GB mem" if name == "mem" else f"{amount:,} {name}"
            for name, amount in row["resources"].items()
        )
        waits = (f"{name} ({wait / 3600:g} h)" for name, wait in row["queues"].items())
        watts = (f"{state} {value:g} W" for state, value in row["node_w"].items())
        lists = (", ".join(cells) or "-" for cells in (resources, waits, watts))
        table.add_row(Text(row["name"]), Text(f"{row['nodes']:,}"), *map(Text, lists))
    output.console().print(table)
