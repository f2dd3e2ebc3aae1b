"""The study of mixed policies by Legrand, Trystram and Zrigui (Legrand et al. 2018), computed anew.

``hpcgym reproduce mixed-policies`` runs it; from Python, ``reproduce`` in ``run`` does, and
``Study`` in ``study`` is one trace under one reading of the paper.
"""
