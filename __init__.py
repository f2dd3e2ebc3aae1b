"""Stands for the package where Python runs in the folder above a clone that is called hpcgym.

There Python takes the clone for the package: it comes before what is installed editable. This loads
what is installed, or the package in the clone.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location

if __name__ == "hpcgym":
    _clone = os.path.dirname(os.path.realpath(__file__))
    _above = os.path.dirname(os.path.abspath(__file__))
    _others = [path for path in sys.path if os.path.abspath(path) != os.path.dirname(_above)]
    _spec = PathFinder.find_spec(__name__, _others)
    if _spec is None or _spec.loader is None:
        _package = os.path.join(_clone, "hpcgym")
        _init = os.path.join(_package, "__init__.py")
        _spec = spec_from_file_location(__name__, _init, submodule_search_locations=[_package])
    assert _spec is not None
    assert _spec.loader is not None
    # whoever imports a module gets what stands under its name once it has been loaded
    sys.modules[__name__] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[__name__])
