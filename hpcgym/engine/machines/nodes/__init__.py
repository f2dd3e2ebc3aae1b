"""Nodes with several resources: which of them a job gets."""
