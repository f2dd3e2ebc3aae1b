"""Power over time: what is drawn is what the books say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from mistakes import mistakes_of

import hpcgym
from hpcgym.explore import page
from hpcgym.report import draw_power
from hpcgym.report.canvas import time_axis
from hpcgym.report.tables import in_order
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import NodeStates


def on_taurus(jobs: int = 40) -> Result:
    workload = hpcgym.load_workload(f"lublin:jobs={jobs},processors=192,load=0.5,seed=3")
    return hpcgym.simulate(workload, "easy", cluster="taurus")


def test_areas_are_the_energies() -> None:
    result = on_taurus()
    axes = draw_power(result)
    scale = {"W": 1, "kW": 1e3, "MW": 1e6}[axes.get_ylabel()[7:-1]]
    areas = {}
    for part in axes.collections:
        assert isinstance(part, PolyCollection)
        x, y = part.get_paths()[0].vertices.T
        # the area of a polygon, in units of the axes
        area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
        areas[str(part.get_label())] = area * scale
    unit_s = time_axis({"taurus": result}).unit_s
    energy = result.books.by_state
    assert {"idle", "busy"} == {*areas}
    for name, area in areas.items():
        assert area * unit_s == pytest.approx(energy[name], rel=1e-9)


def test_many_changes_are_summed_up() -> None:
    axes = draw_power(on_taurus(2000))
    names = axes.get_legend_handles_labels()[1]
    assert names[0] == "greatest"
    assert {"busy", "idle"} <= {*names}
    assert axes.get_ylabel().startswith("power (kW),\nmeans of ")
    highest = max(patch.get_data().values.max() for patch in axes.patches)  # type: ignore[attr-defined]
    assert highest == pytest.approx(16 * 190.738 / 1e3)


def test_states_and_frequencies_have_names() -> None:
    workload = hpcgym.load_workload("lublin:jobs=5,processors=80640,seed=3")
    result = hpcgym.simulate(workload, "easy", cluster="curie")
    (metric,) = in_order(result.metrics)[-1:]
    assert (metric.name, metric.heading) == ("energy_components_j", "energy components (MWh)")
    last = int(result.end.max())
    states = NodeStates([5038, 5039], [0, 1], [last - 5, last - 5], [last, last])
    result = replace(result, node_states=states, frequency=np.arange(5))
    names = draw_power({"mine": result}).get_legend_handles_labels()[1]
    assert names[0] == "components above nodes"
    assert {"busy at 1.2 GHz", "switching off", "off", "idle"} <= {*names}


def test_the_page_has_a_picture_where_nodes_have_power() -> None:
    result = on_taurus()
    assert "Power over time, easy" in page({"easy": result}, report=True)
    flat = hpcgym.simulate(result.workload, "easy")
    assert "Power over time, easy" not in page({"easy": flat}, report=True)


test_mistakes = mistakes_of(globals())
