"""The snapshots of an application, wherever they lie.

Below ``<url>/<app>/shard-000``, ``files/`` holds the stores' files under their digests, and
``snapshots/`` the manifests, named after their offsets and headers. A manifest is written after
all of its files, so a snapshot that was cut short is none. ``distrusted/`` has a note for each
file that is no sound table although its digest is right, and for each manifest that no good
store comes of: snapshots that these concern are neither restored nor counted. ``damaged/``
has files that are not what was shipped, and ``verified/`` when each index's files were last read
back.
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

from worker.snapshots.manifest import FileEntry, Manifest, ManifestError, decode, header_digest
from worker.snapshots.storage import Storage, sync_directory
from worker.store import Header

__all__ = ["Interrupted", "Repository", "ShardSnapshots", "SnapshotDamaged", "file_digest"]

_log = logging.getLogger(__name__)

_CHUNK = 4 << 20
_SMALL_BYTES = 16 << 10
_TRANSFERS = 4
"""Files on their way at the same time: hashing and input/output run outside the GIL."""
_YOUNG_SECONDS = 3_600.0
"""While a shard moves, two workers may ship it, and one sees files that no manifest names yet."""


class SnapshotDamaged(Exception):  # noqa: N818 -- says what was found
    """A file of a snapshot is gone, or isn't what was shipped."""


class Interrupted(Exception):  # noqa: N818 -- nothing is wrong
    """The worker ends, or has no use for the shard any more."""


class Repository:
    """All snapshots of an application."""

    def __init__(self, url: str, app: str, options: Mapping[str, Any] | None = None) -> None:
        """Find the file system; nothing is read yet.

        Raises:
            ConfigurationError: its kind is not known, or what it needs is not installed.
        """
        self.url = url
        self._storage = Storage.at(url, options or {}).below(app)

    def shard(self, shard: int) -> ShardSnapshots:
        """Give the snapshots of a shard."""
        return ShardSnapshots(self._storage.below(f"shard-{shard:03d}"))


class ShardSnapshots:
    """The snapshots of one shard. What the storage raises comes through."""

    def __init__(self, storage: Storage) -> None:
        """Take the shard's directory."""
        self._storage = storage

    @property
    def place(self) -> str:
        """Name where they lie."""
        return self._storage.root

    def manifests(self, on_bad: Callable[[str, str], None] | None = None) -> list[Manifest]:
        """Give all manifests that can be read, the newest (by offset) first.

        ``on_bad`` is told the names of the others, and what is wrong with them.
        """
        return [manifest for _, manifest in self._stored(on_bad)]

    def _stored(
        self, on_bad: Callable[[str, str], None] | None = None
    ) -> list[tuple[str, Manifest]]:
        """Give manifests under the names that they have here, which may be an older version's."""
        found = []
        for name in sorted(self._storage.sizes("snapshots"), reverse=True):
            if not name.endswith(".json"):
                continue
            try:
                found.append((name, decode(self._storage.read(f"snapshots/{name}"))))
            except (ManifestError, FileNotFoundError) as error:
                if on_bad is not None:
                    on_bad(name, str(error))
        return found

    def missing(self, manifests: Iterable[Manifest]) -> dict[str, list[str]]:
        """Give, by manifest, the files of these snapshots that are gone or of another size."""
        sizes = self._storage.sizes("files")
        gaps = {m.name: [file.name for file in _absent(m.files, sizes)] for m in manifests}
        return {name: files for name, files in gaps.items() if files}

    def absent(self, files: Iterable[FileEntry]) -> list[FileEntry]:
        """Return those of these files that are to be shipped: gone, or of another size."""
        return _absent(files, self._storage.sizes("files"))

    def distrusted(self, manifests: Iterable[Manifest]) -> dict[str, str]:
        """Give, by manifest, why these snapshots must not be restored; most often nothing."""
        noted = self._storage.sizes("distrusted").keys()
        if not noted:
            return {}
        found = {}
        for manifest in manifests:
            rotten = [file.name for file in manifest.files if file.sha256 in noted]
            if manifest.name in noted:
                found[manifest.name] = "no good store came of it"
            elif rotten:
                found[manifest.name] = f"{', '.join(rotten)} rotten when shipped"
        return found

    def distrusted_files(self, digests: Iterable[str]) -> set[str]:
        """Give those of these digests that are known to be of rotten tables."""
        return self._storage.sizes("distrusted").keys() & set(digests)

    def distrust(self, name: str, why: str) -> None:
        """Have nobody restore this manifest, or any that has the file of this digest."""
        _log.warning("%s: distrusts %s: %s", self.place, name, why)
        self._storage.write(f"distrusted/{name}", f"{why}\n".encode())

    def holds(self, digests: Iterable[str]) -> set[str]:
        """Give those of these files that lie here."""
        return self._storage.sizes("files").keys() & set(digests)

    def checked(self) -> set[str]:
        """Give the digests of files that were found sound when they were shipped."""
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
        """Ship a checkpoint's files, then its manifest; what is there already stays.

        ``check`` sees the files after they were hashed, and before any is shipped: so what
        rots later has another digest than was checked, and no restore takes it. What ``check``
        sets aside is shipped again.

        Raises:
            SnapshotDamaged: another worker has just deleted a file that was there.
            Interrupted: ``stop`` said so.
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
        manifest = make(entries)
        gone = self.missing([manifest])
        if gone:
            raise SnapshotDamaged(f"{self.place}: {', '.join(gone[manifest.name])} vanished")
        self._storage.write(f"snapshots/{manifest.name}", manifest.encode())
        if manifest.name in self._storage.sizes("distrusted"):  # of what it was before
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
        """Fetch a snapshot into a new directory, checking every file on the way.

        Raises:
            SnapshotDamaged: a file is gone, or its size or digest is another.
            Interrupted: ``stop`` said so.
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
        hashed = hashlib.sha256()
        size = 0
        try:
            with self._opened(file) as reading, target.open("xb") as out:
                while chunk := reading.read(_CHUNK):
                    if stop():
                        raise Interrupted
                    hashed.update(chunk)
                    out.write(chunk)
                    size += len(chunk)
                    on_bytes(len(chunk))
                out.flush()
                os.fsync(out.fileno())
        except FileNotFoundError as error:
            raise SnapshotDamaged(f"{file.name} ({file.sha256}) is gone") from error
        if (size, hashed.hexdigest()) != (file.size, file.sha256):
            if file.content is None:
                self.set_aside(file)
            raise SnapshotDamaged(f"{file.name} ({file.sha256}) is damaged")

    def _opened(self, file: FileEntry) -> BinaryIO:
        """Open a file of a snapshot, wherever it lies."""
        if file.content is not None:
            return io.BytesIO(file.content)
        return self._storage.open(f"files/{file.sha256}")

    def set_aside(self, file: FileEntry) -> None:
        """Move a damaged file out of the way, so that the next snapshot ships it again."""
        self._storage.move(f"files/{file.sha256}", f"damaged/{file.sha256}")

    def damaged(
        self, files: Sequence[FileEntry], *, stop: Callable[[], bool] = lambda: False
    ) -> list[FileEntry]:
        """Read files back; return those that are gone or not what was shipped.

        Raises:
            Interrupted: ``stop`` said so.
        """

        def differs(file: FileEntry) -> bool:
            try:
                with self._opened(file) as reading:
                    hashed = hashlib.sha256()
                    while chunk := reading.read(_CHUNK):
                        if stop():
                            raise Interrupted
                        hashed.update(chunk)
                    return hashed.hexdigest() != file.sha256
            except FileNotFoundError:
                return True

        with ThreadPoolExecutor(_TRANSFERS, "check") as pool:
            wrong = pool.map(differs, files)
            return [file for file, bad in zip(files, wrong, strict=True) if bad]

    def verified_at(self, header: Header) -> float:
        """Return when an index's files were last read back, in seconds since the epoch.

        It is 0 if they never were, or if the note can't be understood.
        """
        try:
            return float(self._storage.read(f"verified/{header_digest(header)}"))
        except (FileNotFoundError, ValueError):
            return 0.0

    def note_verified(self, header: Header, at: float) -> None:
        """Note when an index's files were last read back."""
        self._storage.write(f"verified/{header_digest(header)}", f"{at}\n".encode())

    def oldest(self, header: Header, keep: int) -> Manifest | None:
        """Return the oldest of the newest ``keep`` good snapshots made with this header.

        None as long as there are fewer: what the log has is then still wanted, should one of
        them prove damaged.
        """
        kept = self._good([manifest for _, manifest in self._stored()], header)[:keep]
        return kept[-1] if len(kept) == keep else None

    def _good(self, manifests: Iterable[Manifest], header: Header) -> list[Manifest]:
        """Return those of an index that miss no file and are not distrusted."""
        own = [manifest for manifest in manifests if manifest.header == header]
        useless = self.missing(own).keys() | self.distrusted(own).keys()
        return [manifest for manifest in own if manifest.name not in useless]

    def retire(self, header: Header, keep: int) -> None:
        """Delete all but the newest snapshots made with this header, and files of none.

        A snapshot that misses a file, or is distrusted, doesn't count. Those with another
        header are another index's, and not ours to delete. While there is a manifest that
        can't be read, which may be a newer version's, no files are deleted.
        """
        unreadable: list[str] = []
        stored = self._stored(lambda name, why: unreadable.append(f"{name}: {why}"))
        kept = self._good([manifest for _, manifest in stored], header)[:keep]
        if not kept:
            return
        staying = {manifest.name for manifest in kept}
        retired = {
            name
            for name, manifest in stored
            if manifest.header == header
            and manifest.name not in staying
            and manifest.offset < kept[0].offset
        }
        for name in retired:
            self._storage.remove(f"snapshots/{name}")
        if unreadable:
            _log.warning("%s: deletes no files, since of %s", self.place, "; ".join(unreadable))
            return
        named = {file.sha256 for name, m in stored if name not in retired for file in m.files}
        for name in self._storage.sizes("files"):
            if name not in named and self._storage.age_seconds(f"files/{name}") > _YOUNG_SECONDS:
                self._storage.remove(f"files/{name}")


def _absent(files: Iterable[FileEntry], sizes: Mapping[str, int]) -> list[FileEntry]:
    return [file for file in files if file.content is None and sizes.get(file.sha256) != file.size]


def file_digest(path: Path) -> str:
    """Give a file's SHA-256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
