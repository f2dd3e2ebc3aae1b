"""RLScheduler's published networks, in its rules and in ours, on its jobs and on others.

``hpcgym reproduce rlscheduler --models FOLDER`` runs it; from Python, ``reproduce`` in ``run``.
"""
