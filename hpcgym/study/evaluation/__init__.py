"""Leaderboards: policies, agents and references on the same unseen slices of a workload."""
