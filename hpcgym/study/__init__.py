"""Many runs, compared: sweeps, leaderboards, the benchmark suite and tuning.

``sweep`` simulates many schedulers on any executor, ``evaluation`` compares policies on the same
unseen slices of a workload, ``suite`` is a benchmark of frozen tasks whose submissions others can
prove, ``tuning`` searches a scheduler for one's own log, ``calibration`` settings that explain
that log's past. Sweeps and tuning share ``executors``, all share ``intervals``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
