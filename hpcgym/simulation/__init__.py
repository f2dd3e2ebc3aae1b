"""From a workload, a scheduler and a machine to a schedule, by the engine.

What others use of it: ``run`` has :func:`hpcgym.simulate` and what is learned before a time,
``continued`` extracts of simulations, ``batch`` many weights at once, and ``driver`` a simulation
to drive: ``new_simulation``, one by weights that are said as it runs (``by_weights``), and the
order of a queue as it is (``order_of``). Environments tell the engine of all episodes at once, and
so use the parts: ``prepare``, and a module for each kind of machine.
"""
