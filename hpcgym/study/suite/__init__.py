"""A benchmark suite: frozen tasks, submissions that others can prove, and their scores.

``tasks`` reads what an id stands for, ``evaluation`` runs policies on its slices, ``submissions``
evaluates an agent and writes what it did, ``proofs`` proves that again without the agent, and
``board`` scores and compares. ``scripts/freeze_suite.py`` works out what a new id is to be frozen
with.
"""
