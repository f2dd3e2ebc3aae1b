"""What published studies that are computed anew share: kept steps, tasks, tables, pictures."""
