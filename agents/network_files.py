"""Files of networks: written by ``torch.save``, and checked before anything is made of them.

Such a file is a dictionary of plain values and tensors. It is read without running code from it,
and nothing in it may take more memory than it has bytes, so a file from elsewhere is safe to load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from hpcgym.errors import HpcgymError
from hpcgym.files.tables import open_archive
from hpcgym.files.writing import whole_file

FORMAT = 1

#: What files of networks have, where they have it.
_KINDS = {
    "agent": str, "env_id": str, "env_options": dict, "network": dict, "weights": dict,
}  # fmt: skip

#: What is said of a training that went wrong.
DIVERGED = "the training has led to weights that are no numbers; a lower learning_rate may help"

#: No number that was learned is near it; sums of products of such numbers are finite in float32.
_MOST = 1e12


def are_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Tell whether all numbers of all tensors are finite."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def write(path: str | Path, contents: Mapping[str, Any]) -> None:
    """Write the file of a network, in such a way that a reader never sees half of it.

    Raises
    ------
    HpcgymError : a weight is not a finite number; the file stays as it was.
    """
    if not are_finite(_tensors_in(contents.get("weights"))):
        raise HpcgymError(f"{path} is not written: {DIVERGED}")
    with whole_file(path, folders=True) as part:
        torch.save({"format": FORMAT, **contents}, part)


def read(path: str | Path) -> dict[str, Any]:
    """Return the contents of the file of a network.

    Raises
    ------
    HpcgymError : there is no such file, it holds no network, or a tensor that is larger than what
        is stored of it.
    """
    wrong = f"{path} is not the file of an agent of this version"
    try:
        with open_archive(path) as (file, _):
            contents = torch.load(file, map_location="cpu", weights_only=True)
    except Exception:  # torch raises many kinds for files that it did not write
        raise HpcgymError(wrong) from None
    if not all(map(_is_stored, _tensors_in(contents))):
        raise HpcgymError(f"{wrong}: it has a tensor of which not all numbers are stored")
    if not isinstance(contents, dict):
        raise HpcgymError(wrong)
    if not isinstance(contents.get("format"), int) or contents["format"] != FORMAT:
        raise HpcgymError(wrong)
    for key, kind in _KINDS.items():
        if key in contents and not isinstance(contents[key], kind):
            raise HpcgymError(f"{wrong}: {key!r} is of another kind")
    return contents


def weights_for(
    name: str, given: Mapping[str, Any], wanted: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return weights of a file as float32, checked to be such as a network's.

    Parameters
    ----------
    name : of the entry of the file, for errors.
    given : what stands there.
    wanted : the network's own, of which the shapes count.

    Raises
    ------
    HpcgymError : other names or shapes, or values that are no numbers.
    """
    if set(given) != set(wanted):
        raise HpcgymError(f"{name!r} are not those of such a network")
    return {key: _numbers(f"{name}[{key!r}]", given[key], tensor) for key, tensor in wanted.items()}


def _numbers(where: str, given: Any, like: torch.Tensor) -> torch.Tensor:
    """Return a tensor of a file as float32, checked to be one of finite numbers of a shape."""
    if not isinstance(given, torch.Tensor) or not given.dtype.is_floating_point:
        raise HpcgymError(f"{where} must be a tensor of real numbers")
    if given.shape != like.shape:
        raise HpcgymError(
            f"{where} has the shape {tuple(given.shape)}, not {tuple(like.shape)}: it was made for"
            " other fields of the observation, or is damaged"
        )
    numbers = given.detach().float()
    if not (numbers.abs() <= _MOST).all():  # as none is not
        raise HpcgymError(f"{where} has values that no training leads to: none, or above {_MOST:g}")
    return numbers


def _tensors_in(contents: Any) -> list[torch.Tensor]:
    """Return all tensors in dictionaries and lists, however they are nested, each once."""
    tensors, ahead, seen = [], [contents], set()
    while ahead:
        value = ahead.pop()
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, (Mapping, list, tuple, set)) and id(value) not in seen:
            seen.add(id(value))
            ahead.extend([*value, *value.values()] if isinstance(value, Mapping) else value)
    return tensors


def _is_stored(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor has all its numbers in memory, none of them twice."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        return False
    return tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
