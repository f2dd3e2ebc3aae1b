"""Compiled functions on several threads, without compiling them a second time.

numba's ``prange`` compiles its body anew, with all that it calls: some tens of seconds for an
environment. Here one small loop, which is compiled once for all, calls what has been compiled
already: :func:`_note` writes down where a function is and with which arguments it is to be called,
and each thread reads that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import get_num_threads, prange, set_num_threads
from numba.core import cgutils, types
from numba.extending import intrinsic

from hpcgym.compilation import config, jit_entry, jit_parallel

_intrinsic: Any = intrinsic
_WORKER = types.UniTuple(types.int64, 2)  # a thread's number, and that of all

# A note is an array of words. What is in it, from which word on: the function that reads it and
# makes the call, a hash of the types of the arguments, the function that is called, whether a call
# has failed, the arguments.
_CALLER, _KIND, _ADDRESS, _FAILED, _ARGUMENTS = range(5)
_WORDS = 8192  # more than the arguments of any function take
_WORD = ir.IntType(64)
_OF_CALLER = ir.FunctionType(ir.VoidType(), [_WORD.as_pointer(), _WORD, _WORD])


def on_threads(work: Any) -> Callable[..., None]:
    """Return what calls ``work(worker, n_workers, *arguments)`` on a thread for each worker.

    It takes the number of workers, up to ``numba.get_num_threads()``, and the arguments. With
    several, it raises a RuntimeError where one of them does, and each does what it can of its own.

    Parameters
    ----------
    work : of :func:`hpcgym.compilation.jit_entry`; it must return nothing.
    """
    addresses: dict[int, int] = {}  # by the types of arguments

    def call(n_workers: int, *arguments: Any) -> None:
        if n_workers == 1 or config.DISABLE_JIT:
            for worker in range(n_workers):
                work(worker, n_workers, *arguments)
            return
        note = np.empty(_WORDS, np.int64)
        _note_call(note, arguments)
        kind = int(note[_KIND])
        if kind not in addresses:
            addresses[kind] = _address_of(work, arguments)
        note[_ADDRESS], note[_FAILED] = addresses[kind], 0
        with _threads(n_workers):
            _call_all(note, n_workers)
        if note[_FAILED]:
            raise RuntimeError(f"{work.__name__} failed on a thread; on one thread it says why")

    return call


def _address_of(work: Any, arguments: tuple[Any, ...]) -> int:
    """Return where a function is that is compiled for such arguments, behind two whole numbers."""
    kinds = (*_WORKER, *(work.typeof_pyval(one) for one in arguments))
    work.compile(kinds)
    found = work.overloads[kinds]
    if found.signature.return_type != types.none:
        raise TypeError(f"{work.__name__} returns something: there is no room for it on threads")
    address: int = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
    if not address:
        raise RuntimeError(f"{work.__name__}: numba does not say where it is")
    return address


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Let numba use that many threads."""
    before = get_num_threads()
    if number != before:
        set_num_threads(number)
    try:
        yield
    finally:
        if number != before:
            set_num_threads(before)


@_intrinsic
def _note(typing: Any, note: Any, arguments: Any) -> Any:
    """Write down a call: what is to make it, the types of its arguments, and these."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        note, values = given
        start = context.make_array(signature.args[0])(context, builder, note).data
        start = builder.bitcast(start, _WORD.as_pointer())
        if context.get_abi_sizeof(values.type) > 8 * (_WORDS - _ARGUMENTS):
            raise ValueError("the arguments are larger than what they are written down in")
        caller = _caller(context, builder.module, signature.args[1], values.type)
        builder.store(builder.ptrtoint(caller, _WORD), _behind(builder, start, _CALLER))
        kind = hashlib.sha256(_text_of(signature.args[1]).encode()).digest()[:8]
        number = ir.Constant(_WORD, int.from_bytes(kind, "little"))
        builder.store(number, _behind(builder, start, _KIND))
        place = _behind(builder, start, _ARGUMENTS)
        builder.store(values, builder.bitcast(place, values.type.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.none(note, arguments), generate


def _text_of(arguments: Any) -> str:
    """Return what tells types of arguments apart; the name of a class alone does not."""
    classes = [getattr(one, "instance_class", object) for one in arguments]
    return f"{arguments} {[(cls.__module__, cls.__qualname__) for cls in classes]}"


def _behind(builder: Any, start: Any, words: int) -> Any:
    """Return where something stands that many words behind ``start``."""
    return builder.gep(start, [ir.Constant(_WORD, words)])


def _caller(context: Any, module: Any, arguments: Any, kind: Any) -> Any:
    """Return a function of a note, a worker and their number that makes the call."""
    caller = ir.Function(module, _OF_CALLER, module.get_unique_name("call_noted"))
    caller.linkage = "internal"
    builder = ir.IRBuilder(caller.append_basic_block())
    start, worker, n_workers = caller.args
    kinds = (*_WORKER, *arguments)
    called = context.call_conv.get_function_type(types.none, kinds).as_pointer()
    address = builder.inttoptr(builder.load(_behind(builder, start, _ADDRESS)), called)
    place = builder.bitcast(_behind(builder, start, _ARGUMENTS), kind.as_pointer())
    values = cgutils.unpack_tuple(builder, builder.load(place, align=8), len(arguments))
    status, _ = context.call_conv.call_function(
        builder, address, types.none, kinds, [worker, n_workers, *values]
    )
    with builder.if_then(status.is_error):
        builder.store(ir.Constant(_WORD, 1), _behind(builder, start, _FAILED))
    builder.ret_void()
    return caller


@_intrinsic
def _call(typing: Any, note: Any, worker: Any, n_workers: Any) -> Any:
    """Make the call that has been written down."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        note, worker, n_workers = given
        start = context.make_array(signature.args[0])(context, builder, note).data
        start = builder.bitcast(start, _WORD.as_pointer())
        caller = builder.load(_behind(builder, start, _CALLER))
        called = builder.inttoptr(caller, _OF_CALLER.as_pointer())
        builder.call(called, [start, worker, n_workers])
        return context.get_dummy_value()

    return types.none(note, types.int64, types.int64), generate


@jit_entry
def _note_call(note, arguments):
    """Write down a call."""
    _note(note, arguments)


@jit_parallel
def _call_all(note, n_workers):
    """Make the call that has been written down, once for each worker."""
    for worker in prange(n_workers):
        _call(note, np.int64(worker), n_workers)
