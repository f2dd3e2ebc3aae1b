"""The class docstrings of environments."""
