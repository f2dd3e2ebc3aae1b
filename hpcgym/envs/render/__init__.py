"""Environments as text and pictures."""
