"""A pool of processors that are all alike."""
