"""What published studies that are computed anew share: kept steps, tasks, tables, pictures.

What a report says stands in Markdown beside its study, and what a document prints in CSV.
"""
