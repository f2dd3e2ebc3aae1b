"""Checkpoints as TensorFlow writes them, of networks whose weights a test chooses.

Written after ``tensor_bundle.proto`` and LevelDB's ``table_format.md``, with a checksum bit by bit:
nothing is shared with what reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: Layers of RLScheduler's network: what each takes, and gives.
SHAPES = {"pi/dense": (8, 32), "pi/dense_1": (32, 16), "pi/dense_2": (16, 8), "pi/dense_3": (8, 1)}

#: What a network sees of a job, in order.
WAIT, REQUESTED, PROCESSORS, MEMORY, USER, GROUP, PROGRAM, FITS = range(8)


def crc32c(content: bytes) -> int:
    """The checksum of RFC 3720, by polynomial division."""
    crc = 0xFFFFFFFF
    for byte in content:
        for bit in range(8):
            odd = (crc ^ byte >> bit) & 1
            crc = crc >> 1 ^ (0x82F63B78 if odd else 0)
    return crc ^ 0xFFFFFFFF


def masked(content: bytes) -> bytes:
    crc = crc32c(content)
    return ((((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32).to_bytes(4, "little")


def varint(value: int) -> bytes:
    parts = []
    while True:
        value, low = divmod(value, 128)
        parts.append(low + (128 if value else 0))
        if not value:
            return bytes(parts)


def entry(array: np.ndarray, offset: int, kind: int = 1) -> bytes:
    """A ``BundleEntryProto``."""
    content = array.tobytes()
    sizes = [b"\x08" + varint(size) for size in array.shape]
    shape = b"".join(b"\x12" + varint(len(size)) + size for size in sizes)
    return (
        b"\x08" + varint(kind) + b"\x12" + varint(len(shape)) + shape
        + (b"\x20" + varint(offset) if offset else b"") + b"\x28" + varint(len(content))
        + b"\x35" + masked(content)
    )  # fmt: skip


def block(pairs: list[tuple[bytes, bytes]], every: int = 3) -> bytes:
    """A block; each ``every``-th key is written whole, of the others what is new."""
    content, restarts, last = b"", [], b""
    for place, (key, value) in enumerate(pairs):
        shared = 0
        if place % every == 0:
            restarts.append(len(content))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        content += varint(shared) + varint(len(key) - shared) + varint(len(value))
        content += key[shared:] + value
        last = key
    content += b"".join(restart.to_bytes(4, "little") for restart in restarts)
    return content + len(restarts).to_bytes(4, "little")


def write_checkpoint(folder: Path, arrays: Mapping[str, Any], kind: int = 1) -> Path:
    """Write arrays of float32 as a checkpoint, in two blocks of keys; return the index."""
    folder.mkdir(parents=True, exist_ok=True)
    data, pairs = b"", [(b"", b"\x08\x01\x1a\x02\x08\x01")]
    for name in sorted(arrays):
        array = np.asarray(arrays[name], "<f4")
        pairs.append((name.encode(), entry(array, len(data), kind)))
        data += array.tobytes()
    table, handles, half = b"", [], len(pairs) // 2
    for part in (pairs[:half], pairs[half:]):
        content = block(part)
        handles.append((part[-1][0], varint(len(table)) + varint(len(content))))
        table += content + b"\0" + masked(content + b"\0")
    places = b""
    for content in (block([]), block(handles, every=1)):
        places += varint(len(table)) + varint(len(content))
        table += content + b"\0" + masked(content + b"\0")
    table += places.ljust(40, b"\0") + (0xDB4775248B80FB57).to_bytes(8, "little")
    (folder / "variables.data-00000-of-00001").write_bytes(data)
    index = folder / "variables.index"
    index.write_bytes(table)
    return index


def random_network(seed: int = 0) -> dict[str, Any]:
    """Weights drawn at random, and one array that no network of a policy has."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {"beta1_power": np.float32(0.5)}
    for layer, shape in SHAPES.items():
        arrays[f"{layer}/kernel"] = rng.normal(size=shape).astype("<f4")
        arrays[f"{layer}/bias"] = rng.normal(size=shape[1:]).astype("<f4")
    return arrays


def network_of(**weights: float) -> dict[str, Any]:
    """A network that gives a job minus the sum of what it sees, by weights above 0."""
    arrays = {name: np.zeros_like(of) for name, of in random_network().items()}
    for feature, weight in weights.items():
        arrays["pi/dense/kernel"][globals()[feature.upper()], 0] = weight
    for layer in ("pi/dense_1", "pi/dense_2"):
        arrays[f"{layer}/kernel"][0, 0] = 1
    arrays["pi/dense_3/kernel"][0, 0] = -1
    return arrays
