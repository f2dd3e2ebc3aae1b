"""Things that learn to schedule, one readable file each; imported as ``hpcgym.agents``.

An agent stands on the library (``hpcgym``), which never imports it.
"""
