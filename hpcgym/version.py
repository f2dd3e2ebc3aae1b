"""The version, and when hpcgym was imported; alone, so that neither imports anything else of it."""

import time

__version__ = "0.1.0"

#: [s] since 1970, before all that is compiled: what is written later may or may not be what this
#: process has.
IMPORTED_AT = time.time()
