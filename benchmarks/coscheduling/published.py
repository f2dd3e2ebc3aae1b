"""What ELiSE prints of its results; nothing is computed from it but differences to ours."""

from __future__ import annotations

#: "MJS & MS correlation": mean job speedup of a workload -> makespan improvement over EASY [%].
IMPROVEMENTS = {1.07: 24.42, 1.10: 25.29, 1.12: 25.87, 1.15: 30.63}

#: "Performance": jobs -> cores -> simulated days an hour. It prints the same of FCFS and of EASY.
DAYS_AN_HOUR = {
    100: {256: 2038.66, 25_600: 147.75, 2_560_000: 226.52},
    1_000: {256: 838.74, 25_600: 14.31, 2_560_000: 12.56},
    10_000: {256: 45.84, 25_600: 0.58, 2_560_000: 0.83},
}
REPETITIONS = 50

#: "Real Workloads": trace -> scheduler -> simulated days an hour; and the jobs that it had there.
TRACES = {
    "SDSC-SP2": {"fcfs": 116.87, "easy": 117.77},
    "KIT-FH2": {"fcfs": 28.32, "easy": 27.19},
}
TRACE_JOBS = {"SDSC-SP2": 73_496, "KIT-FH2": 114_335}
