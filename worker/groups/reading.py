"""Reads groups beside the thread that changes them: lists in order, and members by page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from rocksdict import RdictIter, Snapshot

from worker.groups.joining import digest
from worker.groups.rows import (
    BY_GROUP,
    BY_GROWTH,
    BY_LAST,
    BY_SIZE,
    FORGOTTEN,
    GROUPS,
    IDS,
    MEMBERS,
    NAMES,
    PROGRESS,
    UNKNOWN,
    Group,
    Member,
    Progress,
    key,
    number,
    span,
)
from worker.index.errors import StoreDamaged

Sort = Literal["size", "growth", "newest"]
SORTS: dict[Sort, bytes] = {"size": BY_SIZE, "growth": BY_GROWTH, "newest": BY_LAST}
_LOOKED_AT = 10_000
"""The most groups that one request looks at, if others are left out by their time or size."""


class Found(NamedTuple):
    """A group, its key, and its earliest and latest members, each with its sequence number."""

    at: int
    group: Group
    first: tuple[int, Member]
    last: tuple[int, Member]


class _Snapshot:
    """A snapshot. Its own look-up raises for an absent row, as for one that can't be read."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._found = snapshot.iter()

    def get(self, key: bytes, /) -> bytes | None:
        found = self._found
        found.seek(key)
        if not found.valid():
            found.status()
            return None
        value: bytes | None = found.value() if found.key() == key else None
        return value

    def iter(self) -> RdictIter:
        return self._snapshot.iter()


class GroupsReader:
    """The groups at one moment."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Take a snapshot of the store."""
        self._rows = _Snapshot(snapshot)
        self.progress = Progress.unpacked(self._rows.get(PROGRESS) or b"")

    def listed(
        self,
        sort: Sort,
        limit: int,
        *,
        after: bytes = b"",
        since_ms: int | None = None,
        least: int = 1,
    ) -> tuple[list[Found], bytes | None]:
        """Return groups in an order, the first ones, and where the next ones are; None: nowhere.

        The order is an index on disk, so this costs what is looked at. With ``since_ms`` and
        ``least`` it may be fewer than ``limit`` although others follow: at most 10,000 are looked
        at.

        after: where to go on.
        since_ms: leave out groups whose latest member counts as of longer ago than that.
        least: leave out smaller groups.
        """
        part, now = SORTS[sort], self.progress.now
        oldest = None if since_ms is None or now is None else now - since_ms
        found: list[Found] = []
        looked = 0
        for rest, _ in span(self._rows, part, after):
            if rest == after:
                continue
            at = number(rest[8:])
            group = self._group(at)
            small = group.size < least
            if small and sort == "size":  # All that follow are, too.
                break
            if not small and (oldest is None or not UNKNOWN < group.counted < oldest):
                found.append(self._found(at, group))
            looked += 1
            if len(found) == limit or looked == _LOOKED_AT:
                return found, rest
        return found, None

    def _group(self, at: int) -> Group:
        row = self._rows.get(GROUPS + key(at))
        if row is None:
            raise StoreDamaged(f"there is no group {at}")
        return Group.unpacked(row)

    def _found(self, at: int, group: Group) -> Found:
        first = next(self._members(at, b""))
        row = self._rows.get(BY_GROUP + key(at) + key(group.last))
        if row is None:
            raise StoreDamaged(f"group {at} has no member {group.last}")
        return Found(at, group, first, (group.last, Member.unpacked(row)))

    def _members(self, at: int, after: bytes) -> Iterator[tuple[int, Member]]:
        for rest, row in span(self._rows, BY_GROUP + key(at), after):
            if rest != after:
                yield number(rest), Member.unpacked(row)

    def members(
        self, at: int, limit: int, after: bytes = b""
    ) -> tuple[list[tuple[int, Member]], bytes | None]:
        """Return members of a group in the order of the documents, and where the next ones are."""
        found = list(islice(self._members(at, after), limit + 1))
        if len(found) <= limit:
            return found, None
        del found[-1]
        return found, key(found[-1][0])

    def named(self, name: int) -> Found | None:
        """Return the group that is called by a document, or has it as a member."""
        at = self._rows.get(NAMES + key(name)) or self._rows.get(MEMBERS + key(name))
        return None if at is None else self._found(number(at), self._group(number(at)))

    def of_document(self, ident: bytes) -> Found | None:
        """Return the group of the latest document that has an id."""
        latest = max((rest for rest, _ in span(self._rows, IDS + digest(ident))), default=None)
        return None if latest is None else self.named(number(latest))

    def forgotten(self, ident: bytes, sequence: int) -> bool:
        """Return whether the document with an id and a sequence number was forgotten later."""
        row = self._rows.get(FORGOTTEN + digest(ident))
        return row is not None and sequence < number(row)
