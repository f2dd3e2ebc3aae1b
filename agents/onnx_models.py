"""Networks in files of ONNX, from whatever library, as agents.

A network takes the fields of the observation that its inputs are named after, as "jobs" or "mask",
or all of it in one input where observations are flat. In front of each it has one dimension for
several environments, which is 1 here. Its first output are numbers of all actions, of which the
greatest that the mask allows is taken, or the action itself. Files run no code.

A network that scores single jobs inside the engine (:mod:`hpcgym.scheduler.policies.networks`) is
written as such a file, too, for others that score jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from gymnasium import spaces

from hpcgym.agents.saved import read_spec
from hpcgym.errors import HpcgymError, installing
from hpcgym.files import MEGABYTE, bytes_of
from hpcgym.files.writing import whole_file
from hpcgym.scheduler.policies.networks import Network

_MOST = 256 * MEGABYTE

#: What inputs may be of, and the type of numpy.
_TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int8)": np.int8,
    "tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_,
}  # fmt: skip


class OnnxModel:
    """A network with the interface of an agent.

    Parameters
    ----------
    session : of onnxruntime.
    name : what it is called.
    spec : ``env_id`` and ``env_options`` of the environment that it was trained in, if known.
    """

    def __init__(self, session: Any, name: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        vars(self).update(spec)
        self._session = session
        self._types = {entry.name: _TYPES.get(entry.type) for entry in session.get_inputs()}
        unknown = [entry.type for entry in session.get_inputs() if entry.type not in _TYPES]
        if unknown or not self._types:
            raise HpcgymError(f"its inputs are of {unknown}; known are {', '.join(_TYPES)}")
        self._space: Any = None

    def __repr__(self) -> str:
        return f"OnnxModel({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at what an environment shows, and what its actions are.

        Raises
        ------
        HpcgymError : an input that is no field of the observation, or of another shape.
        """
        env = getattr(env, "unwrapped", env)
        seen, self._space = env.observation_space, env.action_space
        inputs = self._session.get_inputs()
        if isinstance(seen, spaces.Dict):
            fields = dict(seen.spaces)
        else:
            fields = {inputs[0].name: seen} if len(inputs) == 1 else {}
        for entry in inputs:
            if entry.name not in fields:
                known = ", ".join(fields) or "one alone, of what is flat"
                raise HpcgymError(f"{self.name} has an input {entry.name!r}; here are {known}")
            shape, here = entry.shape, (1, *(fields[entry.name].shape or ()))
            same = (n == m for n, m in zip(shape, here, strict=False) if isinstance(n, int))
            if len(shape) != len(here) or not all(same):
                raise HpcgymError(f"{self.name}: {entry.name!r} is {shape}, and {list(here)} here")

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the best action: an int, or an array of numbers.

        Raises
        ------
        HpcgymError : not one number for each action, or one that is no number.
        """
        if self._space is None:
            raise HpcgymError(f"{self.name}: call begin(env) after the reset, then act")
        fed = {}
        for name, kind in self._types.items():
            field = observation[name] if isinstance(observation, Mapping) else observation
            fed[name] = np.asarray(field, kind)[np.newaxis]
        output = np.asarray(self._session.run(None, fed)[0])
        if not isinstance(self._space, spaces.Discrete):
            return output.reshape(self._space.shape).astype(self._space.dtype)
        if output.size == 1:
            return int(output.item())
        if output.size != self._space.n or np.isnan(output).any():
            what = f"{output.size} numbers, or some that are not finite"
            raise HpcgymError(f"{self.name} gives {what}; there are {self._space.n} actions")
        return int(np.argmax(np.where(info["action_mask"] > 0, output.ravel(), -np.inf)))


def load(path: str | Path) -> OnnxModel:
    """Return the agent of a file; :func:`hpcgym.agents.load` calls this.

    Raises
    ------
    HpcgymError : no such file, or no network that onnxruntime can run from this file alone.
    """
    content = bytes_of(path, _MOST, HpcgymError)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return OnnxModel(session, Path(path).stem, read_spec(path))
    except HpcgymError as error:
        raise HpcgymError(f"{path}: {error}") from None
    except Exception as error:  # whatever onnxruntime finds wrong
        problem = str(error).splitlines()[0]
        raise HpcgymError(f"{path} cannot be read as a network of ONNX: {problem}") from None


def write_onnx(path: str | Path, network: Network) -> None:
    """Write the scorer of jobs that a network is, for onnxruntime and others.

    Its input "inputs" is (jobs, n) double: the values of the network's inputs before they are
    scaled, in their order, which stand in the model's metadata as ``inputs``, one in a line. Its
    output "scores" is (jobs,) double, as :meth:`Network.scores`.

    Raises
    ------
    HpcgymError : the package onnx is missing, or the file cannot be written.
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ModuleNotFoundError:
        raise HpcgymError(f"to write ONNX needs the package onnx: {installing('agents')}") from None
    numbers = {
        "center": network.center,
        "scale": network.scale,
        "hidden": network.hidden.T,
        "bias": network.bias,
        "output": network.output,
        "skip": network.skip,
    }
    steps = [
        ("Sub", ["inputs", "center"], "centred"),
        ("Div", ["centred", "scale"], "scaled"),
        ("MatMul", ["scaled", "hidden"], "weighted"),
        ("Add", ["weighted", "bias"], "sums"),
        ("Tanh", ["sums"], "units"),
        ("MatMul", ["units", "output"], "of_units"),
        ("MatMul", ["scaled", "skip"], "of_inputs"),
        ("Add", ["of_inputs", "of_units"], "scores"),
    ]
    given = helper.make_tensor_value_info(
        "inputs", TensorProto.DOUBLE, ["jobs", len(network.inputs)]
    )
    made = helper.make_tensor_value_info("scores", TensorProto.DOUBLE, ["jobs"])
    graph = helper.make_graph(
        [helper.make_node(kind, taken, [name]) for kind, taken, name in steps],
        "scores of jobs",
        [given],
        [made],
        [numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in numbers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, {"inputs": "\n".join(network.inputs)})
    with whole_file(path, folders=True) as part:
        part.write_bytes(model.SerializeToString())
