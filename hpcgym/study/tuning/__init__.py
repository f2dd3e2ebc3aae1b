"""A scheduler for one's own log: searched on early weeks, judged on later ones."""
