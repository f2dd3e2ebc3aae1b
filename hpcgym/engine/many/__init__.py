"""Many simulations in one compiled call."""
