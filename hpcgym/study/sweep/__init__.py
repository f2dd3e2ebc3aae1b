"""Many simulations: batches of weights in this process, sweeps of tasks on any executor."""

#: Columns of the table of a sweep that say what schedulers are compared on.
OF_GROUPS = ("workload", "speedups", "limits")
#: Those that tell apart the simulations that are compared there.
OF_JOBS = ("slice", "seed", "shuffle")
