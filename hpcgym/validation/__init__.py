"""Proofs that a schedule is what its rules say; it shares no code with the engine."""
