"""The studies of constraint programming dispatchers by Remediani and Galleguillos, computed anew.

V. Remediani's thesis (Remediani 2017), chapters 3 to 5, and C. Galleguillos, Z. Kiziltan and R.
Soto (Galleguillos 2020). ``hpcgym reproduce cp`` runs them; in Python, ``reproduce`` in ``run``.
"""
