"""Tables and pictures of results.

Pictures need matplotlib, the extra ``report``. It is imported when the first one is
drawn, without its global state, so that pictures can be drawn without a display and in threads.
"""

from hpcgym.report.distribution import draw_bsld, draw_job_speedups, draw_speedups
from hpcgym.report.gantt import draw_gantt
from hpcgym.report.overview import save_figures, save_picture
from hpcgym.report.tables import metrics_table
from hpcgym.report.timeline import (
    draw_power,
    draw_queue_length,
    draw_utilization,
)

__all__ = [
    "draw_bsld",
    "draw_gantt",
    "draw_job_speedups",
    "draw_power",
    "draw_queue_length",
    "draw_speedups",
    "draw_utilization",
    "metrics_table",
    "save_figures",
    "save_picture",
]
