"""numba's passes, with faster ones in place of three.

A part, of :func:`hpcgym.compilation.jit_part`, is copied to each place that calls it, block by
block. numba reads it anew for each of them, with the parts that it has itself; here it is read
once. numba copies with each block all variables of the part; here they are copied with none, since
a copy gets others in their place.

numba optimises each function with all that it calls: what is called through five others is
optimised six times, and made into machine code as often. Here this is done only with functions that
Python calls, and with them all that they call, once.

numba finds what a function of its own returns, such as the sum of two numbers, by trying all that
are registered for it, at each place again. Here each is found once for the same types.

Where a version of numba is built otherwise, its own passes are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.inline_closurecall import InlineWorker
from numba.core.typed_passes import NativeLowering, NopythonTypeInference
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineInlinables

_LINKED = "linked"  # a kind of library, beside those of numba

#: Whether this numba puts parts into functions as :class:`InlineParts` knows it.
_FITS = all(
    hasattr(owner, name)
    for owner, name in (
        (InlineInlinables, "_do_work"), (InlineWorker, "run_untyped_passes"),
        (FunctionIdentity, "_unique_ids"),
    )
)  # fmt: skip
#: Whether this numba optimises functions as :class:`LowerOnly` knows it.
_OPTIMISES = all(
    hasattr(JITCodeLibrary, f"_{name}")
    for name in (
        "optimize_final_module", "finalize_final_module", "finalize_dynamic_globals",
        "verify_declare_only_symbols", "get_module_for_linking",
    )
)  # fmt: skip
#: Whether this numba finds what its functions return as :class:`InferTypes` knows it.
_RESOLVES = all(
    "_impl_keys" in getattr(BaseFunction, name).__code__.co_names
    for name in ("get_call_type", "get_impl_key")
)


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineParts(InlineInlinables):
    """numba's pass, with parts that are read once, and whose variables are not copied."""

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


#: Parts that have been read: each with its variables, which are put into whom it is copied to.
_read: dict[Any, tuple[Any, Any, dict[str, Any]]] = {}


def _reading(read: Any) -> Any:
    """Return what reads a part once, and lets copies of it share the variables."""

    def read_part(function: Any, *options: Any) -> Any:
        if function not in _read:
            found = read(function, *options)
            scope = next(iter(found.blocks.values())).scope  # a function has one
            scope.__deepcopy__ = lambda memo: scope
            _read[function] = found, scope, dict(scope.localvars._con)
        found, scope, variables = _read[function]
        scope.localvars._con = dict(variables)  # without those of copies
        return _named_anew(found)

    return read_part


def _named_anew(found: Any) -> Any:
    """Return what has been read with a name of its own: the variables of a copy have it, too."""
    found = copy(found)
    found.func_id = copy(found.func_id)
    found.func_id.unique_name = (
        f"{found.func_id.func_qualname}${next(FunctionIdentity._unique_ids)}"
    )
    return found


def _with_parts(manager: Any) -> Any:
    """Return a list of passes with :class:`InlineParts`."""
    return _put(manager, InlineParts, InlineInlinables)


def _put(manager: Any, ours: type, theirs: type) -> Any:
    """Put a pass into a list of passes in place of another; return the list."""
    manager.passes = [(ours if one is theirs else one, words) for one, words in manager.passes]
    return manager


#: What numba's functions return: signatures by function, typing context and types of arguments.
_found: dict[Any, Any] = {}
_get_call_type: Any = BaseFunction.get_call_type
_PLAIN = (types.Number, types.Boolean, types.Array)


def _call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call as numba does, found once where nothing else decides it."""
    if kws or not all(isinstance(one, _PLAIN) for one in args):
        return _get_call_type(function, context, args, kws)
    key = function, context, tuple(args)
    signature = _found.get(key)
    if signature is not None:
        function._impl_keys[signature.args] = function.typing_key
        return signature
    signature = _get_call_type(function, context, args, kws)
    if function.get_impl_key(signature) is function.typing_key:
        _found[key] = signature  # others are compiled from Python, as whoever calls them is
    return signature


@contextmanager
def _finding_once() -> Iterator[None]:
    """Find signatures by :func:`_call_type`; numba has one thread compile at a time."""
    owner: Any = BaseFunction
    before = owner.get_call_type
    owner.get_call_type = _call_type
    try:
        yield
    finally:
        owner.get_call_type = before


@register_pass(mutates_CFG=True, analysis_only=False)
class InferTypes(NopythonTypeInference):
    """numba's pass, which finds once what each of numba's functions returns."""

    _name = "infer_types"

    def run_pass(self, state: Any) -> Any:
        """Do as numba does."""
        with _finding_once():
            return super().run_pass(state)


class Linked(JITCodeLibrary):
    """What LLVM is told of a function that only compiled code calls: no machine code is made of it.

    It is linked into each function that calls it, and optimised there.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.enable_object_caching()  # as numba does

    @property
    def codegen(self) -> Any:
        """Return what is told which constants a function has: there is nothing to be told."""
        return _NotRun

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, numba's word for a function that is not there."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """Return what can be pickled, of which :func:`rebuild` makes this again."""
        return self.name, _LINKED, self._get_module_for_linking().as_bitcode()

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        """Return what has been pickled."""
        name, _, code = state
        self = cls(codegen, name)
        self._final_module = llvm.parse_bitcode(code)
        self._finalize_final_module()
        return self

    def _optimize_final_module(self) -> None:
        """Optimise nothing."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _NotRun:
    """Stands for numba's engine, which runs functions."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Do nothing."""


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerOnly(NativeLowering):
    """numba's pass that makes code for LLVM, which compiles it only where Python calls it."""

    _name = "lower_only"

    def run_pass(self, state: Any) -> Any:
        """Do as numba does, and leave what only compiled code calls as it is."""
        if state.library is None and state.flags.no_cpython_wrapper:
            state.library = Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        done = super().run_pass(state)
        if not isinstance(state.library, Linked):
            _tell_environments(state.library)
        return done


def _tell_environments(library: Any) -> None:
    """Tell numba's engine of the constants of all functions that have been linked in."""
    for variable in library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        if environment is not None:
            library.codegen.set_env(variable.name, environment)


def rebuild(target: Any, library: Any, *others: Any) -> Any:
    """Return what is compiled of a function from what can be pickled, as numba does."""
    if library[1] != _LINKED:
        return CompileResult._rebuild(target, library, *others)
    return CompileResult._rebuild(_Linking(target), library, *others)._replace(
        target_context=target
    )


class _Linking:
    """numba's target, with a :class:`Linked` where numba makes a library of its own."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def codegen(self) -> Any:
        """Return what makes a library again."""
        return self

    def unserialize_library(self, state: Any) -> Any:
        """Return a :class:`Linked` from what can be pickled."""
        return Linked._unserialize(self._target.codegen(), state)


class Pipeline(Compiler):
    """numba's passes, with :class:`InlineParts`, :class:`InferTypes` and :class:`LowerOnly`."""

    def define_pipelines(self) -> Any:
        """Return the lists of passes; see numba's "Customizing the Compiler"."""
        lists = super().define_pipelines()
        if _FITS:
            lists = [_with_parts(manager) for manager in lists]
        if _RESOLVES:
            for manager in lists:
                _put(manager, InferTypes, NopythonTypeInference)
        if _OPTIMISES:
            for manager in lists:
                _put(manager, LowerOnly, NativeLowering)
        return lists
