"""On the path of Python: a module from the file that HPCGYM_INSTEAD says, MODULE=FILE.

So tests run on another engine than the installed one, or on a module with a mistake in it.
"""

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from typing import Any

module, _, file = os.environ.get("HPCGYM_INSTEAD", "").partition("=")


class Instead:
    """Finds that module alone."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where it is."""
        return spec_from_file_location(name, file) if name == module else None


if module:
    sys.meta_path.insert(0, Instead)
