"""What a simulation returns: the schedule, its metrics, its energy."""
