"""A policy drives a Slurm that runs: it orders the queue, and Slurm does all else."""

from hpcgym.drive.driving import Asked, Driver, drive, driven, look

__all__ = ["Asked", "Driver", "drive", "driven", "look"]
