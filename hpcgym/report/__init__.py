"""Tables and pictures of results.

Pictures need matplotlib, the extra ``report``. It is imported when the first one is
drawn, without its global state, so that pictures can be drawn without a display and in threads.
"""

from hpcgym.report.class_waits import draw_class_waits
from hpcgym.report.distribution import draw_bsld
from hpcgym.report.figures import save_figures
from hpcgym.report.gantt import draw_gantt
from hpcgym.report.job_speedups import draw_job_speedups, draw_slowed
from hpcgym.report.overview import save_picture
from hpcgym.report.power import draw_power
from hpcgym.report.speedups import draw_speedups
from hpcgym.report.tables import metrics_table
from hpcgym.report.timeline import (
    draw_nodes_in_use,
    draw_queue_length,
    draw_throughput,
    draw_utilization,
)

__all__ = [
    "draw_bsld",
    "draw_class_waits",
    "draw_gantt",
    "draw_job_speedups",
    "draw_nodes_in_use",
    "draw_power",
    "draw_queue_length",
    "draw_slowed",
    "draw_speedups",
    "draw_throughput",
    "draw_utilization",
    "metrics_table",
    "save_figures",
    "save_picture",
]
