"""Hostile bytes: sound ones, changed in the ways in which readers go wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import msgspec

Form = str
"""``json``; ``msgpack``, after one byte that says the version; or ``bytes``."""

_INTEGERS: Final = (0, 1, -1, 127, 128, 255, 65_535, 65_536, 2**31 - 1, 2**32 - 1, 2**53, 2**63 - 1)
_NESTED: Final = (
    (b"[", b"]"),
    (b'{"a":', b"}"),
    (b"<b>", b"</b>"),
    (b"\x91", b""),
    (b"\x81\xa1a", b""),
)
_PIECES: Final = (
    b"\0", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\n", b"\r\n\r\n", b"9" * 30, b"1e999",
    b"-0", b"--", b"NaN", b'"\\ud800"', b"null", b"=?utf-8?b?", b"charset=", b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd", b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xd9\x20",
    b"\xef\xbb\xbf", b"\xff\xfe",
)  # fmt: skip
_DEEP: Final = (3, 200, 1_100, 20_000)
_LONG: Final = (2, 30, 5_000)
_WIDE: Final = 70_000
_MOST: Final = 1 << 20


def hostile(random: Random, seeds: Sequence[bytes], form: Form) -> bytes:
    """Return one of the seeds with a few changes, or nothing but noise."""
    data = random.choice(seeds)
    if form != "bytes" and random.random() < 0.6:
        data = _restructured(random, data, form)
    for _ in range(random.choice((0, 1, 1, 2, 5)) if form != "bytes" else random.randint(1, 4)):
        data = _CHANGES[random.randrange(len(_CHANGES))](random, data, random.choice(seeds))
    return data[:_MOST]


def _piece(random: Random) -> bytes:
    kind = random.randrange(4)
    if kind == 0:
        return random.randbytes(random.randint(1, 9))
    if kind == 1:
        return random.choice(_INTEGERS).to_bytes(8, random.choice(("little", "big")), signed=True)[
            : random.choice((1, 2, 4, 8))
        ]
    return random.choice(_PIECES)


def _span(random: Random, data: bytes) -> tuple[int, int]:
    at = random.randint(0, len(data))
    return at, min(len(data), at + random.choice((0, 1, 2, 4, 8, 30, len(data))))


def _replaced(random: Random, data: bytes, _other: bytes) -> bytes:
    at, until = _span(random, data)
    return data[:at] + _piece(random) + data[until:]


def _cut(random: Random, data: bytes, _other: bytes) -> bytes:
    at, until = _span(random, data)
    return data[:at] + data[until:]


def _repeated(random: Random, data: bytes, _other: bytes) -> bytes:
    at, until = _span(random, data)
    return data[:at] + data[at:until][:200] * random.choice(_LONG) + data[until:]


def _nested(random: Random, data: bytes, _other: bytes) -> bytes:
    at, until = _span(random, data)
    (begin, end), depth = random.choice(_NESTED), random.choice(_DEEP)
    return data[:at] + begin * depth + data[at:until] + end * depth + data[until:]


def _spliced(random: Random, data: bytes, other: bytes) -> bytes:
    return data[: random.randint(0, len(data))] + other[random.randint(0, len(other)) :]


def _flipped(random: Random, data: bytes, _other: bytes) -> bytes:
    if not data:
        return b"\0"
    at = random.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]


_CHANGES: Final = (_replaced, _cut, _repeated, _nested, _spliced, _flipped)


def _restructured(random: Random, data: bytes, form: Form) -> bytes:
    """Return the same form with other values in some places."""
    tree = [json.loads(data) if form == "json" else msgspec.msgpack.decode(data[1:])]
    for _ in range(random.randint(1, 3)):
        _alter(random, tree)
    if form == "json":
        return json.dumps(tree[0], default=repr).encode()
    return data[:1] + msgspec.msgpack.encode(tree[0])


def _alter(random: Random, tree: list[Any]) -> None:
    """Replace, drop or repeat one value of a tree."""
    holder: Any = tree
    at: Any = 0
    while isinstance(holder[at], (list, dict)) and holder[at] and random.random() < 0.85:
        holder = holder[at]
        at = (
            random.choice(list(holder))
            if isinstance(holder, dict)
            else random.randrange(len(holder))
        )
    if holder is not tree and random.random() < 0.15:
        del holder[at]
        return
    if isinstance(holder, list) and random.random() < 0.1:
        wide = isinstance(holder[at], str | bytes) and len(holder[at]) == _WIDE
        holder[at:at] = [holder[at]] * (2 if wide else random.choice(_LONG))
        return
    holder[at] = _other(random, holder[at])


def _other(random: Random, value: Any) -> Any:  # noqa: ANN401 -- any value of JSON or msgpack
    if isinstance(value, bytes) and random.random() < 0.7:
        return random.choice(_CHANGES)(random, value, value[::-1])
    if isinstance(value, int) and random.random() < 0.7:
        return random.choice((value ^ 1, value // 2, *_INTEGERS, 2**64 - 1, -(2**63)))
    if isinstance(value, str) and random.random() < 0.5:
        return random.choice((value * 2, value[:-1], "\0", "\uffff", "x" * _WIDE))
    return random.choice(
        (None, True, "", "x", 0, -1, 2**63, 1e308, [], {}, [[]], {"a": 1}, b"", b"\xff")
    )
