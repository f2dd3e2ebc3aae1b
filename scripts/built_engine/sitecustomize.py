"""On the path of Python: the engine of HPCGYM_BUILT_ENGINE in place of the installed one."""

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from typing import Any


class BuiltEngine:
    """Finds that module alone."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where it is."""
        if name != "hpcgym._engine":
            return None
        return spec_from_file_location(name, os.environ["HPCGYM_BUILT_ENGINE"])


if "HPCGYM_BUILT_ENGINE" in os.environ:
    sys.meta_path.insert(0, BuiltEngine)
