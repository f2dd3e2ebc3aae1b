"""Things that learn to schedule or plan ahead; imported as ``hpcgym.agents``.

To read an algorithm from top to bottom, take ``rule_es``, which finds a formula for a scheduler by
``train(make, seed, steps)``, as the suite calls it. What agents share: ``replays``, the searches on
replays of whole logs (``rule_es``, ``net_es``), by ``evolution``; ``practice``, where they learn
and where the numbers of a training go. ``xnes`` is a search for weights; where it looks, and how
searches go side by side, is in ``search``. ``behaviour_cloning`` teaches a network ``recordings``
of what policies do, which need Minari as files. Files of networks are in ``network_files``.
``weight_bandit`` learns while it schedules, ``runtime_regression`` predicts run times, and
``lookahead`` learns nothing: it plans.

Models of Stable-Baselines3 are read by ``sb3_models``, networks of any library by ``onnx_models``;
which environment they were trained in is beside them, where :func:`save_spec` has written it
(``saved``). ``rlscheduler`` are networks that others have published, as checkpoints of TensorFlow,
which ``tensor_bundle`` reads. ``settings`` has what agents are told, for Python and for the command
line.

An agent stands on the library (``hpcgym``), which imports it only where a command trains one or a
file of one is named. Networks need PyTorch, ``runtime_regression`` needs river, ``onnx_models``
needs onnxruntime, all in the extra ``agents``: they are imported with those modules, not with this
one. The others, ``xnes`` among them, need none of them.
"""

from __future__ import annotations

import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

from hpcgym.agents.saved import save_spec
from hpcgym.envs.ids import successor
from hpcgym.errors import HpcgymError, did_you_mean, installing
from hpcgym.files import MOST_JSON, bytes_of, json_of, open_file, shaped

__all__ = ["AGENTS", "TRAINED", "contents_of", "ending_of", "import_agent", "load", "save_spec"]

_KIND = "the file of an agent of this version"

#: Name of an agent, as in its file -> module that loads it. Files of networks are archives, which
#: PyTorch reads; the others are JSON.
AGENTS = {
    "clone": "behaviour_cloning",
    "xnes": "xnes",
}
_NETWORKS = ("behaviour_cloning",)

#: The agent that learns a policy of schedulers, ``network:FILE``.
NETWORK = "net-es"

#: Name of an agent that the suite trains -> its module and class.
TRAINED = {
    "net-es": ("net_es", "NetEs"),
    "rule-es": ("rule_es", "RuleEs"),
    "xnes": ("xnes", "Xnes"),
}


def load(path: str | Path) -> Any:
    """Return a saved agent: ``name``, ``env_id``, ``env_options``, ``begin(env)``, ``act``.

    It may be a model of Stable-Baselines3, with the spaces that it was trained for: reading such a
    file runs code of its author; the others run none. It may be a network in a file of ONNX. Both
    have the first two attributes only if :func:`save_spec` has written them beside the file.
    ``rlscheduler:FOLDER`` is a network of :mod:`hpcgym.agents.rlscheduler`.

    Raises
    ------
    HpcgymError : there is no such file, it holds no agent, or PyTorch is missing.
    """
    if is_rlscheduler(path):
        return import_agent("rlscheduler").load(str(path))
    if is_sb3_model(path):
        return import_agent("sb3_models").load(path)
    if str(path).endswith(".onnx"):
        return import_agent("onnx_models").load(path)
    contents = contents_of(path)
    with shaped(path, _KIND):
        agent = import_agent(AGENTS[contents["agent"]]).load(contents)
        env_id = contents.get("env_id", agent.env_id)  # not all files have it
        if successor(env_id) != agent.env_id:
            raise HpcgymError(f"'env_id' is {env_id!r}, and {agent.name} acts in {agent.env_id!r}")
        return agent


def ending_of(name: str) -> str:
    """Return how the names of an agent's files end, of one of AGENTS or TRAINED."""
    if name == NETWORK:
        return ".json"
    if name not in AGENTS:  # what it learns is a scheduler
        return ".toml"
    return ".pt" if AGENTS[name] in _NETWORKS else ".json"


def named_file(name: str, path: str | Path) -> str:
    """Return what names the file of a trained agent to ``hpcgym.study.evaluate``."""
    return f"network:{path}" if name == NETWORK else str(path)


def is_rlscheduler(text: str | Path) -> bool:
    """Return whether this names a network of RLScheduler, by a folder behind a prefix."""
    return str(text).partition(":")[0] in ("rlscheduler", "rlscheduler-sampled")


def is_sb3_model(path: str | Path) -> bool:
    """Return whether a file is an archive as Stable-Baselines3 writes them."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            return {"data", "policy.pth"} <= {*archive.namelist()}
    except (HpcgymError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False  # the reader reports the error


def contents_of(path: str | Path) -> dict[str, Any]:
    """Return what the file of an agent of this version holds, with its name as "agent".

    Numbers of JSON may be infinite or none: those found on the way are, and each agent checks the
    numbers that it acts by.

    Raises
    ------
    HpcgymError : as of :func:`load`.
    """
    with open_file(path) as file:
        network = zipfile.is_zipfile(file)
    contents = import_agent("network_files").read(path) if network else _json_of(path)
    name = contents.get("agent")
    if name is None:
        raise HpcgymError(f"{path} holds no agent: it names none")
    if not isinstance(name, str) or name not in AGENTS:
        raise HpcgymError(
            f"{path} holds an agent that this version does not know: {did_you_mean(name, AGENTS)}"
        )
    if network != (AGENTS[name] in _NETWORKS):
        raise HpcgymError(f"{path} is not {_KIND}: {name} has files of another kind")
    return contents


def _json_of(path: str | Path) -> dict[str, Any]:
    """Return what a file in JSON holds."""
    if str(path).endswith(".zip"):
        raise HpcgymError(f"{path} is no archive: it is damaged, or no model of Stable-Baselines3")
    content = bytes_of(path, MOST_JSON, HpcgymError)
    try:
        contents = json_of(content, "it", finite=False)
    except HpcgymError as error:
        raise HpcgymError(f"{path} is not {_KIND}: {error}") from None
    if not isinstance(contents, dict):
        raise HpcgymError(f"{path} is not {_KIND}: it holds no object of JSON")
    return contents


def import_agent(module: str) -> Any:
    """Return a module of this package.

    Raises
    ------
    HpcgymError : what agents need is not installed.
    """
    try:
        return import_module(f"hpcgym.agents.{module}")
    except ImportError as error:
        missing = error.__cause__ or error  # what hpcgym.envs.sb3 says has a cause
        raise HpcgymError(
            f"this agent needs a library that is not here: {installing('agents')} ({missing})"
        ) from None


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not Path(__file__).with_name(f"{name}.py").exists():
        raise AttributeError(f"module 'hpcgym.agents' has no attribute {name!r}")
    return import_agent(name)
