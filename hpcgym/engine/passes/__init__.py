"""What scheduling passes on different machines have in common."""
