"""Studies of power, energy and fairness: D. Glesser's thesis, chapters 4 to 6 (Glesser 2016)."""
