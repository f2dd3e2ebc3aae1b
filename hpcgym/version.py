"""The version; alone, so that it imports nothing else of hpcgym."""

__version__ = "0.1.0"
