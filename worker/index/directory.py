"""The directories of a worker's stores, and the directories beside each."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from typing import Literal

from worker.index.keyspace import StoreHeader
from worker.index.leftovers import Leftovers
from worker.index.memory import StoreMemory
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore
from worker.probe import UNWATCHED, Probe, probing

_log = logging.getLogger(__name__)

_PREFIX = "shard-"
GROUPS_NAME = "groups"
"""The name of the directory of the groups that the shards make, beside them."""

Kind = Literal["aside", "fetching", "checkpoint", "tables"]
"""
==============  ========================================================================
``aside``       an unusable store, until another one is put aside, or it is a leftover
``fetching``    a snapshot that is being fetched
``checkpoint``  a copy of a store that is being shipped
``tables``      links to tables that are being checked, of a store or of any of the above
==============  ========================================================================
"""
_HALF_MADE: tuple[Kind, ...] = ("fetching", "checkpoint", "tables")


def shard_name(shard: int) -> str:
    """Return the name of a shard's directory, on disk and in the snapshot repository."""
    return f"{_PREFIX}{shard:03d}"


def beside(store: Path, kind: Kind) -> Path:
    """Return the path of a directory of this kind beside a store."""
    return store.with_name(f"{store.name}.{kind}")


def stores_in(state_dir: Path) -> dict[int, Path]:
    """Return the stores in a state directory by shard, ascending."""
    return {
        int(path.name.removeprefix(_PREFIX)): path
        for path in sorted(state_dir.glob(f"{_PREFIX}[0-9][0-9][0-9]"))
    }


class ShardDirectories:
    """The directories of a worker's shards. Thread-safe if each shard is used by one thread."""

    def __init__(  # noqa: PLR0913 -- what every store is opened with
        self,
        state_dir: Path,
        header: Callable[[int], StoreHeader],
        *,
        memory: StoreMemory | None = None,
        options: StoreOptions | None = None,
        leftovers: Leftovers | None = None,
        clock: Callable[[], float] = monotonic,
        probe: Probe = UNWATCHED,
    ) -> None:
        """Take the directory of all stores; ``header`` returns what a shard's header must be.

        All stores share ``memory``, and time their flushes by ``clock``. ``leftovers`` deletes
        those that nobody uses. ``probe`` observes them.
        """
        self._state_dir = state_dir
        self._header = header
        self._memory = memory
        self._options = options
        self._leftovers = leftovers or Leftovers()
        self._clock = clock
        self._probe = probe

    def path(self, shard: int) -> Path:
        """Return a shard's directory."""
        return self._state_dir / shard_name(shard)

    @property
    def groups_path(self) -> Path:
        """Return the directory of the groups that all shards make."""
        return self._state_dir / GROUPS_NAME

    def paths(self, shards: int, *, groups: bool) -> set[Path]:
        """Return the directories of so many shards, and that of their groups if they are kept."""
        return {*map(self.path, range(shards)), *([self.groups_path] if groups else ())}

    def header(self, shard: int) -> StoreHeader:
        """Return the header that a shard's store must have under the settings."""
        return self._header(shard)

    def taking_on(self, shard: int) -> AbstractContextManager[None]:
        """Return what a shard is opened within, and all is made that this takes."""
        return self._leftovers.opening(self.path(shard))

    def open(
        self, shard: int, on_cells: Callable[[int, int], None] = lambda _count, _total: None
    ) -> BandStore:
        """Open or create a shard's store; for ``on_cells`` see `BandStore`.

        Raises:
            HeaderMismatch: it was made with other parameters.
            StoreDamaged: files are missing, or differ from what was written.
            OSError: RocksDB can't open it.
        """
        with probing(self._probe, "open"), self.taking_on(shard):
            store = BandStore(
                self.path(shard),
                self.header(shard),
                memory=self._memory,
                options=self._options,
                clock=self._clock,
                on_cells=on_cells,
                probe=self._probe,
            )
            self._probe.opened(store)
        return store

    def put_aside(self, shard: int, why: str) -> Path:
        """Move a shard's closed store aside, replacing an earlier one there.

        Returns:
            Its new path.
        """
        path = self.path(shard)
        aside = beside(path, "aside")
        with probing(self._probe, "put aside"):
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
            self._leftovers.renew(aside)
            _log.warning("put the index %s aside as %s: %s; rebuilding it", path, aside, why)
        return aside

    def tidy(self) -> None:
        """Remove what a killed worker left unfinished: fetches, unshipped checkpoints, links."""
        for kind in _HALF_MADE:
            for left in self._state_dir.glob(f"{_PREFIX}*.{kind}"):
                shutil.rmtree(left, ignore_errors=True)
