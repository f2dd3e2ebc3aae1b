"""Networks as orders of the queue: a scorer of one job and the state, with one hidden layer.

The score of a job is ``skip . z + output . tanh(bias + hidden z)``, where z are the inputs, each an
expression (see :mod:`hpcgym.scheduler.policies.expressions`) less its center, over its scale. So a
network whose outputs are 0 is a sum of weighted inputs. The engine works it out as one more
operation of expressions.

A file is JSON and runs no code: ``inputs``, ``center``, ``scale``, ``skip``, ``hidden``, ``bias``,
``output``; ``rules`` of a scheduler beside the policy, such as the estimate that it was trained
with; and ``trained``, whatever its training tells.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.elementary import tanh
from hpcgym.errors import HpcgymError, unknown
from hpcgym.files import json_file, saying
from hpcgym.files.writing import whole_text
from hpcgym.scheduler.policies.expressions import Expression, layered

#: What a policy begins with that is the file of a network.
PREFIX = "network:"

FORMAT = 1
MOST_INPUTS, MOST_UNITS = 64, 256

#: No number that was learned is near it; sums of products of such numbers are finite.
_MOST = 1e12

Numbers = NDArray[np.float64]


class Input(NamedTuple):
    """An input, and what is usual of it over the waiting jobs of logs, roughly."""

    expression: str
    center: float
    scale: float


#: The inputs of :func:`aged_network`. A scheduler with an estimate for its policy calls that
#: ``requested``, and the request time_limit.
INPUTS = (
    Input("log(max(requested,1))", 7.5, 2.5),
    Input("log(max(time_limit,1))", 9.0, 1.5),
    Input("log(processors)-log(machine_size)", -3.5, 1.5),
    Input("log(wait+3600)", 9.2, 1.2),
    Input("log(wait+72000)", 11.5, 0.4),
    Input("free", 0.2, 0.25),
    Input("free_1h", 0.4, 0.25),
    Input("log(1+queued)", 3.0, 1.5),
    Input("fits", 0.5, 0.5),
    Input("leaves", 0.1, 0.2),
    Input("log(max(last_run,1))", 6.5, 3.0),
    Input("log(max(mean_run,1))", 7.0, 2.0),
)
#: The weights of the scheduler "aged", by the places of inputs.
_AGED = {0: -1.0, 2: -0.2, 4: 4.0}


@dataclass(frozen=True, eq=False)
class Network:
    """A network that scores jobs: a ``policy`` of schedulers, or their ``backfill_order``.

    Attributes
    ----------
    inputs : expressions over a job and the state, (n,) texts.
    center, scale : (n,) float64, what is taken from each input, and what it is divided by then.
    skip : (n,) float64, weights of inputs in the score itself.
    hidden : (h, n) float64, weights of inputs in each hidden unit.
    bias, output : (h,) float64, what is added in each unit, and its weight in the score.
    rules : rules of a scheduler beside the policy, name -> value.
    trained : what is known of its training, as JSON has it.

    Raises
    ------
    HpcgymError : other shapes, numbers that are not finite, a scale that is not positive, or an
        input that is no expression.
    """

    inputs: tuple[str, ...]
    center: Numbers
    scale: Numbers
    skip: Numbers
    hidden: Numbers
    bias: Numbers
    output: Numbers
    rules: Mapping[str, Any] = field(default_factory=dict)
    trained: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        inputs = _texts(self.inputs)
        object.__setattr__(self, "inputs", inputs)
        n, h = len(inputs), _n_units(self.bias)
        if h > MOST_UNITS:
            raise HpcgymError(f"bias: a network has at most {MOST_UNITS} hidden units, not {h:,}")
        shapes = {"hidden": (h, n), "bias": (h,), "output": (h,)}
        for name in _NUMBERS:
            numbers = _checked(name, getattr(self, name), shapes.get(name, (n,)))
            object.__setattr__(self, name, numbers)
        if not (self.scale > 0).all():
            raise HpcgymError("scale: each must be above 0")
        for name in ("rules", "trained"):
            if not isinstance(getattr(self, name), Mapping):
                raise HpcgymError(f"{name} must be a table of names and values")
        if "policy" in self.rules:
            raise HpcgymError("rules: the policy is the network itself")
        assert self.expression  # which says what is wrong with an input

    def __eq__(self, other: object) -> bool:
        """Whether they have the same inputs, numbers and rules."""
        return isinstance(other, Network) and self._known == other._known

    def __hash__(self) -> int:
        return hash(self._known[:2])

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        """What it is called where it has no file."""
        return f"network of {len(self.inputs)} inputs and {len(self.bias)} units"

    @cached_property
    def expression(self) -> Expression:
        """The network as an expression, which the engine and proofs work out."""
        scaling = zip(self.inputs, self.center.tolist(), self.scale.tolist(), strict=True)
        weights = {name: getattr(self, name) for name in ("hidden", "bias", "output", "skip")}
        return layered(self.name, scaling, weights)

    def to_vector(self) -> Numbers:
        """Return all weights: skip, hidden by unit, bias, output. (2 h + n + h n,) float64.

        With the usual 12 inputs and 24 units these are 348 numbers.
        """
        parts = (self.skip, self.hidden.ravel(), self.bias, self.output)
        return np.concatenate(parts)

    def from_vector(self, vector: Any, trained: Mapping[str, Any] | None = None) -> Network:
        """Return a network with the same inputs and other weights, as :meth:`to_vector` has them.

        ``trained``: what is known of its training; None: as here.

        Raises
        ------
        HpcgymError : another number of weights, or some that are not finite.
        """
        n, h = len(self.inputs), len(self.bias)
        vector = _checked("vector", vector, (2 * h + n + h * n,))
        skip, hidden, bias, output = np.split(vector, [n, n + h * n, n + h * n + h])
        return replace(
            self,
            skip=skip,
            hidden=hidden.reshape(h, n),
            bias=bias,
            output=output,
            trained=self.trained if trained is None else trained,
        )

    def scores(self, values: Any) -> Numbers:
        """Return the scores of inputs as they are before scaling, (..., n), as (...) float64.

        They are those of simulations but for the last digits, which follow the order of sums.
        """
        z = (np.asarray(values, np.float64) - self.center) / self.scale
        units = z @ self.hidden.T + self.bias
        out: Numbers = tanh(units.ravel()).reshape(units.shape) @ self.output
        return z @ self.skip + out

    @property
    def _known(self) -> tuple[Any, ...]:
        scaled = np.concatenate([self.center, self.scale, self.to_vector()])
        return self.inputs, scaled.tobytes(), dict(self.rules)


_NUMBERS = ("center", "scale", "skip", "hidden", "bias", "output")


def _texts(inputs: Any) -> tuple[str, ...]:
    """Return the texts of inputs, checked."""
    if isinstance(inputs, str) or not isinstance(inputs, Sequence) or not inputs:
        raise HpcgymError("inputs must be a list of expressions")
    for text in inputs:
        if not isinstance(text, str):
            raise HpcgymError(f"inputs must be expressions, not {text!r}")
    if len(inputs) > MOST_INPUTS:
        raise HpcgymError(f"inputs: a network has at most {MOST_INPUTS}, not {len(inputs):,}")
    return tuple(inputs)


def _n_units(bias: Any) -> int:
    """Return how many hidden units there are: each has a bias."""
    if not isinstance(bias, (list, tuple, np.ndarray)):
        raise HpcgymError(f"bias must be a list of numbers, not {bias!r}")
    return len(bias) if np.ndim(bias) else 0


def _checked(name: str, values: Any, shape: tuple[int, ...]) -> Numbers:
    """Return numbers of a network, a read-only copy, checked."""
    try:
        given = np.asarray(values)
        kind = given.dtype.kind if given.size else "f"
        numbers = np.array(given, np.float64) if kind in "iuf" else None
    except (TypeError, ValueError, OverflowError):  # rows of several lengths
        numbers = None
    if numbers is None:
        raise HpcgymError(f"{name} must be numbers, {_said(shape)}")
    if numbers.size == 0 and 0 in shape:
        numbers = numbers.reshape(shape)
    if numbers.shape != shape:
        raise HpcgymError(f"{name} must be {_said(shape)}, not {_said(numbers.shape)}")
    if not (np.abs(numbers) <= _MOST).all():  # as NaN is not
        raise HpcgymError(f"{name} has NaN, or values beyond {_MOST:g}, to which no training leads")
    numbers.flags.writeable = False
    return numbers


def _said(shape: tuple[int, ...]) -> str:
    """Return a shape in words."""
    if len(shape) == 2:
        return f"{shape[0]} rows of {shape[1]}"
    return f"{shape[0]} in a row" if len(shape) == 1 else f"{len(shape)} lists in each other"


def aged_network(n_units: int = 24, seed: int = 0) -> Network:
    """Return a network to begin with: its order is that of the scheduler "aged".

    Outputs are 0, weights of hidden units are drawn from normal distributions, with variances that
    leave units between linear and saturated.

    Parameters
    ----------
    n_units : hidden ones, 0 to 256.
    seed : of their weights.
    """
    rng, n = np.random.default_rng(seed), len(INPUTS)
    expressions, center, scale = zip(*INPUTS, strict=True)
    skip = [_AGED.get(place, 0.0) * width for place, width in enumerate(scale)]
    return Network(
        expressions,
        np.array(center),
        np.array(scale),
        np.array(skip),
        rng.normal(0, 1.3 / np.sqrt(n), (n_units, n)),
        rng.normal(0, 0.5, n_units),
        np.zeros(n_units),
        {"policy_estimate": "typical-ratio"},
        {"by": "nothing: the order is that of the scheduler aged"},
    )


# --- Files ----------------------------------------------------------------------------------------


def is_network(text: object) -> bool:
    """Return whether a policy is meant as the file of a network."""
    return isinstance(text, str) and text.strip().startswith(PREFIX)


def network_of(text: str) -> Network:
    """Return the network that a policy names, ``network:FILE``.

    Raises
    ------
    HpcgymError : as :func:`read_network`.
    """
    path = text.strip().removeprefix(PREFIX).strip()
    if not path:
        raise HpcgymError(f"policy {text!r} names no file: {PREFIX}FILE")
    with saying(path):
        try:
            known = os.stat(path)
        except ValueError as problem:  # a zero byte, or half a character
            raise HpcgymError(f"{path!r} cannot be the name of a file: {problem}") from None
    return _read_once(path, known.st_mtime_ns, known.st_size, known.st_ino)


@lru_cache(maxsize=64)  # a simulation asks a dozen times what its policy is
def _read_once(path: str, *_: int) -> Network:
    return read_network(path)


def read_network(path: str | Path) -> Network:
    """Return the network of a file.

    Raises
    ------
    HpcgymError : the file cannot be read, or holds no network; the message names the file.
    """
    contents = json_file(path)
    known = [each.name for each in fields(Network)]
    if not isinstance(contents, dict) or contents.pop("format", None) != FORMAT:
        raise HpcgymError(f"{path} is not the file of a network of this version")
    for name in contents:
        if name not in known:
            raise HpcgymError(f"{path}: {unknown('key', name, known)}")
    for name in ("inputs", *_NUMBERS):
        if name not in contents:
            raise HpcgymError(f"{path}: {name} is missing")
    try:
        return Network(**contents)
    except HpcgymError as error:
        raise HpcgymError(f"{path}: {error}") from None


def write_network(path: str | Path, network: Network) -> None:
    """Write a network to a file, whole or not at all; each row of numbers is a line.

    Raises
    ------
    HpcgymError : the file cannot be written, or its rules or what is told of its training is
        nothing that JSON has.
    """
    values = {each.name: getattr(network, each.name) for each in fields(Network)}
    try:
        parts = {name: _json(value) for name, value in values.items()}
    except (TypeError, ValueError) as error:
        raise HpcgymError(f"{path} is not written: {error}") from None
    entries = [f'"format": {FORMAT}', *(f'"{name}": {text}' for name, text in parts.items())]
    with whole_text(path, folders=True) as file:
        file.write("{\n" + ",\n".join(entries) + "\n}\n")


def _json(value: Any) -> str:
    """Return a value in JSON: rows of numbers, and texts, each in a line."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return json.dumps(value.tolist())
    if isinstance(value, np.ndarray | tuple):
        return "[" + ",\n  ".join(map(_json, value)) + "]"
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, allow_nan=False)
