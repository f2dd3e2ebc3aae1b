"""What rules of a scheduler reach on whole logs: slowdowns, waits, tails, and who pays.

``hpcgym reproduce frontier`` runs it; from Python, ``reproduce`` in ``run`` does.
"""
