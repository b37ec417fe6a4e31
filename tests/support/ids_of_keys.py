"""The rule by which a key is an id, once more and plainly."""

from __future__ import annotations

from hashlib import sha256
from unicodedata import category

ODD_KEYS = [
    b"\x00",
    b"\x00" * 8,
    (127).to_bytes(8, "big"),
    (128).to_bytes(8, "big"),
    (-(2**63)).to_bytes(8, "big", signed=True),
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\x00\x00\x00\x00\x07\x02a",
    b'{"schema":null,"payload":{"id":5}}',
    b"a\x00b",
    b"line\n",
    b"hex:00",
    b"hex:",
    "ä\u2028€😀".encode(),
    "\x85".encode(),
    b"k" * 1_024,
    b"k" * 1_025,
    "ä".encode() * 600,
    b"\xff" * 511,
    b"\x00" * 100_000,
    b"k~sha256:" + b"0" * 64,
]
"""Keys as serializers, other tools and strangers write them."""


def id_of_key(key: bytes, most: int = 1_024) -> bytes:
    """Return the id of a key that isn't empty, by the default setting."""
    try:
        text = key.decode()
        plain = not any(category(character) == "Cc" for character in text)
    except UnicodeDecodeError:
        plain = False
    if plain and (key[:4] == b"hex:" or key[-72:-64] == b"~sha256:"):
        plain = False
    written = key if plain else b"hex:" + key.hex().encode()
    if len(written) <= most:
        return written
    head = written[: most - 72].decode(errors="ignore").encode()
    return head + b"~sha256:" + sha256(key).hexdigest().encode()
