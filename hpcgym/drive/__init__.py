"""A policy drives a Slurm that runs: it orders the queue, and Slurm does all else."""

from hpcgym.drive.driving import DrivenPass, Driver, drive, driven, look

__all__ = ["DrivenPass", "Driver", "drive", "driven", "look"]
