"""What files of Slurm say: machines, partitions and scheduling of a slurm.conf."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
