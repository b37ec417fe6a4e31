"""A directory with the current index, and at most one copy that a run works on.

    DIR/lock                    held (flock) by the run that uses the directory
    DIR/CURRENT                 names the current index, its offsets, and how its documents were
                                read; JSON
    DIR/generation-0000007/     that index: shard-000/, ..., a RocksDB each
    DIR/generation-0000008/     the copy that a run works on; garbage if nobody holds the lock

A run never opens the current index. It works on a copy, in which the table files are hard
links: RocksDB writes a table once and never changes it. When the run is done and its output
is in place, `Work.commit` switches CURRENT by a rename. docs/adr/0008-offline-state.md says
what a kill leaves at each step; the next run removes generations that CURRENT doesn't name.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from worker.closing import Closing
from worker.index.directory import shard_name
from worker.index.errors import StoreDamaged
from worker.index.read_only import ReadOnlyStore
from worker.index.snapshots.storage import sync_directory
from worker.process.private import open_private, private_directory
from worker.settings.documents import DocumentsSection
from worker.untrusted import NOT_READ

FORMAT_VERSION = 3
_CURRENT = "CURRENT"
_NEW = "CURRENT.new"
_LOCK = "lock"
_MOST_BYTES = 1 << 20
"""Some 100,000 shards."""
_DOCUMENTS, _SEATS, _LOG = (f"offline.{name}" for name in ("documents", "shards", "fingerprints"))
"""The topics of a run: of the documents, the shards and their order."""
_GENERATION = "^generation-[0-9]{7,18}$"
_NOT_COPIED = re.compile(r"LOCK|LOG(\.old.*)?")
"""The files that RocksDB creates whenever it opens a directory."""


class StateError(Exception):
    """The state directory can't be used; the message says why, and what to do."""


def current_index(home: Path) -> Path:
    """Return the directory of the current index, without locking: a run may replace it.

    Raises:
        StateError: there is none, or the state can't be read.
    """
    return home / _existing(home).name


def recorded_documents(home: Path) -> Mapping[str, object]:
    """Return how the documents were read that the current index has; see `described`.

    Raises:
        StateError: there is no index, or the state can't be read.
    """
    return _existing(home).documents


def _existing(home: Path) -> _Current:
    current = _read(home)
    if current is None:
        raise StateError(f"--state: {home} has no state of neardup")
    return current


class _Versioned(msgspec.Struct):
    """What CURRENT of any version has."""

    format: int


_Offset = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class _Recorded(_Versioned, forbid_unknown_fields=True):
    """What CURRENT of this version has."""

    generation: Annotated[str, msgspec.Meta(pattern=_GENERATION)]
    offsets: dict[str, list[_Offset]]
    documents: dict[str, Any]


class _Current(NamedTuple):
    """What CURRENT says."""

    name: str
    offsets: Mapping[str, Sequence[int]]
    documents: Mapping[str, object]


class Work:
    """The index that a run works on, and the offsets at which it starts."""

    def __init__(self, home: Path, current: _Current | None, documents: DocumentsSection) -> None:
        """Prepare the generation that follows in the state directory ``home``."""
        self._home = home
        self._documents = described(documents)
        number = 1
        if current is not None:
            number += int(current.name.removeprefix("generation-"))
        self._name = f"generation-{number:07}"
        self.path = home / self._name
        self.offsets = {} if current is None else current.offsets

    def commit(self, reached: Mapping[str, Sequence[int]]) -> None:
        """Make this index, which must be closed, the current one."""
        _sync_tree(self.path)
        content = {
            "format": FORMAT_VERSION,
            "generation": self._name,
            "offsets": reached,
            "documents": self._documents,
        }
        new = self._home / _NEW
        with new.open("w") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._home)
        new.rename(self._home / _CURRENT)
        sync_directory(self._home)


class StateVersions(Closing):
    """The state directory, locked."""

    def __init__(self, home: Path) -> None:
        """Lock the directory, creating it if needed, and remove the leftovers of killed runs.

        Raises:
            StateError: it is in use, isn't a state directory of neardup, or is damaged.
            OSError: it can't be read or written.
        """
        self._home = home
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_ours()
        private_directory(home, _LOCK)
        self._lock = open_private(home / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StateError(f"--state: {home} is in use by another run") from None
            self._current = _read(self._home)
            self._sweep()
        except BaseException:
            os.close(self._lock)
            raise

    @contextmanager
    def work(self, documents: DocumentsSection) -> Iterator[Work]:
        """Yield a copy of the current index; it is removed afterwards unless committed.

        Raises:
            StateError: the index is damaged, or its documents were read in another way.
        """
        if self._current is not None:
            _check(self._home / self._current.name, self._current.offsets)
            _check_read_alike(self._home, self._current.documents, described(documents))
        work = Work(self._home, self._current, documents)
        try:
            work.path.mkdir()
            if self._current is not None:
                _clone(self._home / self._current.name, work.path)
            yield work
        finally:
            self._current = _read(self._home)
            self._sweep()

    def _check_ours(self) -> None:
        names = {path.name for path in self._home.iterdir()}
        if names and not names & {_CURRENT, _LOCK}:
            raise StateError(
                f"--state: {self._home} has other files ({min(names)}, …) and no state of"
                " neardup; name an empty directory, or one that doesn't exist"
            )

    def _sweep(self) -> None:
        (self._home / _NEW).unlink(missing_ok=True)
        kept = None if self._current is None else self._current.name
        for path in self._home.iterdir():
            if path.name != kept and re.match(_GENERATION, path.name):
                shutil.rmtree(path)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)


def _check_read_alike(
    home: Path, recorded: Mapping[str, object], here: Mapping[str, object]
) -> None:
    if different := differences(recorded, here):
        raise StateError(
            f"--state: {home} has documents that were read otherwise ({'; '.join(different)}): read"
            " these in the same way, or name a new directory"
        )


def _read(home: Path) -> _Current | None:
    """Return what CURRENT says; None if there is none."""
    path = home / _CURRENT
    damaged = StateError(f"--state: {path} is damaged; restore it, or name a new directory")
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise damaged from None
    try:
        version = msgspec.json.decode(text, type=_Versioned).format
        if version == FORMAT_VERSION:
            found = msgspec.json.decode(text, type=_Recorded)
            _check_offsets(found.offsets)
    except NOT_READ:
        raise damaged from None
    if version != FORMAT_VERSION:
        raise StateError(
            f"--state: {home} has format {version}, but this neardup reads only format"
            f" {FORMAT_VERSION}: name a new directory, or run the version that made this one"
        )
    if not (home / found.generation).is_dir():
        raise StateError(f"--state: {path} names {found.generation}, which is missing")
    return _Current(found.generation, found.offsets, found.documents)


def _check_offsets(offsets: Mapping[str, Sequence[int]]) -> None:
    """Check that offsets are those of the topics at which a run continues.

    Raises:
        ValueError: they are others.
    """
    if offsets.keys() != {_DOCUMENTS, _SEATS, _LOG}:
        raise ValueError("other topics")
    documents, seats, log = (offsets[name] for name in (_DOCUMENTS, _SEATS, _LOG))
    if len(documents) != 1 or not seats or list(log) != [min(seats)]:
        raise ValueError("other offsets")


def _check(index: Path, offsets: Mapping[str, Sequence[int]]) -> None:
    """Check that the store of each shard can be opened, and is where CURRENT says it is.

    Nothing else has what is in it: a run that began elsewhere would begin with an empty one.
    """
    for shard, at in enumerate(offsets[_SEATS]):
        damage = _damage(index / shard_name(shard), at, offsets[_DOCUMENTS][0])
        if damage is not None:
            raise StateError(
                f"--state: {index.parent} is damaged: {damage}. Restore it, or judge the files of"
                " the earlier runs again with a new directory"
            )


def _damage(store: Path, at: int, documents: int) -> str | None:
    if not store.is_dir():
        return f"{store} is missing"
    try:
        with ReadOnlyStore(store) as opened:
            facts = opened.facts()
    except StoreDamaged as error:
        return str(error).rstrip(".")
    covered = facts.coverage.expected(0)
    if (facts.offset, covered or documents) == (at, documents):
        return None
    return (
        f"{store} is at offset {facts.offset}, after {covered} documents, and {_CURRENT} says"
        f" {at} and {documents}"
    )


def _clone(source: Path, target: Path) -> None:
    """Copy an index that nobody has open; link table files if the file system allows it."""
    for path in source.iterdir():
        copy = target / path.name
        if path.is_dir():
            copy.mkdir()
            _clone(path, copy)
        elif _NOT_COPIED.fullmatch(path.name) is None:
            if path.suffix == ".sst":
                with suppress(OSError):
                    os.link(path, copy)
                    continue
            shutil.copyfile(path, copy)


def _sync_tree(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            _sync_tree(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)


_WITHOUT_EFFECT = ("require_id", "skip_deleted", "splice")
"""Settings of documents that change no text, id or time. Those that are new are compared."""
_FORMATS = {"json": "json", "text": "lines"}


def described(documents: DocumentsSection) -> dict[str, object]:
    """Return all settings that decide which text, id or time a document has.

    Tables and lines of JSON with the same fields are read alike; lines of text have none.
    """
    settings = documents.model_dump(mode="json", exclude=set(_WITHOUT_EFFECT))
    return {**settings, "format": _FORMATS[documents.format]}


def section_of(recorded: Mapping[str, object]) -> dict[str, object]:
    """Return what `described` has as settings of the section ``documents``."""
    formats = {name: setting for setting, name in _FORMATS.items()}
    return {**recorded, "format": formats.get(str(recorded.get("format")))}


def differences(recorded: Mapping[str, object], here: Mapping[str, object]) -> list[str]:
    """Return where two ways to read documents differ; what isn't recorded had its default."""
    before = {**described(DocumentsSection()), **recorded}
    return [
        f"documents.{name}: it has {_shown(had)}, the settings say {_shown(here.get(name))}"
        for name, had in before.items()
        if had != here.get(name)
    ]


def _shown(value: object) -> str:
    return "none" if value is None else ",".join(value) if isinstance(value, list) else str(value)
