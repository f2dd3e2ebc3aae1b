"""The errors that a user can cause, each one clear line."""


class HpcgymError(ValueError):
    """Bad input: a file, an argument or a workload that cannot be used.

    The message names the file, line or argument; the command line prints it without a traceback.
    """


class WorkloadError(HpcgymError):
    """A workload that cannot be read, or cannot be simulated."""
