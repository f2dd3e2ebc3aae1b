"""Dispatchers that solve a CP-SAT model: those of Remediani 2017 and Galleguillos 2020."""
