"""How numba puts the parts of a function into it: as it does by itself, but in less time.

A part, of :func:`hpcgym.compilation.jit_part`, is read anew at each place that calls it, and copied
there block by block. numba copies with each block all variables of the part; here they are copied
with none, since nobody has the part that was read beside its copy. What comes of it is the same.
A numba that does it otherwise does it as it likes, in its own time.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.inline_closurecall import InlineWorker
from numba.core.untyped_passes import InlineInlinables

#: Whether this numba puts parts into functions as :class:`InlineParts` knows it.
_FITS = hasattr(InlineInlinables, "_do_work") and hasattr(InlineWorker, "run_untyped_passes")


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineParts(InlineInlinables):
    """numba's pass, with parts whose variables are not copied."""

    _name = "inline_parts"

    def _do_work(
        self, state: Any, work_list: Any, block: Any, i: int, expr: Any, worker: Any
    ) -> Any:
        """Do as numba does, with parts that are read by :func:`_reading`."""
        if "run_untyped_passes" not in vars(worker):
            worker.run_untyped_passes = _reading(worker.run_untyped_passes)
            worker._compiler_pipeline = lambda state: _with_parts(
                DefaultPassBuilder.define_untyped_pipeline(state)
            )
        return super()._do_work(state, work_list, block, i, expr, worker)


def _reading(read: Any) -> Any:
    """Return what reads a part, and lets copies of it share the variables."""

    def read_part(*arguments: Any, **options: Any) -> Any:
        found = read(*arguments, **options)
        for block in found.blocks.values():
            scope = block.scope
            scope.__deepcopy__ = lambda memo, scope=scope: scope
        return found

    return read_part


def _with_parts(manager: Any) -> Any:
    """Put :class:`InlineParts` into a list of passes, in place of what it is made of."""
    manager.passes = [
        (InlineParts if one is InlineInlinables else one, words) for one, words in manager.passes
    ]
    return manager


class Pipeline(Compiler):
    """numba's passes, with :class:`InlineParts`."""

    def define_pipelines(self) -> Any:
        """Return the lists of passes; see numba's "Customizing the Compiler"."""
        lists = super().define_pipelines()
        return [_with_parts(manager) for manager in lists] if _FITS else lists
