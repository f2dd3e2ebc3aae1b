"""Workloads made by models."""
