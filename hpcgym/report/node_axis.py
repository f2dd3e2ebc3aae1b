"""The axis of nodes: their names or numbers, where one ends, and what groups they belong to."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.naming import printable
from hpcgym.report.canvas import DARK_GREY, LIGHT_GREY, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.cluster.pool import Cluster

#: Nodes so high, in points, are numbered each and told apart by lines.
APART_POINTS = 9
_LINE_POINTS = 9.0  # of the text of a group


def label_nodes(axes: Axes, cluster: Cluster, rows: NDArray[np.int64]) -> None:
    """Write names or numbers of nodes at the left, and the names of their groups at the right.

    Parameters
    ----------
    rows : (nodes + 1,) the first row of each node, and the number of all: the axis counts cores,
        node after node, so that larger nodes are higher, or parts of nodes that jobs share.
    """
    figure = figure_of(axes)
    height_pt = axes.get_window_extent().height * 72 / figure.dpi
    axes.set_ylabel("node")
    nodes = cluster.nodes
    if height_pt / nodes >= APART_POINTS:
        named = np.arange(nodes)
        lanes = nodes < rows[-1] < cluster.processors  # have lines of their own
        colour = DARK_GREY if lanes else LIGHT_GREY
        across = axes.get_yaxis_transform()
        axes.hlines(rows[1:-1], 0, 1, colour, linewidth=0.6, transform=across, zorder=1.5)
    else:
        named = _round_numbers(nodes)
    names = cluster.node_names
    texts = [one if isinstance(one, str) else f"{one:,}" for one in (names[k] for k in named)]
    axes.set_yticks((rows[named] + rows[named + 1]) / 2, texts)
    if len(cluster.groups) > 1:
        _name_groups(axes, cluster, rows, height_pt)


def _round_numbers(nodes: int) -> NDArray[np.int64]:
    """Return some round numbers of nodes."""
    from matplotlib.ticker import MaxNLocator

    numbers = np.asarray(MaxNLocator(8, integer=True).tick_values(0, nodes - 1), np.int64)
    return numbers[(numbers >= 0) & (numbers < nodes)]


def _name_groups(axes: Axes, cluster: Cluster, rows: NDArray[np.int64], height_pt: float) -> None:
    """Write each group's name and size at its middle, or beside it where it is too narrow."""
    ends = np.concatenate(([0], np.cumsum([group.nodes for group in cluster.groups])))
    edges = rows[ends] / rows[-1]  # as shares of the axis
    across = axes.get_yaxis_transform()
    axes.hlines(edges[1:-1] * rows[-1], 0, 1, DARK_GREY, linewidth=0.8, transform=across)
    texts = [f"{printable(group.name)} ({group.nodes:,})" for group in cluster.groups]
    middles = [(low + high) / 2 for low, high in pairwise(edges.tolist())]
    for text, middle in zip(texts, _spread(middles, _LINE_POINTS / height_pt), strict=True):
        axes.annotate(
            text,
            (1, middle),
            (4, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            color=DARK_GREY,
            verticalalignment="center",
        )


def _spread(places: list[float], distance: float) -> list[float]:
    """Return rising places from 0 to 1 moved apart, by as little as one sweep up and down needs."""
    spread = list(places)
    for i in range(1, len(spread)):
        spread[i] = max(spread[i], spread[i - 1] + distance)
    limit = 1.0
    for i in reversed(range(len(spread))):
        spread[i] = min(spread[i], limit)
        limit = spread[i] - distance
    return spread
