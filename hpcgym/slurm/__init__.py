"""What a Slurm that runs tells: its programs, its jobs, its nodes, when it backfills.

``programs`` runs those that only look, ``queue`` reads jobs, ``looks`` asks for all of it at once,
and ``present`` makes of it the jobs and the machine that simulations begin with.
"""
