"""What environments share: options, episodes, state, snapshots."""
