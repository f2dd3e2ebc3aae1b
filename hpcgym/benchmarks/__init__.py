"""Published studies computed anew, each a package of the repository's folder ``benchmarks``."""
