"""Schedules to look into: one page that zooms to each job, and the same as a live app."""

from hpcgym.explore.page import page, show, write_page

__all__ = ["page", "show", "write_page"]
