"""The studies of constraint programming dispatchers by Remediani and Galleguillos, computed anew.

V. Remediani's thesis (document 000), chapters 3 to 5, and C. Galleguillos, Z. Kiziltan and R. Soto
(document 001). ``hpcgym reproduce cp`` runs them; from Python, ``reproduce`` in ``run`` does.
"""
