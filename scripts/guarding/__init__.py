"""The guard: hashes of many small simulations, by which two trees of hpcgym are compared."""
