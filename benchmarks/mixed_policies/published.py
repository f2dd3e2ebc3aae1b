"""What the paper prints. These numbers are only shown beside ours; nothing is computed from them.

A. Legrand, D. Trystram and S. Zrigui: Adapting Batch Scheduling to Workload Characteristics: What
can we expect From Online Learning? Inria research report 9212, 2018.
"""

from __future__ import annotations

#: Section 7.2.1: weeks of training and testing; section 9.3 halves the weeks of other traces.
SPLIT = {"SDSC-SP2": ((28, 64), (65, 100))}

#: Section 7.3: the weeks of figure 4.
MAPPED = {"SDSC-SP2": (70, 71, 72, 73)}

#: Table 1: jobs, their mean run time [s] and mean number of processors.
JOBS = {
    "KTH-SP2": (27_670, 8_579, 8),
    "CTC-SP2": (68_687, 9_807, 10),
    "SDSC-SP2": (49_809, 6_318, 12),
    "SDSC-BLUE": (208_716, 3_184, 40),
}

#: Section 10: the thresholds [s] of the columns of tables 3 to 6; None is without.
THRESHOLDS = (None, 200_000, 72_000)

#: Which table compares thresholds on a trace.
THRESHOLD_TABLE = {"SDSC-SP2": 3, "SDSC-BLUE": 4, "KTH-SP2": 5, "CTC-SP2": 6}

#: Table 2: sum of the weekly mean BSLD over the weeks of training and of testing.
TABLE_2 = {
    "SDSC-SP2": {
        "w*": (376.67, 357.51),
        "w*_train": (682.11, 778.44),
        "saf": (691.10, 721.54),
        "spf": (706.24, 787.92),
        "w_greedy": (818.71, 902.55),
        "lexp": (820.94, 934.21),
        "sqf": (970.49, 869.41),
        "sexp": (1016.52, 1204.73),
        "lrf": (1041.18, 1134.92),
        "srf": (1147.96, 1114.46),
        "fcfs": (1180.24, 1398.13),
        "lpf": (1239.79, 1483.35),
        "lqf": (1702.14, 2191.97),
        "laf": (2109.84, 2355.16),
    }
}

#: Tables 3 to 6: sums over all weeks, a column for each of THRESHOLDS. Each column is in rising
#: order, and the policies are in the order of the first: see ``tables.thresholds``.
TABLES_3_TO_6 = {
    "SDSC-SP2": {
        "saf": (1461.39, 1585.53, 2395.29),
        "spf": (1467.70, 1689.55, 2447.58),
        "lcfs": (1739.24, 1940.71, 2471.02),
        "lexp": (1936.93, 1955.04, 2496.97),
        "sqf": (1988.62, 2082.25, 2579.47),
        "srf": (2426.40, 2475.90, 2818.35),
        "sexp": (2519.32, 2484.96, 2864.63),
        "lrf": (2726.74, 2517.65, 2875.95),
        "fcfs": (2864.63, 2864.63, 2879.22),
        "lpf": (3277.66, 3020.96, 3064.14),
        "lqf": (4188.31, 4159.97, 3346.24),
        "laf": (5322.73, 4811.85, 3525.13),
    },
    "SDSC-BLUE": {
        "saf": (302.73, 311.83, 344.51),
        "spf": (329.95, 328.88, 350.36),
        "lexp": (384.27, 383.99, 396.27),
        "lcfs": (388.40, 392.03, 407.91),
        "sqf": (395.27, 401.76, 416.65),
        "srf": (409.12, 418.78, 431.64),
        "sexp": (468.82, 473.94, 465.08),
        "fcfs": (487.37, 487.37, 487.37),
        "lqf": (494.14, 493.77, 508.77),
        "lrf": (522.95, 526.12, 514.99),
        "lpf": (566.17, 554.11, 563.42),
        "laf": (582.87, 578.66, 563.43),
    },
    "KTH-SP2": {
        "saf": (501.16, 507.76, 632.93),
        "spf": (554.63, 571.57, 638.55),
        "lexp": (568.07, 573.80, 651.27),
        "srf": (600.80, 590.25, 651.45),
        "lcfs": (679.75, 692.97, 768.40),
        "sqf": (772.55, 775.86, 784.52),
        "lqf": (797.87, 796.77, 786.36),
        "fcfs": (850.16, 850.16, 850.16),
        "sexp": (882.39, 886.61, 889.64),
        "lrf": (1001.39, 961.17, 917.95),
        "lpf": (1066.83, 1023.84, 963.46),
        "laf": (1076.52, 1026.10, 976.46),
    },
    "CTC-SP2": {
        "saf": (190.95, 191.24, 219.51),
        "sqf": (238.50, 235.10, 248.85),
        "spf": (254.26, 251.65, 251.64),
        "lexp": (273.20, 273.20, 252.27),
        "lcfs": (276.91, 277.79, 273.96),
        "srf": (281.82, 280.94, 283.89),
        "sexp": (330.40, 325.02, 292.36),
        "lqf": (346.15, 346.27, 292.84),
        "lpf": (356.77, 357.75, 313.92),
        "fcfs": (357.75, 358.56, 341.83),
        "lrf": (366.45, 370.98, 357.75),
        "laf": (466.47, 466.42, 386.57),
    },
}

#: Table 7: the jobs of SDSC-SP2 with the longest run times: number, submit time [s], run time [s],
#: processors.
TABLE_7 = {
    "SDSC-SP2": (
        (28663, 14837924, 510209, 9),
        (28664, 14837963, 508420, 16),
        (8040, 7660725, 474510, 6),
        (25891, 13785409, 452520, 60),
        (9036, 8427638, 227033, 64),
        (31620, 17005431, 162564, 4),
        (31623, 17005453, 162536, 32),
        (17, 577685, 118561, 5),
        (14408, 12186754, 114369, 8),
        (34441, 19458401, 112013, 64),
    )
}
