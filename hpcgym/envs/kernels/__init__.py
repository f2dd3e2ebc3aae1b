"""The compiled steps of environments."""
