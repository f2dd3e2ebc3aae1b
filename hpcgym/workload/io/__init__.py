"""Files of workloads: SWF, tables, JSON."""
