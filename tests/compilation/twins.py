"""Compiled functions of one name, which one function made of different parts; and their callers."""

from __future__ import annotations

from hpcgym.compilation import jit, jit_entry, jit_part


def twin_of(part):
    @jit
    def twin(number):
        """Return a sum that is too long to become a part of those that call this."""
        total = part(number, 1) + part(number, 2) + part(number, 3) + part(number, 4)
        total += part(total, 5) + part(total, 6) + part(total, 7) + part(total, 8)
        total += part(total, 9) + part(total, 10) + part(total, 11) + part(total, 12)
        total += part(total, 13) + part(total, 14) + part(total, 15) + part(total, 16)
        return total

    return twin


@jit_part
def remainders(number, other):
    return (number * other) % (number // other + 3) + number % other


@jit_part
def quotients(number, other):
    return (number * other) // (number // other + 3) + number // other


one, other = twin_of(remainders), twin_of(quotients)


@jit_entry
def call_one(number):
    return one(number)


@jit_entry
def call_other(number):
    return other(number)
