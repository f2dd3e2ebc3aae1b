"""Nodes that jobs share, and so run slower."""
