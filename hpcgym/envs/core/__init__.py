"""What environments share, from their arguments to what a step tells.

``base`` reads arguments. ``slices``, ``surroundings``, ``samplers`` and ``episodes`` say which jobs
an episode has. ``machines`` and ``model`` make what the engine is told, and ``simulations`` steps
it and copies it. ``observation``, ``reward`` and ``infos`` are what an agent is given.
"""
