"""The manifest of a snapshot. It is written last, and makes the snapshot complete.

The site's key proves that a manifest was written by one of its workers.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from pathlib import Path

import msgspec

from worker.index.keyspace import StoreHeader
from worker.settings.errors import ConfigurationError
from worker.untrusted import NOT_READ, why

_LEAST_BYTES = 32
_MOST_BYTES = 64 << 10
_PURPOSE = b"neardup snapshot manifest\n"


def read_key(path: Path | None) -> bytes | None:
    """Return the key in a file, without a final newline; None if no file is set.

    Raises:
        ConfigurationError: the file can't be read, or the key is too short.
    """
    if path is None:
        return None
    where = f"index.snapshots.key_file: {path}"
    try:
        with path.open("rb") as file:
            key = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{where}: {why}") from None
    key = key.removesuffix(b"\n").removesuffix(b"\r")
    if not _LEAST_BYTES <= len(key) <= _MOST_BYTES:
        got = f"{len(key)} bytes" if len(key) <= _MOST_BYTES else f"more than {_MOST_BYTES} bytes"
        raise ConfigurationError(
            f"{where}: got {got}, must be at least {_LEAST_BYTES} and at most {_MOST_BYTES}; for"
            " example the output of `openssl rand -hex 32`"
        )
    return key


def proof(key: bytes, content: bytes) -> str:
    """Return the HMAC-SHA256 of a manifest's canonical content, in hex."""
    return hmac.new(key, _PURPOSE + content, hashlib.sha256).hexdigest()


def proves(key: bytes, content: bytes, given: str) -> bool:
    """Return whether ``given`` is the proof of this content, in constant time."""
    return hmac.compare_digest(proof(key, content).encode(), given.encode())


FORMAT_VERSION = 2
MOST_BYTES = 16 << 20
"""A manifest has some 200 bytes for each file, and the content of about ten small ones."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST = 1 << 62
_LAST_CREATED = 1e11


class ManifestError(ValueError):
    """A manifest can't be read; the message says why."""


class FileEntry(msgspec.Struct, frozen=True):
    """A file of the store: its name there, its size in bytes, and its SHA-256 in hex.

    The repository stores it under its digest, so that snapshots share common files.
    """

    name: str
    size: int
    sha256: str
    content: bytes | None = None
    """The content of a small file, stored in the manifest itself. Snapshots have many small files
    in common, and a corrupt one must not make all of them useless."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A shard as it was when it had read its log up to ``offset``.

    ``header`` is the store's header, which a restored store must match exactly; ``documents`` is
    how many were judged before ``offset``; ``created`` is the time of the snapshot in seconds since
    the epoch. ``checked`` means that every table was
    read and found sound before shipping, which earlier versions did not do. ``hmac`` proves that a
    worker with the site's key wrote all the rest.
    """

    format: int = FORMAT_VERSION
    shard: int
    offset: int
    documents: int
    created: float
    header: StoreHeader
    files: list[FileEntry]
    checked: bool = False
    hmac: str | None = None

    @property
    def size_bytes(self) -> int:
        """Return the total size of all files."""
        return sum(file.size for file in self.files)

    @property
    def name(self) -> str:
        """Return a name that sorts by offset and is unique to the index.

        The header identifies the log, so two clusters, or a topic and its successor of the same
        name, can share a repository.
        """
        return f"{self.offset:020d}-{header_digest(self.header)}.json"

    def encode(self) -> bytes:
        """Return the manifest as JSON."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"

    def signed(self, key: bytes | None) -> Manifest:
        """Return the manifest with its proof; without a key, without one."""
        given = None if key is None else proof(key, self._canonical())
        return msgspec.structs.replace(self, hmac=given)

    def check_proof(self, key: bytes) -> None:
        """Check that a worker with this key wrote the manifest.

        Raises:
            ManifestError: it has no proof, or that of another key or manifest.
        """
        if self.hmac is None:
            raise ManifestError("not signed, although index.snapshots.key_file is set")
        if not proves(key, self._canonical(), self.hmac):
            raise ManifestError("signed with another key than index.snapshots.key_file, or changed")

    def _canonical(self) -> bytes:
        return msgspec.json.encode(msgspec.structs.replace(self, hmac=None), order="sorted")


def header_digest(header: StoreHeader) -> str:
    """Return the name of an index in a repository: a digest of its header."""
    encoded = msgspec.json.encode(header, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:16]


def decode(data: bytes) -> Manifest:
    """Return the manifest in these bytes, which may come from anyone.

    Raises:
        ManifestError: it is truncated, has another format, names files outside the store, or has
            numbers that no manifest has.
    """
    if len(data) > MOST_BYTES:
        raise ManifestError(f"not a manifest: more than {MOST_BYTES} bytes")
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except NOT_READ as error:
        raise ManifestError(f"not a manifest: {why(error)}") from error
    if manifest.format != FORMAT_VERSION:
        raise ManifestError(f"format {manifest.format}, but this version reads {FORMAT_VERSION}")
    for name in ("shard", "offset", "documents"):
        if not 0 <= getattr(manifest, name) < _MOST:
            raise ManifestError(f"bad {name}: {getattr(manifest, name)}")
    if not 0 <= manifest.created < _LAST_CREATED:
        raise ManifestError(f"bad time: {manifest.created}")
    for file in manifest.files:
        _check_file(file)
    twice = [name for name, count in Counter(f.name for f in manifest.files).items() if count > 1]
    if twice:
        raise ManifestError(f"{twice[0]!r} is there twice")
    return manifest


def _check_file(file: FileEntry) -> None:
    if not _FILE_NAME.fullmatch(file.name) or not _DIGEST.fullmatch(file.sha256):
        raise ManifestError(f"bad file name or digest: {file.name[:200]!r}")
    if not 0 <= file.size < _MOST or (file.content is not None and len(file.content) != file.size):
        raise ManifestError(f"bad size of {file.name}: {file.size}")
