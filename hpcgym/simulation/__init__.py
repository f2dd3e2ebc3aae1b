"""From a workload and a scheduler to arrays, through the engine, to a schedule."""
