"""What a snapshot consists of: the manifest, which is written last and makes it one."""

from __future__ import annotations

import hashlib

import msgspec

from worker.store import Header

__all__ = ["FileEntry", "Manifest", "ManifestError", "header_digest"]

FORMAT_VERSION = 1


class ManifestError(ValueError):
    """A manifest can't be read; the message says why."""


class FileEntry(msgspec.Struct, frozen=True):
    """A file of the store: its name there, its size in bytes, and its SHA-256 in hex.

    It lies in the repository under its digest, so that snapshots share what they have in
    common.
    """

    name: str
    size: int
    sha256: str
    content: bytes | None = None
    """Of a small one, which lies in the manifest itself: snapshots have many of these in common,
    and one that rots must not be the end of all of them."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A shard as it was when it had read its log up to ``offset``.

    ``header`` is the store's own, which a restored one must match exactly; ``now`` is the
    log's time there, in ms; ``documents`` were judged up to there; ``created`` is the time
    of the snapshot in seconds since the epoch. ``checked``: every table was read, and is
    what RocksDB wrote; earlier versions shipped what they found.
    """

    format: int = FORMAT_VERSION
    shard: int
    offset: int
    now: int
    documents: int
    created: float
    header: Header
    files: list[FileEntry]
    checked: bool = False

    @property
    def size_bytes(self) -> int:
        """Give the size of all files."""
        return sum(file.size for file in self.files)

    @property
    def name(self) -> str:
        """Name the manifest so that names sort as offsets do, and no other index has them.

        The header names the log, so two clusters or two lives of a topic can share a place.
        """
        return f"{self.offset:020d}-{header_digest(self.header)}.json"

    def encode(self) -> bytes:
        """Give the manifest as JSON."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"


def header_digest(header: Header) -> str:
    """Return the name that an index has in a repository: that of its header."""
    encoded = msgspec.json.encode(header, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:16]


def decode(data: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        ManifestError: it is cut short, of another format, or names files outside the store.
    """
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise ManifestError(f"no manifest: {error}") from error
    if manifest.format != FORMAT_VERSION:
        raise ManifestError(f"of format {manifest.format}, and this version reads {FORMAT_VERSION}")
    for file in manifest.files:
        if "/" in file.name or file.name in {"", ".", ".."} or not _is_digest(file.sha256):
            raise ManifestError(f"no name of a store's file, or no digest: {file.name!r}")
    return manifest


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")  # noqa: PLR2004 -- SHA-256
