"""How Sphinx builds the site; `scripts/docs` calls it with the repository as its source."""

import re
from pathlib import Path
from typing import Any

from hpcgym.version import __version__

project = "hpcgym"
author = "the hpcgym developers"
licence = (Path(__file__).parents[1] / "LICENSE").read_text(encoding="utf-8")
copyright = re.findall(r"Copyright \(c\) (.+)", licence)[0]
version = release = __version__

# pages link to each other, and to files of the repository, as they lie there
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/README.md",
    "benchmarks/*/README.md",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
]
exclude_patterns = ["docs/conf.py"]

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = "build/docs-cells"
nb_execution_timeout = 600  # seconds a cell
nb_execution_in_temp = True
nb_merge_streams = True
numpydoc_show_class_members = False
autodoc_typehints = "none"  # docstrings tell types

html_theme = "furo"
html_title = f"hpcgym {release}"


#: Sections of docstrings that are lists of names.
LISTS = ("Attributes", "Parameters", "Raises", "Warns", "Yields")


def setup(app: Any) -> None:
    """Let numpydoc see what stands behind a colon as what a name means, and not as its type."""
    app.connect("autodoc-process-docstring", meanings, priority=100)


def meanings(app: Any, what: str, name: str, object: Any, options: Any, lines: list[str]) -> None:
    """Move the meaning of a name to the line below it, in the lists of a docstring."""
    section, parted = "", list[str]()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and not below.strip("-"):
            section = line
        named = re.fullmatch(r"(\S.*?) : (.*)", line) if section in LISTS else None
        parted += [named[1], f"    {named[2]}"] if named else [line]
    lines[:] = parted
