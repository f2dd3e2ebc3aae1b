"""What numba compiles is kept in a folder of ours: all that knows how numba keeps it.

A function that numba compiles (a dispatcher) has in ``_cache`` an object that is asked before it is
compiled (``load_overload``) and told after (``save_overload``); here that is a :class:`Kept`.
numba's own cache does not do: it runs what has been damaged, its index is shared by all versions of
a function and loses what two processes write at once, and all processes compile at the same time.
Used of numba beside it: ``CompileResult._reduce`` and ``_rebuild``, to and from what can be
pickled, ``serialize.dumps``, which pickles it, ``magic_tuple``, which names the processor, and
``FunctionIdentity._unique_ids``, which tells functions of one name apart. If a later numba has them
no more, functions are compiled each time, and a warning says so.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from hpcgym.compilation import files, locks, notice, pipeline
from hpcgym.compilation.sources import hash_of_files, is_edited
from hpcgym.errors import CompilationWarning

try:
    from numba.core import bytecode, compiler, serialize

    # Machine code is linked by names. numba tells functions of one name apart, such as those that
    # one function has made of different parts, by a number, and counts from 1 in each process: what
    # two processes have compiled would be taken for one another. So the numbers are random.
    _ids: Any = bytecode.FunctionIdentity
    if not hasattr(_ids, "_unique_ids"):
        raise AttributeError("FunctionIdentity has no _unique_ids")
    _ids._unique_ids = iter(lambda: int.from_bytes(os.urandom(7), "big"), -1)
    _to_parts: Any = compiler.CompileResult._reduce
    _from_parts: Any = pipeline.rebuild
    _dumps: Any = serialize.dumps
except (ImportError, AttributeError) as _error:
    _missing = str(_error)
else:
    _missing = ""

UNUSED_S = 60 * 86400.0  # a version that nobody has loaded for so long is dropped

#: The files of all versions that this process has loaded or written.
used: set[Path] = set()


def keep(dispatcher: Any, folder: Path) -> None:
    """Let numba look for a function in a folder before it compiles it, and put it there.

    Warns
    -----
    CompilationWarning : this version of numba cannot.
    """
    missing = _missing or ("" if hasattr(dispatcher, "_cache") else "functions have no _cache")
    if missing:
        _warn(f"with this version of numba compiled code is not kept: {missing}")
        return
    compile_one, function = dispatcher.compile, dispatcher.py_func

    def compile_alone(signature: Any) -> Any:
        """Compile as numba does; whatever happens, the locks taken meanwhile are released."""
        part = notice.part_of(_names(function), signature)
        with locks.releasing(), notice.about(part):
            return compile_one(signature)

    within = bool(dispatcher.targetoptions.get("no_cpython_wrapper"))
    dispatcher._cache = Kept(function, folder, within)
    dispatcher.compile = compile_alone


def folder_of(dispatcher: Any) -> str | None:
    """Return where a function's versions are kept, None where they are not, or none is compiled."""
    cache = getattr(dispatcher, "_cache", None)
    return str(cache.folder) if isinstance(cache, Kept) else None


class Kept:
    """The compiled versions of one function: a file for each, named after what it is made for.

    Parameters
    ----------
    within : only compiled code calls them; a function may also be compiled for both.
    """

    def __init__(self, function: Any, folder: Path, within: bool) -> None:
        self.cache_path = str(folder)  # numba shows it
        self.folder = folder
        self._function = function
        self._within = within

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return a version compiled before; None if there is none, which is then locked."""
        found = self._found(signature, target)
        if found is None:
            notice.start()
        return found

    def _found(self, signature: Any, target: Any) -> Any:
        """Return a version compiled before, by this process or another one; or None."""
        try:
            if is_edited(*_files(self._function)):
                return None  # what is kept may be of other sources than those imported
            target.refresh()  # or else it may not know all that a version calls
            key = self._key(signature, target.codegen().magic_tuple())
            found = self._own(key, target)
        except Exception as error:
            self._not_kept(error)
            return None
        if found is None:
            with notice.paused():
                locks.take(self._path(key, self.folder))
            found = self._own(key, target)  # whoever had the lock has put it there
        return found

    def _own(self, key: tuple[Any, ...], target: Any) -> Any:
        """Return the version in a file, and note its use; None if there is no such version."""
        path = self._path(key, self.folder)
        found = _load(path, files.read(path), key, target)
        if found is not None:
            with suppress(OSError):
                os.utime(path)
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a version that has been compiled; if that fails there is a warning, no error."""
        try:
            if compiled.library.has_dynamic_globals:
                raise TypeError(f"{self._function.__qualname__} has addresses in it")
            if is_edited(*_files(self._function)):
                raise RuntimeError("sources were written after this process began")
            key = self._key(signature, compiled.codegen.magic_tuple())
            path = self._path(key, self.folder)
            files.write(path, _dumps((key, _to_parts(compiled))))
            used.add(path)
            self._drop_unused(self.folder)
        except Exception as error:
            if not (os.name == "nt" and isinstance(error, PermissionError)):  # it is being read
                self._not_kept(error)

    def flush(self) -> None:
        """Drop all versions."""
        for path in self.folder.glob(f"{self._name()}.*.nbc"):
            path.unlink(missing_ok=True)

    def _drop_unused(self, folder: Path) -> None:
        """Drop versions that no process has loaded for long: of sources that are no more."""
        for path in folder.glob(f"{self._place()}-*.nbc"):
            with suppress(OSError):  # another process has dropped it
                if time.time() - path.stat().st_mtime > UNUSED_S:
                    path.unlink()

    def _key(self, signature: Any, processor: tuple[str, ...]) -> tuple[Any, ...]:
        """Return what a version is made of and for: all of it must be the same."""
        source = hash_of_files(*_files(self._function))
        return signature, processor, _identity(self._function), source, self._within

    def _path(self, key: tuple[Any, ...], folder: Path) -> Path:
        """Return the file of a version: two trees that are used by turns keep theirs."""
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return folder / f"{self._name()}.{name}.nbc"

    def _not_kept(self, error: Exception) -> None:
        _warn(f"compiled code is not kept in {self.cache_path}: {_named(error)}")

    def _name(self) -> str:
        """Return what the files of all versions begin with."""
        line, python = self._function.__code__.co_firstlineno, sys.version_info
        return f"{self._place()}-{line}.py{python[0]}{python[1]}{getattr(sys, 'abiflags', '')}"

    def _place(self) -> str:
        """Return the function's module and name, as a file may be called."""
        name = _name_of(self._function)
        return name.replace("<", "").replace(">", "")


def _held(function: Any) -> tuple[list[Any], list[Any]]:
    """Return the compiled functions that a function holds in its closure, and what else it holds.

    Parts that a loop is made of are functions of this kind.
    """
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [each.py_func for each in held if hasattr(each, "py_func")]
    return parts, [each for each in held if not hasattr(each, "py_func")]


def _files(function: Any) -> set[str]:
    """Return the source files of a function and of those that it holds."""
    own = {function.__code__.co_filename}
    return own.union(*(_files(part) for part in _held(function)[0]))


def _names(function: Any) -> list[str]:
    """Return the names of a function and of those that it holds, each with its module."""
    own = [_name_of(function)]
    return own + [name for part in _held(function)[0] for name in _names(part)]


def _identity(function: Any) -> str:
    """Return a hash of a function's code and of what it holds.

    Of two functions of one name in one source, either may be held: they differ in no more than a
    constant, a name, or what an argument is by default.
    """
    parts, others = _held(function)
    others += function.__defaults__ or ()
    digest = hashlib.sha256(repr((_name_of(function), _told(function.__code__))).encode())
    if any(not isinstance(each, bool | int | float | str | None) for each in others):
        raise TypeError(f"{function.__qualname__} holds what may change unseen")
    digest.update(repr(others).encode())
    for part in parts:
        digest.update(_identity(part).encode())
    return digest.hexdigest()


def _name_of(function: Any) -> str:
    """Return the module and name of a function."""
    return f"{function.__module__}.{function.__qualname__}"


def _told(code: Any) -> Any:
    """Return what code says, in plain objects whose ``repr`` is the same in each process."""
    if isinstance(code, CodeType):
        return code.co_code, code.co_names, [_told(each) for each in code.co_consts]
    if isinstance(code, frozenset):
        return sorted(map(repr, code))
    return code


def _load(path: Path, content: bytes | None, key: tuple[Any, ...], target: Any) -> Any:
    """Return what a file holds, ready to be called; None if it is not there or of no use."""
    if content is None:
        return None
    try:
        found, parts = pickle.loads(content)
        if found != key:
            return None
        loaded = _from_parts(target, *parts)
    except Exception as error:  # whatever it is, to compile is the way out
        _warn(f"compiled code in {path.parent} is of no use here, and made anew: {_named(error)}")
        return None
    used.add(path)
    return loaded


def _named(error: Exception) -> str:
    """Return in one line what an error is."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@cache
def _warn(message: str) -> None:
    """Say something once."""
    warnings.warn(message, CompilationWarning, stacklevel=2)
