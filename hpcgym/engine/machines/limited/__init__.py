"""Whole nodes under limits of power and energy."""
