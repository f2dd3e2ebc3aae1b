"""Machines as the engine knows them, a folder each: what a pass does on them."""
