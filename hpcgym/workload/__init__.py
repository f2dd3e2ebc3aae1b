"""Workloads: logs, cleaning them, slices and extracts, the archive of real traces, generators."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
