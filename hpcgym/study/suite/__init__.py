"""A benchmark suite: frozen tasks, submissions that others can prove, and their scores.

``tasks`` reads what an id stands for, ``agents`` what the name of an agent does, ``evaluation``
runs policies on slices, ``runs`` trains and plays an agent and writes ``submissions``, ``proofs``
proves these again without the agent, and ``board`` scores and compares.
``scripts/freeze_suite.py`` works out what a new id is to be frozen with.
"""
