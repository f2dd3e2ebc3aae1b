"""Compiled functions on several threads, without compiling them a second time.

numba's ``prange`` compiles its body anew, with all that it calls: some tens of seconds for an
environment. Here one small loop, which is compiled once for all, calls what has been compiled
already: :func:`_note` writes down where a function is and with which arguments it is to be called,
and each thread reads that.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from operator import is_
from typing import Any

import numpy as np
from llvmlite import ir
from numba import get_num_threads, prange, set_num_threads
from numba.core import cgutils, types
from numba.extending import intrinsic

from hpcgym.compilation import config, jit_entry, jit_parallel
from hpcgym.compilation.waiting import load_openmp

load_openmp()  # before numba does, whoever asks it for threads first

_intrinsic: Any = intrinsic
_WORKER = types.UniTuple(types.int64, 2)  # a thread's number, and that of all

# A note is an array of words. What is in it, from which word on: the function that reads it and
# makes the call, hashes of the types of all arguments and of those that change, the function that
# is called, whether a call has failed, the arguments that change, those that are kept.
_CALLER, _KIND, _OF_CHANGING, _ADDRESS, _FAILED, _CHANGING = range(6)
_KEPT = 1024
_WORDS = 8192  # more than the arguments of any function take
_WORD = ir.IntType(64)
_OF_CALLER = ir.FunctionType(ir.VoidType(), [_WORD.as_pointer(), _WORD, _WORD])


class OnThreads:
    """What calls ``work(worker, n_workers, *changing, *kept)`` on a thread for each worker.

    Parameters
    ----------
    work : of :func:`hpcgym.compilation.jit_entry`; it must return nothing.
    """

    def __init__(self, work: Any) -> None:
        self._work = work
        self._note = np.empty(0, np.int64)
        self._kept: tuple[Any, ...] = ()  # what stands in the note, so that it lives as long
        self._addresses: dict[int, int] = {}  # by the types of arguments

    def __reduce__(self) -> Any:
        # a copied note would name the arrays of the other, and a function that is pickled as it is
        # would be compiled anew by whoever reads it
        function = getattr(self._work, "py_func", self._work)
        return _named, (function.__module__, function.__qualname__)

    def __call__(self, n_workers: int, changing: tuple[Any, ...], kept: tuple[Any, ...]) -> None:
        """Call the function; it must not be called on several threads at once.

        Parameters
        ----------
        n_workers : up to ``numba.config.NUMBA_NUM_THREADS``.
        changing, kept : the arguments; those that are mostly the same as at the last call are
            to be kept, since it takes a while to write them down.

        Raises
        ------
        RuntimeError : with several workers, where one of them raises something; the others do
            what is theirs. One worker raises it itself.
        """
        if config.DISABLE_JIT:
            for worker in range(n_workers):
                self._work(worker, n_workers, *changing, *kept)
            return
        if not (self._is_noted(kept) and _note_changing(self._note, changing)):
            self._write(changing, kept)
        if n_workers == 1:
            _call_one(self._note)
        else:
            _call_on_threads(self._note, n_workers)
        if self._note[_FAILED]:
            self._note[_FAILED] = 0
            if n_workers == 1:
                self._work(0, 1, *changing, *kept)  # it says why
            name = self._work.__name__
            raise RuntimeError(f"{name} failed on a thread; on one thread it says why")

    def _is_noted(self, kept: tuple[Any, ...]) -> bool:
        """Return whether these very arguments stand in the note."""
        return len(kept) == len(self._kept) and all(map(is_, kept, self._kept))

    def _write(self, changing: tuple[Any, ...], kept: tuple[Any, ...]) -> None:
        """Write down a call from the beginning."""
        # a new one: should an error come between, nothing of the old one is used any more
        self._kept, self._note = (), np.zeros(_WORDS, np.int64)
        _note_call(self._note, changing, kept)
        kind = int(self._note[_KIND])
        if kind not in self._addresses:
            self._addresses[kind] = _address_of(self._work, (*changing, *kept))
        self._note[_ADDRESS] = self._addresses[kind]
        self._kept = kept


def _call_on_threads(note: Any, n_workers: int) -> None:
    """Make the call that has been written down on that many threads."""
    before = get_num_threads()
    if n_workers == before:
        _call_all(note, n_workers)
        return
    set_num_threads(n_workers)
    try:
        _call_all(note, n_workers)
    finally:
        set_num_threads(before)


def _named(module: str, name: str) -> OnThreads:
    """Return what calls the function of that name on threads."""
    return OnThreads(getattr(import_module(module), name))


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


@_intrinsic
def _note(typing: Any, note: Any, changing: Any, kept: Any) -> Any:
    """Write down a call: what is to make it, the types of its arguments, and these."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        start = _start_of(context, builder, signature, given)
        kinds = (*signature.args[1], *signature.args[2])
        caller = _caller(context, builder.module, kinds, [values.type for values in given[1:]])
        builder.store(builder.ptrtoint(caller, _WORD), _behind(builder, start, _CALLER))
        builder.store(_hash_of(kinds), _behind(builder, start, _KIND))
        builder.store(_hash_of(signature.args[1]), _behind(builder, start, _OF_CHANGING))
        _store(context, builder, start, _CHANGING, _KEPT, given[1])
        _store(context, builder, start, _KEPT, _WORDS, given[2])
        return context.get_dummy_value()

    return types.none(note, changing, kept), generate


@_intrinsic
def _note_others(typing: Any, note: Any, changing: Any) -> Any:
    """Write down others in place of the arguments that change; return whether types are alike."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        start = _start_of(context, builder, signature, given)
        noted = builder.load(_behind(builder, start, _OF_CHANGING))
        alike = builder.icmp_signed("==", noted, _hash_of(signature.args[1]))
        with builder.if_then(alike):
            _store(context, builder, start, _CHANGING, _KEPT, given[1])
        return alike

    return types.boolean(note, changing), generate


def _start_of(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """Return where the words of a note begin, which is the first argument."""
    data = context.make_array(signature.args[0])(context, builder, given[0]).data
    return builder.bitcast(data, _WORD.as_pointer())


def _store(context: Any, builder: Any, start: Any, first: int, stop: int, values: Any) -> None:
    """Write down arguments in a note, from one word on and before another."""
    if context.get_abi_sizeof(values.type) > 8 * (stop - first):
        raise ValueError("the arguments are larger than what they are written down in")
    place = builder.bitcast(_behind(builder, start, first), values.type.as_pointer())
    builder.store(values, place, align=8)


def _hash_of(arguments: Any) -> Any:
    """Return a hash of types of arguments, a constant of a word; names of classes do not do."""
    classes = [getattr(one, "instance_class", object) for one in arguments]
    text = f"{tuple(arguments)} {[(cls.__module__, cls.__qualname__) for cls in classes]}"
    digest = hashlib.sha256(text.encode()).digest()[:8]
    return ir.Constant(_WORD, int.from_bytes(digest, "little"))


def _behind(builder: Any, start: Any, words: int) -> Any:
    """Return where something stands that many words behind ``start``."""
    return builder.gep(start, [ir.Constant(_WORD, words)])


def _caller(context: Any, module: Any, arguments: Any, stored: Any) -> Any:
    """Return a function of a note, a worker and their number that makes the call.

    Parameters
    ----------
    arguments : their types, of those that change and of those that are kept.
    stored : how the ones and the others lie in the note.
    """
    caller = ir.Function(module, _OF_CALLER, module.get_unique_name("call_noted"))
    caller.linkage = "internal"
    builder = ir.IRBuilder(caller.append_basic_block())
    start, worker, n_workers = caller.args
    kinds = (*_WORKER, *arguments)
    called = context.call_conv.get_function_type(types.none, kinds).as_pointer()
    address = builder.inttoptr(builder.load(_behind(builder, start, _ADDRESS)), called)
    values: list[Any] = []
    for first, kind in zip((_CHANGING, _KEPT), stored, strict=True):
        place = builder.bitcast(_behind(builder, start, first), kind.as_pointer())
        values += cgutils.unpack_tuple(builder, builder.load(place, align=8))
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
        _, worker, n_workers = given
        start = _start_of(context, builder, signature, given)
        caller = builder.load(_behind(builder, start, _CALLER))
        called = builder.inttoptr(caller, _OF_CALLER.as_pointer())
        builder.call(called, [start, worker, n_workers])
        return context.get_dummy_value()

    return types.none(note, types.int64, types.int64), generate


@jit_entry
def _note_call(note, changing, kept):
    """Write down a call."""
    _note(note, changing, kept)


@jit_entry
def _note_changing(note, changing):
    """Write down other arguments that change, if they are of the same types; return if so."""
    return _note_others(note, changing)


@jit_entry
def _call_one(note):
    """Make the call that has been written down, by one worker."""
    _call(note, np.int64(0), np.int64(1))


@jit_parallel
def _call_all(note, n_workers):
    """Make the call that has been written down, once for each worker."""
    for worker in prange(n_workers):
        _call(note, np.int64(worker), n_workers)
