"""Arrays in checkpoints of TensorFlow, read by numpy alone.

A checkpoint is a *tensor bundle*: ``NAME.index``, which says of each array its type, its shape and
where it is, and ``NAME.data-00000-of-00001``, which has the numbers of one array after the other.
The index is a table as LevelDB writes them: blocks of keys and values in order, a block that lists
these blocks, and 48 bytes at the end that say where that one is. Both are described in public: in
``tensorflow/core/protobuf/tensor_bundle.proto``, and in LevelDB's ``doc/table_format.md``. Nothing
in a file is run, and what does not agree with its checksum is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.files import MEGABYTE, bytes_of, shaped

#: Most bytes that are read of a file; checkpoints of small networks have less than one megabyte.
_MOST = 64 * MEGABYTE

#: Bytes at the end of a table, and the number that the last eight of them are.
_FOOTER, _MAGIC = 48, 0xDB4775248B80FB57

#: Fields of an entry by their numbers, and what stands for float32 there.
_TYPE, _SHAPE, _FILE, _OFFSET, _BYTES, _CHECKSUM = 1, 2, 3, 4, 5, 6
_FLOAT32 = 1


def arrays_of(index: str | Path, names: Collection[str]) -> dict[str, NDArray[np.float32]]:
    """Return arrays of a checkpoint by name, each of its own shape.

    Parameters
    ----------
    index : the file ``NAME.index``; that of the numbers is beside it.
    names : of the arrays, as "pi/dense/kernel".

    Raises
    ------
    HpcgymError : a file that is not there, damaged or of another format; a name that it does not
        have; an array that is not of float32.
    """
    table = bytes_of(index, _MOST, HpcgymError)
    with shaped(index, "the index of a checkpoint of TensorFlow"):
        if int.from_bytes(table[-8:], "little") != _MAGIC:
            raise HpcgymError("it is not the index of a checkpoint of TensorFlow")
        entries = dict(_entries(table))
        for name in names:
            if name.encode() not in entries:
                raise HpcgymError(f"it has no array {name!r}")
        fields = {name: _fields(entries[name.encode()]) for name in names}
    data = bytes_of(data_file(index), _MOST, HpcgymError)
    with shaped(data_file(index), "what its index says"):
        return {name: _array(name, entry, data) for name, entry in fields.items()}


def data_file(index: str | Path) -> Path:
    """Return the file that has the numbers of a checkpoint; checkpoints of one file have this."""
    return Path(index).with_suffix(".data-00000-of-00001")


def _array(name: str, entry: dict[int, list[Any]], data: bytes) -> NDArray[np.float32]:
    """Return the array of an entry of the index, of which all numbers must be stored."""
    kind, file, begin, size, checksum = (
        entry.get(field, [0])[0] for field in (_TYPE, _FILE, _OFFSET, _BYTES, _CHECKSUM)
    )
    if kind != _FLOAT32 or file != 0:
        raise HpcgymError(f"{name} is not an array of float32 in this file")
    shape = [_fields(dimension)[1][0] for dimension in _fields(entry[_SHAPE][0]).get(2, [])]
    stored = data[begin : begin + size]
    if _masked_crc(stored) != checksum:
        raise HpcgymError(f"{name} is damaged, or not all of it is there")
    return np.frombuffer(stored, "<f4").reshape(shape)


# --- Tables as LevelDB writes them ----------------------------------------------------------------


def _entries(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values of a table."""
    handles = _varints(table[-_FOOTER:])  # of a block without entries, then of the list of blocks
    next(handles), next(handles)
    for _, where in _block(table, next(handles), next(handles)):
        handle = _varints(where)
        yield from _block(table, next(handle), next(handle))


def _block(table: bytes, begin: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values of a block; a key begins as that before it does."""
    content, packed = table[begin : begin + size], table[begin + size]
    if packed:
        raise HpcgymError("a block of it is packed, which checkpoints are not")
    checksum = int.from_bytes(table[begin + size + 1 : begin + size + 5], "little")
    if _masked_crc(table[begin : begin + size + 1]) != checksum:
        raise HpcgymError("a block of it is damaged")
    restarts = int.from_bytes(content[-4:], "little")
    entries = content[: size - 4 * (restarts + 1)]
    place, key = 0, b""
    while place < len(entries):
        shared, place = _varint(entries, place)
        own, place = _varint(entries, place)
        length, place = _varint(entries, place)
        key = key[:shared] + entries[place : place + own]
        yield key, entries[place + own : place + own + length]
        place += own + length


def _masked_crc(content: bytes) -> int:
    """Return the checksum of these formats: a CRC-32C, turned by 15 bits, and a number added."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _crc_of(byte: int) -> int:
    """Return what a byte adds to a CRC-32C: eight steps of its polynomial."""
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC = [_crc_of(byte) for byte in range(256)]


# --- Numbers and messages as protocol buffers write them ------------------------------------------


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """Return a whole number, written as 7 bits a byte, the lowest first; and the place behind."""
    value = shift = 0
    while content[place] & 0x80:
        value |= (content[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | content[place] << shift, place + 1


def _varints(content: bytes) -> Iterator[int]:
    """Return the whole numbers that stand one after the other."""
    place = 0
    while place < len(content):
        value, place = _varint(content, place)
        yield value


def _fields(message: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message by their numbers: whole numbers, or bytes."""
    fields: dict[int, list[Any]] = {}
    place = 0
    while place < len(message):
        head, place = _varint(message, place)
        field, kind = head >> 3, head & 7
        value: int | bytes
        if kind == 0:
            value, place = _varint(message, place)
        elif kind == 5:
            value, place = int.from_bytes(message[place : place + 4], "little"), place + 4
        else:
            size, place = _varint(message, place)
            value, place = message[place : place + size], place + size
        fields.setdefault(field, []).append(value)
    return fields
