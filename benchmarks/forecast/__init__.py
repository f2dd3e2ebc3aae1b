"""Forecasts of starts: how good they are."""
