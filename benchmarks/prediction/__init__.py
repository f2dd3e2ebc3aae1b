"""The study of run time prediction by Gaussier, Glesser, Reis and Trystram, computed anew.

D. Glesser's thesis (Glesser 2016), chapter 7. ``hpcgym reproduce prediction`` runs it; from Python,
``reproduce`` in ``run`` does.
"""
