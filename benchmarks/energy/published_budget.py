"""What Glesser 2016, chapter 5, prints of energy budgets; nothing is computed from it.

Figures 5.1 to 5.3 have no numbers.
"""

from __future__ import annotations

#: Table 5.1: measure -> mechanism -> change when idle nodes are switched off [%].
TABLE_5_1 = {
    "AVEbsld": {"powercap": 0.27, "energyBud": -9.83, "reducePC": 1.91},
    "utilisation": {"powercap": -0.37, "energyBud": 2.05, "reducePC": 1.22},
    "jobs started": {"powercap": -0.13, "energyBud": 1.66, "reducePC": 1.67},
    "energy": {"powercap": -4.62, "energyBud": -1.32, "reducePC": -1.79},
}
