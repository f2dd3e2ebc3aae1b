"""Answers that a simulation is given as it runs: predictions, users' shares."""
