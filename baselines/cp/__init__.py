"""The dispatchers of documents 000 and 001 that solve a constraint-programming model (CP-SAT)."""
