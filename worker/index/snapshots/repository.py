"""The repository of an application's snapshots.

Below ``<url>/<app>/shard-000``, ``files/`` holds the stores' files under their digests, and
``snapshots/`` the manifests, named after their offsets and headers. A manifest is written after
all of its files, so an interrupted snapshot has none. ``distrusted/`` has a note for each
file that is a corrupt table although its digest is right, and for each manifest that did not
restore to a good store. Snapshots that these notes concern are neither restored nor counted.
``damaged/`` has files that differ from what was shipped, for a while. ``verified/`` has the time
when each index's files were last read back.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from worker.index.directory import shard_name
from worker.index.keyspace import StoreHeader
from worker.index.snapshots.manifest import (
    MOST_BYTES,
    FileEntry,
    Manifest,
    ManifestError,
    decode,
    header_digest,
)
from worker.index.snapshots.storage import Storage, in_part, sync_directory
from worker.settings.secrets import without_credentials

_log = logging.getLogger(__name__)

_CHUNK = 4 << 20
_SMALL_BYTES = 16 << 10
_NOTE_BYTES = 100
_TRANSFERS = 4
"""Files in transfer at the same time: hashing and I/O release the GIL."""
_YOUNG_SECONDS = 3_600.0
"""Younger files are not deleted, unless what is forgotten must be gone earlier. While a shard
moves, two workers may ship it, and one sees the other's files before a manifest names them."""
_SHARE = 0.5
"""Of the time within which what is forgotten must be gone: the age at which files are deleted."""
_WRITTEN_WHOLE = ("snapshots", "distrusted", "verified")


class SnapshotDamaged(Exception):
    """A file of a snapshot is missing, or differs from what was shipped."""


class Interrupted(Exception):
    """The worker is stopping, or doesn't need the shard any more."""


class Repository:
    """All snapshots of an application."""

    def __init__(
        self,
        url: str,
        app: str,
        options: Mapping[str, Any] | None = None,
        *,
        key: bytes | None = None,
        erasure_seconds: float = 86_400.0,
    ) -> None:
        """Resolve the file system without reading from it.

        ``key`` signs manifests. With a key, manifests that it did not sign are not read. Files that
        belong to no snapshot are gone within ``erasure_seconds``.

        Raises:
            ConfigurationError: its kind is unknown, or a package it needs is not installed.
        """
        self.url = without_credentials(url)
        self._storage = Storage.at(url, options or {}).below(app)
        self._key = key
        self._erasure_seconds = erasure_seconds

    def shard(self, shard: int) -> ShardSnapshots:
        """Return the snapshots of a shard."""
        storage = self._storage.below(shard_name(shard))
        return ShardSnapshots(storage, shard, key=self._key, erasure_seconds=self._erasure_seconds)


class ShardSnapshots:
    """The snapshots of one shard. Errors of the storage are passed on."""

    def __init__(
        self,
        storage: Storage,
        shard: int,
        *,
        key: bytes | None = None,
        erasure_seconds: float = 86_400.0,
    ) -> None:
        """Take the shard's directory and number, and what `Repository` takes."""
        self._storage = storage
        self._shard = shard
        self._key = key
        self._longest = erasure_seconds * _SHARE

    @property
    def place(self) -> str:
        """Return the path of the snapshots."""
        return self._storage.root

    def manifests(self, on_bad: Callable[[str, str], None] | None = None) -> list[Manifest]:
        """Return all readable manifests, newest (by offset) first.

        ``on_bad`` is called with the name of each other manifest, and what is wrong with it.
        """
        return [manifest for _, manifest in self._stored(on_bad)]

    def _stored(
        self, on_bad: Callable[[str, str], None] | None = None
    ) -> list[tuple[str, Manifest]]:
        """Return manifests with their stored names, which an older version may have chosen."""
        found = []
        for name in sorted(self._storage.sizes("snapshots"), reverse=True):
            if not name.endswith(".json"):
                continue
            try:
                found.append((name, self._read(name)))
            except (ManifestError, FileNotFoundError) as error:
                if on_bad is not None:
                    on_bad(name, str(error))
        return found

    def _read(self, name: str) -> Manifest:
        """Return a manifest that may be trusted.

        Raises:
            ManifestError: it is not one, is not signed, or is another shard's.
        """
        manifest = decode(self._storage.read(f"snapshots/{name}", MOST_BYTES + 1))
        if self._key is not None:
            manifest.check_proof(self._key)
        if manifest.shard != self._shard:
            raise ManifestError(f"of shard {manifest.shard}, not {self._shard}")
        return manifest

    def missing(self, manifests: Iterable[Manifest]) -> dict[str, list[str]]:
        """Return by manifest the files that are missing or of the wrong size."""
        sizes = self._storage.sizes("files")
        gaps = {m.name: [file.name for file in _absent(m.files, sizes)] for m in manifests}
        return {name: files for name, files in gaps.items() if files}

    def absent(self, files: Iterable[FileEntry]) -> list[FileEntry]:
        """Return the files that must be shipped: missing, or of the wrong size."""
        return _absent(files, self._storage.sizes("files"))

    def distrusted(self, manifests: Iterable[Manifest]) -> dict[str, str]:
        """Return by manifest why snapshots must not be restored; usually empty."""
        noted = self._storage.sizes("distrusted").keys()
        if not noted:
            return {}
        found = {}
        for manifest in manifests:
            rotten = [file.name for file in manifest.files if file.sha256 in noted]
            if manifest.name in noted:
                found[manifest.name] = "it did not restore to a good store"
            elif rotten:
                found[manifest.name] = f"{', '.join(rotten)} corrupt when shipped"
        return found

    def distrusted_files(self, digests: Iterable[str]) -> set[str]:
        """Return which of these digests belong to tables that are known to be corrupt."""
        return self._storage.sizes("distrusted").keys() & set(digests)

    def distrust(self, name: str, why: str) -> None:
        """Mark a manifest, or a file by its digest, so that no worker restores it."""
        _log.warning("%s: marked %s, which is not restored any more: %s", self.place, name, why)
        self._storage.write(f"distrusted/{name}", f"{why}\n".encode())

    def holds(self, digests: Iterable[str]) -> set[str]:
        """Return which of these digests have a file here."""
        return self._storage.sizes("files").keys() & set(digests)

    def checked(self) -> set[str]:
        """Return the digests of files that were found sound when shipped."""
        manifests = [manifest for manifest in self.manifests() if manifest.checked]
        without = self.distrusted(manifests)
        return {file.sha256 for m in manifests if m.name not in without for file in m.files}

    def publish(
        self,
        directory: Path,
        make: Callable[[list[FileEntry]], Manifest],
        *,
        digest: Callable[[Path], str] | None = None,
        check: Callable[[list[FileEntry]], None] = lambda _files: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Manifest:
        """Ship a checkpoint's new files, then its manifest.

        ``check`` is called with the files after hashing and before shipping. A file that is
        corrupted later differs from its digest, so no restore accepts it. Files that ``check``
        sets aside are shipped again.

        Raises:
            SnapshotDamaged: another worker has just deleted a file that was there.
            Interrupted: ``stop`` returned true.
        """
        digest = digest or file_digest

        def hashed(path: Path) -> FileEntry:
            if stop():
                raise Interrupted
            size = path.stat().st_size
            small = path.suffix != ".sst" and size <= _SMALL_BYTES
            content = path.read_bytes() if small else None
            return FileEntry(path.name, size, digest(path), content)

        entries = [hashed(path) for path in sorted(directory.iterdir())]
        check(entries)
        for entry in self.absent(entries):
            if stop():
                raise Interrupted
            self._storage.put(directory / entry.name, f"files/{entry.sha256}")
        manifest = make(entries).signed(self._key)
        gone = self.missing([manifest])
        if gone:
            raise SnapshotDamaged(f"{self.place}: {', '.join(gone[manifest.name])} vanished")
        self._storage.write(f"snapshots/{manifest.name}", manifest.encode())
        if manifest.name in self._storage.sizes("distrusted"):  # an earlier one of this name
            self._storage.remove(f"distrusted/{manifest.name}")
        return manifest

    def fetch(
        self,
        manifest: Manifest,
        directory: Path,
        *,
        on_bytes: Callable[[int], None] = lambda _size: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Fetch a snapshot into a new directory, and check every file's size and digest.

        Raises:
            SnapshotDamaged: a file is missing, or has another size or digest.
            Interrupted: ``stop`` returned true.
        """
        directory.mkdir(parents=True)

        def one(file: FileEntry) -> None:
            self._fetch(file, directory / file.name, on_bytes, stop)

        with ThreadPoolExecutor(_TRANSFERS, "fetch") as pool:
            transfers = [pool.submit(one, file) for file in manifest.files]
            try:
                for transfer in transfers:
                    transfer.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        sync_directory(directory)

    def _fetch(
        self,
        file: FileEntry,
        target: Path,
        on_bytes: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> None:
        def keep(chunk: bytes) -> None:
            out.write(chunk)
            on_bytes(len(chunk))

        try:
            with target.open("xb") as out:
                found = self._read_back(file, keep, stop)
                out.flush()
                os.fsync(out.fileno())
        except FileNotFoundError as error:
            raise SnapshotDamaged(f"{file.name} ({file.sha256}) is gone") from error
        if found != (file.size, file.sha256):
            if file.content is None:
                self.set_aside(file)
            raise SnapshotDamaged(f"{file.name} ({file.sha256}) is damaged")

    def _read_back(
        self, file: FileEntry, take: Callable[[bytes], object], stop: Callable[[], bool]
    ) -> tuple[int, str]:
        """Read a file of a snapshot; return its size and digest.

        Raises:
            Interrupted: ``stop`` returned true.
        """
        hashed, size = hashlib.sha256(), 0
        with self._opened(file) as reading:
            while chunk := reading.read(_CHUNK):
                if stop():
                    raise Interrupted
                hashed.update(chunk)
                take(chunk)
                size += len(chunk)
        return size, hashed.hexdigest()

    def _opened(self, file: FileEntry) -> BinaryIO:
        """Open a file of a snapshot, from the manifest or the storage."""
        if file.content is not None:
            return io.BytesIO(file.content)
        return self._storage.open(f"files/{file.sha256}")

    def set_aside(self, file: FileEntry) -> None:
        """Move a damaged file to ``damaged/``, so that the next snapshot ships it again."""
        self._storage.move(f"files/{file.sha256}", f"damaged/{file.sha256}")

    def damaged(
        self, files: Sequence[FileEntry], *, stop: Callable[[], bool] = lambda: False
    ) -> list[FileEntry]:
        """Read files back; return those that are missing or differ from what was shipped.

        Raises:
            Interrupted: ``stop`` returned true.
        """

        def differs(file: FileEntry) -> bool:
            try:
                return self._read_back(file, len, stop)[1] != file.sha256
            except FileNotFoundError:
                return True

        with ThreadPoolExecutor(_TRANSFERS, "check") as pool:
            wrong = pool.map(differs, files)
            return [file for file, bad in zip(files, wrong, strict=True) if bad]

    def verified_at(self, header: StoreHeader) -> float:
        """Return when an index's files were last read back, in seconds since the epoch.

        Returns 0 if they never were, or if the note can't be parsed.
        """
        try:
            return float(self._storage.read(f"verified/{header_digest(header)}", _NOTE_BYTES))
        except (FileNotFoundError, ValueError):
            return 0.0

    def note_verified(self, header: StoreHeader, at: float) -> None:
        """Note when an index's files were last read back."""
        self._storage.write(f"verified/{header_digest(header)}", f"{at}\n".encode())

    def newest(self, header: StoreHeader) -> Manifest | None:
        """Return the newest good snapshot made with this header, whoever shipped it."""
        return next(iter(self._good(self.manifests(), header)), None)

    def oldest(self, header: StoreHeader, keep: int) -> Manifest | None:
        """Return the oldest of the newest ``keep`` good snapshots made with this header.

        Returns None while there are fewer: the log is then still needed in case one of them is
        damaged.
        """
        kept = self._good([manifest for _, manifest in self._stored()], header)[:keep]
        return kept[-1] if len(kept) == keep else None

    def _good(self, manifests: Iterable[Manifest], header: StoreHeader) -> list[Manifest]:
        """Return the snapshots of an index that are complete and not distrusted."""
        own = [manifest for manifest in manifests if manifest.header == header]
        useless = self.missing(own).keys() | self.distrusted(own).keys()
        return [manifest for manifest in own if manifest.name not in useless]

    def retire(self, header: StoreHeader, keep: int) -> None:
        """Delete all but the newest ``keep`` snapshots made with this header, and unused files.

        Incomplete and distrusted snapshots don't count. Snapshots with another header belong to
        another index and are kept.
        """
        stored = self._stored()
        kept = self._good([manifest for _, manifest in stored], header)[:keep]
        if not kept:
            return
        staying = {manifest.name for manifest in kept}
        self._remove(
            name
            for name, manifest in stored
            if manifest.header == header
            and manifest.name not in staying
            and manifest.offset < kept[0].offset
        )
        self.sweep()

    def discard(self, header: StoreHeader) -> None:
        """Delete all snapshots made with this header, and unused files; see `sweep`."""
        self._remove(name for name, manifest in self._stored() if manifest.header == header)
        self.sweep()

    def _remove(self, manifests: Iterable[str]) -> None:
        for name in manifests:
            self._storage.remove(f"snapshots/{name}")

    def sweep(self) -> None:
        """Delete what belongs to no snapshot, unless it may be of one that is being shipped.

        These are files that no manifest names, files that were written in part, and damaged ones.
        No files of the first kind are deleted while a manifest can't be read, because a newer
        version may have written it.
        """
        young = min(_YOUNG_SECONDS, self._longest)
        unreadable: list[str] = []
        stored = self._stored(lambda name, why: unreadable.append(f"{name}: {why}"))
        named = {file.sha256 for _, manifest in stored for file in manifest.files}
        unnamed = [name for name in self._storage.sizes("files") if name not in named]
        if unreadable:
            why = "; ".join(unreadable)
            _log.warning("%s: no files deleted: manifests can't be read: %s", self.place, why)
            unnamed = [name for name in unnamed if in_part(name)]
        self._delete("files", unnamed, young)
        for directory in _WRITTEN_WHOLE:
            self._delete(directory, filter(in_part, self._storage.sizes(directory)), young)
        self._delete("damaged", self._storage.sizes("damaged"), self._longest)

    def _delete(self, directory: str, names: Iterable[str], age: float) -> None:
        """Delete those files of a directory that are older than an age in seconds."""
        for name in names:
            if self._storage.age_seconds(f"{directory}/{name}") > age:
                self._storage.remove(f"{directory}/{name}")


def _absent(files: Iterable[FileEntry], sizes: Mapping[str, int]) -> list[FileEntry]:
    return [file for file in files if file.content is None and sizes.get(file.sha256) != file.size]


def file_digest(path: Path) -> str:
    """Return a file's SHA-256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
