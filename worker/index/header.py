"""The header of a store: everything in which it must agree with the settings."""

from __future__ import annotations

import json
from pathlib import Path

from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.untrusted import NOT_READ

FORMAT_VERSION = 14
"""Earlier versions have other keys or values, or were judged by other rules; none is read."""

StoreHeader = dict[str, str | int | float | bool]


def pack_header(header: StoreHeader) -> bytes:
    """Return the bytes of a store's header, with the version of its format."""
    return json.dumps({"format": FORMAT_VERSION, **header}, sort_keys=True).encode()


def unpack_header(packed: bytes, path: Path) -> StoreHeader:
    """Return the header that `pack_header` packed, without the version.

    Raises:
        StoreDamaged: it can't be read.
    """
    header = _load(packed, path)
    header.pop("format", None)
    return header


def check_header(packed: bytes, wanted: StoreHeader, path: Path) -> None:
    """Check the header of a store against the one that is wanted.

    Raises:
        HeaderMismatch: they differ; the message says how.
        StoreDamaged: it can't be read.
    """
    found = _load(packed, path)
    version = found.pop("format", None)
    if version != FORMAT_VERSION:
        raise HeaderMismatch(
            f"{path} has format {version}, and this neardup reads {FORMAT_VERSION}:"
            " begin with a new index, or run the version that made this one"
        )
    if found == wanted:
        return
    differences = [
        f"{name}: it has {found.get(name, 'none')}, the settings say {wanted.get(name, 'none')}"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]
    raise HeaderMismatch(f"{path} was made with other parameters ({'; '.join(differences)})")


def _load(packed: bytes, path: Path) -> StoreHeader:
    try:
        return dict(json.loads(packed))
    except (*NOT_READ, TypeError) as error:
        raise StoreDamaged(f"{path}: its header can't be read: {error}") from error
