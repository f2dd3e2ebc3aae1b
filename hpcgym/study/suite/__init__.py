"""A benchmark suite: frozen tasks, submissions that others can prove, and their scores.

``tasks`` reads what an id stands for, ``ground`` is where a task is played, ``submissions`` plays
an agent and writes what it did, ``proofs`` proves that again without the agent, and ``board``
scores and compares. ``scripts/freeze_suite.py`` works out what a new id is to be frozen with.
"""
