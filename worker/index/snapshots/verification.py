"""Reads back the files in the repository while a shard's owner still has good copies.

Snapshots share tables, so one corrupt table makes all of them useless. Nobody would notice until
a worker loses its state, and then there is no good copy left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import time
from typing import NamedTuple

from worker.index.header import StoreHeader
from worker.index.snapshots.manifest import FileEntry, Manifest
from worker.index.snapshots.repository import ShardSnapshots

_log = logging.getLogger(__name__)


class Damage(NamedTuple):
    """Damaged or missing files: those that the store still has, and those that it doesn't."""

    repairable: list[FileEntry]
    lost: list[FileEntry]


class Verification:
    """Reads an index's files back when that is due, and sets damaged ones aside.

    The repository records when any worker last did it.
    """

    def __init__(self, every_seconds: float, clock: Callable[[], float] = time) -> None:
        """Take the interval; ``clock`` returns seconds since the epoch."""
        self._every = every_seconds
        self._clock = clock

    def run_if_due(
        self,
        snapshots: ShardSnapshots,
        header: StoreHeader,
        held: Sequence[FileEntry],
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> Damage:
        """Read back the files of an index's snapshots, and the ``held`` files in the repository.

        Damaged files are set aside. Those that are ``held`` can then be shipped again. Snapshots
        that need another one are incomplete, and don't count any more.

        Raises:
            Interrupted: ``stop`` returned true.
        """
        began = self._clock()
        # A time in the future comes from a wrong clock.
        if 0 <= began - snapshots.verified_at(header) < self._every:
            return Damage([], [])
        files = _shared(_own(snapshots, header))
        there = snapshots.holds(file.sha256 for file in held)
        own = {file.sha256: file for file in held if file.content is None}
        files |= {digest: file for digest, file in own.items() if digest in there}
        wrong = snapshots.damaged(list(files.values()), stop=stop)
        for file in wrong:
            snapshots.set_aside(file)
        # Another worker may have retired snapshots meanwhile, and deleted their files.
        left = _own(snapshots, header) if wrong else []
        wanted = own.keys() | _shared(left).keys()
        wrong = [file for file in wrong if file.sha256 in wanted]
        damage = Damage(
            [file for file in wrong if file.sha256 in own],
            [file for file in wrong if file.sha256 not in own],
        )
        _log_damage(snapshots.place, damage, left)
        snapshots.note_verified(header, self._clock())
        _log.info(
            "%s: read back %d files, %d MB, in %.1f s: %d damaged or missing",
            snapshots.place,
            len(files),
            sum(file.size for file in files.values()) >> 20,
            self._clock() - began,
            len(wrong),
        )
        return damage


def _own(snapshots: ShardSnapshots, header: StoreHeader) -> list[Manifest]:
    return [manifest for manifest in snapshots.manifests() if manifest.header == header]


def _shared(manifests: Sequence[Manifest]) -> dict[str, FileEntry]:
    """Return by digest the files that are not stored in manifests."""
    return {file.sha256: file for m in manifests for file in m.files if file.content is None}


def _log_damage(place: str, damage: Damage, manifests: Sequence[Manifest]) -> None:
    for file in damage.repairable:
        _log.warning(
            "%s: %s (%s) is damaged or missing; the store has it, and it is shipped again",
            place,
            file.name,
            file.sha256,
        )
    for file in damage.lost:
        needing = [m.offset for m in manifests if file.sha256 in _shared([m])]
        _log.warning(
            "%s: %s (%s) is damaged or missing; the store no longer has it, so the snapshots at"
            " offsets %s can't be restored",
            place,
            file.name,
            file.sha256,
            ", ".join(map(str, sorted(needing))),
        )
