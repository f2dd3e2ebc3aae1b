"""numba's passes, but for two that do the same in less time.

A part, of :func:`hpcgym.compilation.jit_part`, is read anew at each place that calls it, and copied
there block by block. numba copies with each block all variables of the part; here they are copied
with none, since nobody has the part that was read beside its copy.

numba optimises each function with all that it calls: what is called through five others is
optimised six times. Here only functions that Python calls are optimised so, and with them all that
they call, once.

A numba that does it otherwise does it as it likes, in its own time.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.inline_closurecall import InlineWorker
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import InlineInlinables

#: Whether this numba puts parts into functions as :class:`InlineParts` knows it.
_FITS = hasattr(InlineInlinables, "_do_work") and hasattr(InlineWorker, "run_untyped_passes")
#: Whether this numba optimises functions as :class:`LowerOnly` knows it.
_OPTIMISES = hasattr(CPUCodeLibrary, "_optimize_final_module")


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
    """Return a list of passes with :class:`InlineParts`."""
    return _put(manager, InlineParts, InlineInlinables)


def _put(manager: Any, ours: type, theirs: type) -> Any:
    """Put a pass into a list of passes in place of another; return the list."""
    manager.passes = [(ours if one is theirs else one, words) for one, words in manager.passes]
    return manager


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerOnly(NativeLowering):
    """numba's pass that makes code for LLVM, which optimises it only where Python calls it."""

    _name = "lower_only"

    def run_pass(self, state: Any) -> Any:
        """Do as numba does, and leave what only compiled code calls as it is."""
        if state.library is None and state.flags.no_cpython_wrapper:
            library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
            library.enable_object_caching()  # as numba does
            library._optimize_final_module = _nothing
            state.library = library
        return super().run_pass(state)


def _nothing() -> None:
    """Optimise nothing."""


class Pipeline(Compiler):
    """numba's passes, with :class:`InlineParts` and :class:`LowerOnly`."""

    def define_pipelines(self) -> Any:
        """Return the lists of passes; see numba's "Customizing the Compiler"."""
        lists = super().define_pipelines()
        if _FITS:
            lists = [_with_parts(manager) for manager in lists]
        if _OPTIMISES:
            for manager in lists:
                _put(manager, LowerOnly, NativeLowering)
        return lists
