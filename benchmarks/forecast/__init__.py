"""Forecasts of starts on real logs: all methods, what wrong rules cost, and how good they could be.

``python -m hpcgym.benchmarks.forecast.run --help`` has the commands.
"""
