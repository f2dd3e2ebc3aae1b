"""Code of users and of other packages: by ``package.module:name``, or by a name.

A package gives names to what it has by entry points in groups of :data:`KINDS`, such as
``hpcgym.readers``. A name of hpcgym's own always means that of hpcgym: entry points are only listed
where a name is not one of ours, or where names are listed.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, did_you_mean

# --- By package.module:name -----------------------------------------------------------------------

_NAMED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def names_code(text: Any) -> bool:
    """Tell whether this is a text ``package.module:name``."""
    return isinstance(text, str) and _NAMED.fullmatch(text) is not None


def named_object(text: str, folder: Path | None = None) -> Any:
    """Import the module of ``package.module:name``, and return what has the name there.

    Parameters
    ----------
    text : one for which :func:`names_code` is true.
    folder : searched for modules before all other places; None: only where Python looks.

    Raises
    ------
    HpcgymError : there is no such module, importing it fails, it has no such name, or another
        module of this name, outside the folder, has been imported before.
    """
    module, _, name = text.partition(":")
    try:
        with _looked_for_in(folder):
            target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise HpcgymError(f"{text}: importing {module} fails: {error}") from None
        hint = "; leave .py out" if module.endswith(".py") else ""
        raise HpcgymError(
            f"{text}: there is no module {error.name!r} in the"
            f" {'current folder' if folder is None else f'folder {folder}'} or where Python looks"
            f"{hint}"
        ) from None
    except Exception as error:  # whatever a user's module does
        said = f"{type(error).__name__}: {error}"
        raise HpcgymError(f"{text}: importing {module} fails: {said}") from None
    here = None if folder is None else module_file(text, folder)
    if here is not None and not here.samefile(target.__file__ or here):
        raise HpcgymError(f"{text}: {target.__file__} was imported before {here}: rename one")
    for part in name.split("."):
        if not hasattr(target, part):
            known = _names_in(target, module) or ["nothing"]
            raise HpcgymError(f"{text}: there is no {part!r} in it; {did_you_mean(part, known)}")
        target = getattr(target, part)
    return target


def _names_in(owner: Any, module: str) -> list[str]:
    """Return the names that a module, or a class of it, defines, without what it imports."""
    names = []
    for name, value in vars(owner).items():
        imported = inspect.ismodule(value) or type(value).__module__ == "__future__"
        if isinstance(value, type) or inspect.isroutine(value):
            imported = value.__module__ != module
        if not (imported or name.startswith("_")):
            names.append(name)
    return names


def refusal(function: Callable[..., Any], *given: Any, **named: Any) -> str:
    """Return why a function cannot be called so, as far as it tells; "" if it can."""
    try:
        inspect.signature(function).bind(*given, **named)
    except TypeError as error:
        return str(error)
    except ValueError:  # of some compiled ones nothing is known
        pass
    return ""


def check_takes(argument: str, function: Callable[..., Any], what: str) -> None:
    """Raise an HpcgymError if a user's function cannot be called with one argument.

    Parameters
    ----------
    argument : what the function was given as.
    function : or an object that is called.
    what : what it is called with, in words.
    """
    if refusal(function, what):
        name = getattr(function, "__name__", type(function).__name__)
        raise HpcgymError(
            f"{argument}: the function must take one argument, {what}; it is"
            f" {name}{inspect.signature(function)}"
        )


def look_here() -> None:
    """Let modules of the current folder be found before others, as ``python -m`` does."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)


def module_file(text: str, folder: Path) -> Path | None:
    """Return the file with the module of a text in a folder; None if it is elsewhere."""
    stem = folder.joinpath(*text.partition(":")[0].split("."))
    files = (stem.with_name(f"{stem.name}.py"), stem / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def own_rule(text: str, folder: Path) -> Any:
    """Return the function that a text names, or a new object of the class, for each simulation.

    Raises
    ------
    HpcgymError : as :func:`named_object`; a class that needs arguments; or an object, which would
        carry its state from one simulation to the next.
    """
    target = named_object(text, folder)
    if inspect.isfunction(target):
        return target
    if not isinstance(target, type):
        kind = type(target).__name__
        raise HpcgymError(f"{text} must be a function or a class, not an object ({kind})")
    try:
        return target()
    except Exception as error:  # whatever a user's class does
        said = f"{type(error).__name__}: {error}"
        raise HpcgymError(f"{text} cannot be made without arguments: {said}") from None


def own_rules(scheduler: Any) -> dict[str, Any]:
    """Return those rules of a scheduler that are functions or objects in Python, by their names."""
    rules = {"policy": scheduler.order.function, "dispatcher": scheduler.dispatcher}
    return {rule: value for rule, value in rules.items() if callable(value)}


def called(target: Any) -> str:
    """Return ``module:name`` of a function, or of an object's class."""
    named = target if hasattr(target, "__qualname__") else type(target)
    return f"{named.__module__}:{named.__qualname__}"


def failure(error: Exception, own: Any) -> str:
    """Return the error in one line, with the place if it was in the user's code.

    Parameters
    ----------
    error : the exception that was caught.
    own : the user's function or object that may have raised it.
    """
    place = place_in(own, error)
    return f"{type(error).__name__}: {error}{place and f' ({place})'}"


def place_in(own: Any, error: Exception) -> str:
    """Return the file and line of an error in a function's or object's module; "" if elsewhere."""
    modules = _modules(own)
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") in modules:
            place = f"{Path(frame.f_code.co_filename).name}, line {line}"
    return place


def _modules(code: Any) -> tuple[Any, ...]:
    """Return the names of the modules that have the code of a function or an object."""
    code = getattr(code, "act", code)  # of a policy that acts
    code = getattr(code, "func", code)  # of a partial one
    return (getattr(code, "__module__", None), getattr(type(code).__call__, "__module__", None))


@contextmanager
def _looked_for_in(folder: Path | None) -> Iterator[None]:
    """Let modules of a folder be found, before others."""
    before = list(sys.path)
    if folder is not None:
        sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path[:] = before


# --- By a name: of hpcgym, or of another package --------------------------------------------------

#: What a package may have names of -> what messages call one. The group of entry points of
#: "readers" is ``hpcgym.readers``.
KINDS = {
    "readers": "reader",
    "generators": "generator",
    "machines": "machine",
    "policies": "policy",
    "agents": "agent",
}

#: Package -> version, of those of which something was used by its name in this process.
_USED: dict[str, str] = {}


@dataclass(frozen=True)
class Extension:
    """What another package has under a name.

    Attributes
    ----------
    kind : of :data:`KINDS`.
    name : the name.
    value : where it is, ``module:name``.
    package, version : of the package.
    rival : another package that has the same name; "" without one.
    """

    kind: str
    name: str
    value: str
    package: str
    version: str
    rival: str = ""

    def __str__(self) -> str:
        return f"{KINDS[self.kind]} {self.name!r} of {self.source}"

    @property
    def source(self) -> str:
        """The package and its version, in words."""
        return f"{self.package} {self.version}"

    def load(self) -> Any:
        """Import what has the name.

        Raises
        ------
        HpcgymError : importing it fails, or it is not there; or another package has the same name.
            The message names the packages and the entry point.
        """
        if self.rival:
            raise HpcgymError(
                f"the {KINDS[self.kind]} {self.name!r} is of both {self.package} and {self.rival}:"
                " uninstall one"
            )
        if not names_code(self.value):
            raise HpcgymError(f"{self}: its entry point {self.value!r} is not module:name")
        try:
            return named_object(self.value)
        except HpcgymError as error:
            raise HpcgymError(f"{self}: {error}") from None

    def error(self, message: object) -> HpcgymError:
        """Return an error that tells whose fault it is."""
        return HpcgymError(f"{self}: {message}")

    @contextmanager
    def blamed(self, own: Any, where: object = "") -> Iterator[None]:
        """Turn an error in the code of the package into one that tells of it.

        Parameters
        ----------
        own : what was imported.
        where : the file that is read, if one is.
        """
        try:
            yield
        except HpcgymError:
            raise
        except Exception as error:  # whatever that code does
            said = failure(error, own)
            raise self.error(f"{said}{where and f', while reading {where}'}") from error


@cache
def others(kind: str) -> Mapping[str, Extension]:
    """Return what other packages have of a kind, by name; entry points are listed once."""
    from importlib.metadata import entry_points  # as slow as all that simulate imports of ours

    extensions: dict[str, Extension] = {}
    for entry in entry_points(group=f"hpcgym.{kind}"):
        name, package = entry.name, entry.dist
        assert package is not None  # only of entry points that a program makes
        rival = extensions[name].package if name in extensions else ""
        extensions[name] = Extension(kind, name, entry.value, package.name, package.version, rival)
    return dict(sorted(extensions.items()))


def has_name(kind: str, name: Any, ours: Container[Any]) -> bool:
    """Tell whether something has a name: of ours, else of another package."""
    return name in ours or name in others(kind)


def find(kind: str, name: str, ours: Mapping[str, Any]) -> Any:
    """Return what has a name: of ours, else of another package; None if nothing has it.

    Parameters
    ----------
    kind : of :data:`KINDS`.
    name : the name.
    ours : name -> object, or where it is, ``module:name``.

    Raises
    ------
    HpcgymError : as of :meth:`Extension.load`.
    """
    if name in ours:
        place = ours[name]
        if not isinstance(place, str):
            return place
        module, _, attribute = place.partition(":")
        return getattr(importlib.import_module(module), attribute)
    other = others(kind).get(name)
    if other is None:
        return None
    _USED[other.package] = other.version
    return other.load()


def sources(kind: str, ours: Container[str] = ()) -> dict[str, str]:
    """Return the names that only other packages have, each with its package and version."""
    return {name: other.source for name, other in others(kind).items() if name not in ours}


def used_packages() -> dict[str, str]:
    """Return the versions of packages of which this process has used something by its name."""
    return dict(sorted(_USED.items()))


def version_of(package: str) -> str:
    """Return the version of a package that is installed; "none" of one that is not."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
