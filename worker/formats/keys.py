"""The rule by which a record's key is the id of its document.

Every key has an id, no two keys have the same, and an id that wasn't cut tells its key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from worker.formats.unreadable import Unreadable
from worker.visible import counted

KeyKind = Literal["auto", "text", "bytes", "long", "int", "registry", "ignore"]

_HEX: Final = b"hex:"
_CUT: Final = b"~sha256:"
_DIGITS: Final = 64
_TAIL: Final = len(_CUT) + _DIGITS
"""The end of an id that was cut: the mark, and the SHA-256 of the key in hexadecimal."""

LEAST_ID_BYTES: Final = _TAIL + 24
"""The least limit of ids: one that was cut keeps a head."""

_NUMBERS: Final = {"long": 8, "int": 4}
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]")
"""C0, DEL and C1 in UTF-8."""
_SHOWN: Final = 16


@dataclass(frozen=True, slots=True)
class Keys:
    """What keys are, and the most bytes of an id.

    ``auto``: UTF-8 without control characters is the id as it is. Other keys are written ``hex:``
    and their bytes in hexadecimal; so is a text that looks like an id that this rule writes. An id
    that would be longer than ``most`` is cut, and ends with ``~sha256:`` and the SHA-256 of the key
    in hexadecimal. ``text``: the same, and no other keys. ``bytes``: all keys are written in
    hexadecimal. ``long`` and ``int``: signed big-endian numbers of 8 and 4 bytes, written in
    decimal. ``registry``: with a schema, see `worker.formats.registry`. ``ignore``: keys are no
    ids. An empty key is none in all of these.
    """

    kind: KeyKind = "auto"
    most: int = 1_024

    def ident(self, key: bytes | None) -> bytes | None:
        """Return the id in a key, at most ``most`` bytes of UTF-8; None if it is in none.

        Raises:
            Unreadable: the key isn't what the setting says.
        """
        if not key or self.kind == "ignore":
            return None
        if (size := _NUMBERS.get(self.kind)) is not None:
            if len(key) != size:
                raise Unreadable(
                    "bad-id",
                    f"the key has {_shown(key)}; documents.key is {self.kind}, which takes {size}"
                    " bytes",
                )
            return b"%d" % int.from_bytes(key, "big", signed=True)
        if self.kind == "bytes":
            return self._hex(key)
        if not _is_text(key):
            if self.kind == "text":
                raise Unreadable(
                    "bad-id",
                    f"the key has {_shown(key)}; documents.key is text, which takes UTF-8 without"
                    " control characters",
                )
            return self._hex(key)
        if key.startswith(_HEX) or key[-_TAIL:-_DIGITS] == _CUT:
            return self._hex(key)
        return key if len(key) <= self.most else self._cut(key[: self.most], key)

    def key(self, ident: bytes) -> bytes:
        """Return the key that has this id; the id itself if no key has it, or it was cut."""
        for key in self._candidates(ident):
            try:
                if self.ident(key) == ident:
                    return key
            except Unreadable:
                continue
        return ident

    def _candidates(self, ident: bytes) -> list[bytes]:
        text = ident.decode(errors="replace")
        if (size := _NUMBERS.get(self.kind)) is not None:
            try:
                return [int(text).to_bytes(size, "big", signed=True)]
            except (ValueError, OverflowError):
                return []
        try:
            return [bytes.fromhex(text.removeprefix(_HEX.decode()))]
        except ValueError:
            return []

    def _hex(self, key: bytes) -> bytes:
        written = _HEX + key[: self.most].hex().encode()
        return written if len(_HEX) + 2 * len(key) <= self.most else self._cut(written, key)

    def _cut(self, written: bytes, key: bytes) -> bytes:
        head = written[: self.most - _TAIL].decode(errors="ignore").encode()
        return head + _CUT + sha256(key).hexdigest().encode()


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return _CONTROL.search(key) is None


def _shown(key: bytes) -> str:
    """Return a key's size and its first bytes: whoever wrote it chose them."""
    more = "…" if len(key) > _SHOWN else ""
    return f"{counted(len(key), 'byte')} (hexadecimal {key[:_SHOWN].hex()}{more})"
