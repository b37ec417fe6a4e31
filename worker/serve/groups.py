"""What ``neardup serve`` answers about groups of documents that match one another.

A group is what matches connect, so its members need not be alike: documents that stand between two
texts join them. Whoever forgets a group should see that before, in its outline.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import groupby
from time import monotonic
from typing import Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from lsh.index import NO_TIME
from lsh.sketch import similarity
from worker.documents.lookup import Gone, Lookup
from worker.groups.reading import Found, GroupsReader, Sort
from worker.groups.rows import Member
from worker.groups.store import GroupsUnusable
from worker.serve.answers import Refused
from worker.serve.following import Following
from worker.wire.frame import POSITION_BITS

T = TypeVar("T")

_log = logging.getLogger(__name__)

GROUPS_PATH = "/v1/groups"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class GroupMember(msgspec.Struct, frozen=True):
    """A member: its id, its own time (null if that isn't known), its number in the order."""

    id: str
    time: str | None
    sequence: int


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group.

    ``id`` is the sequence number of the earliest document that it ever had. ``first`` and ``last``
    are the times of the members that are first and last in the order. ``growth`` is how many
    members are at most an hour older than now. ``representative`` is the first one. ``members`` and
    ``next`` are only in the answer to a question about one group.
    """

    id: str
    size: int
    first: str | None
    last: str | None
    growth: int
    representative: GroupMember
    members: list[GroupMember] | msgspec.UnsetType = msgspec.UNSET
    next: str | msgspec.UnsetType | None = msgspec.UNSET


class Groups(msgspec.Struct, frozen=True):
    """Groups in an order, and the cursor of the next ones.

    ``count`` is how many there are in all, ``now`` the index's time. Documents before ``position``
    in the log have joined their groups; those before ``begun`` are not known.
    """

    groups: list[Group]
    next: str | None
    count: int
    now: str | None
    position: int
    begun: int


class AskGroups(Protocol):
    """Answers from the groups."""

    def __call__(self, ask: Callable[[GroupsReader], T], /) -> T:
        """Return what ``ask`` returns.

        Raises:
            Refused: there are no groups, or they can't be read yet.
        """


def no_groups(ask: Callable[[GroupsReader], T], /) -> T:
    """Refuse to answer: no groups are kept.

    Raises:
        Refused: always.
    """
    del ask
    raise Refused(HTTPStatus.NOT_FOUND, "this server keeps no groups (serve.groups)")


def groups_of(following: Following, ask: Callable[[GroupsReader], T]) -> T:
    """Return what ``ask`` returns of the groups that a server keeps.

    Raises:
        Refused: it keeps none, or they can't be read.
        Warming: they can't be read yet.
    """
    if not following.keeps_groups:
        return no_groups(ask)
    try:
        return following.groups(ask)
    except GroupsUnusable as why:
        _log.warning("groups can't be read: %s", why)
        reason = "the groups can't be read; the log says why"
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason) from None


def listed(  # noqa: PLR0913 -- an order, and a range of it
    reader: GroupsReader, sort: Sort, limit: int, *, after: bytes, since_ms: int | None, least: int
) -> Groups:
    """Return groups in an order: those behind the cursor ``after``."""
    found, following = reader.listed(sort, limit, after=after, since_ms=since_ms, least=least)
    progress = reader.progress
    now = _time(NO_TIME if progress.now is None else progress.now)
    groups, at = list(map(_group, found)), progress.position
    return Groups(groups, _cursor(following), progress.groups, now, at, progress.begun)


def with_members(reader: GroupsReader, ident: int, limit: int, *, after: bytes) -> Group | None:
    """Return a group with its members behind the cursor ``after``; None if there is no such one."""
    found = reader.named(ident)
    if found is None:
        return None
    members, following = reader.members(found.at, limit, after)
    some = [member_of(*one) for one in members]
    return msgspec.structs.replace(_group(found), members=some, next=_cursor(following))


def of_document(reader: GroupsReader, ident: str) -> Group | None:
    """Return the group of the latest document with an id; None if it is in none."""
    found = reader.of_document(ident.encode(errors="replace"))
    return None if found is None else _group(found)


def position_of(cursor: str, length: int) -> bytes:
    """Return where a cursor goes on; it has so many bytes.

    Raises:
        ValueError: it is no cursor.
    """
    found = urlsafe_b64decode(cursor.encode("ascii") + b"==")
    if len(found) != length:
        raise ValueError(cursor)
    return found


def _cursor(at: bytes | None) -> str | None:
    return None if at is None else urlsafe_b64encode(at).rstrip(b"=").decode()


def _group(found: Found) -> Group:
    group = found.group
    first, last = member_of(*found.first), member_of(*found.last)
    return Group(str(group.name), group.size, first.time, last.time, group.growth, first)


def member_of(sequence: int, member: Member) -> GroupMember:
    """Return a member of a group, as it is answered."""
    return GroupMember(member.id.decode(), _time(member.time), sequence)


def _time(milliseconds: int) -> str | None:
    """Return a time in ISO 8601; None if it isn't known, or in no year that has four digits."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_MEMBERS = 10_000
"""The most members that are looked at."""
_FRAMES = 200
_SECONDS = 4.0
_CLUSTERS = 10
_SHOWN = 3
"""Members of a cluster."""


class Cluster(msgspec.Struct, frozen=True):
    """Members that match the first one of them; ``members`` are a few of its ``size``."""

    size: int
    members: list[GroupMember]


class Outline(msgspec.Struct, frozen=True):
    """Of what a group consists.

    ``compared`` of its ``size`` members were compared by their sketches, as far as the log of
    fingerprints has these, and a bounded number of them. ``least`` is the least similarity of one
    of them to the representative; null if none could be compared. ``clusters`` are the largest of
    ``count``. The group is a chain if there are several.
    """

    id: str
    size: int
    compared: int
    least: float | None
    count: int
    clusters: list[Cluster]


def outline(
    following: Following,
    lookup: Lookup,
    ident: int,
    threshold: float,
    clock: Callable[[], float] = monotonic,
) -> Outline | None:
    """Return the outline of the group that is called by a document, or has it; None without one.

    Raises:
        Warming: the groups can't be read yet.
        GroupsUnusable: they can't be read.
        BusError: the log of fingerprints can't be read.
    """

    def members(groups: GroupsReader) -> tuple[Found, list[tuple[int, Member]]] | None:
        found = groups.named(ident)
        return None if found is None else (found, groups.members(found.at, _MEMBERS)[0])

    known = following.groups(members)
    if known is None:
        return None
    found, listed = known
    first, *others = listed
    deadline = clock() + _SECONDS
    frames = [list(some) for _, some in groupby(others, lambda one: one[0] >> POSITION_BITS)]
    # Those between are left out of a group with more.
    chosen = frames[:: -(-len(frames) // _FRAMES) or 1]
    compared: list[tuple[int, Member]] = []
    sketches: list[npt.NDArray[np.uint8]] = []
    for some in ([first], *chosen):
        if clock() > deadline:
            break
        for one, sketch in _sketched(lookup, some):
            compared.append(one)
            sketches.append(sketch)
    has_first = bool(compared) and compared[0][0] == first[0]
    least = None
    clusters: list[list[int]] = []
    if compared:
        stacked = np.stack(sketches)
        if has_first and len(compared) > 1:
            least = round(float(similarity(stacked[0], stacked[1:]).min()), 4)
        clusters = sorted(_clusters(stacked, threshold), key=len, reverse=True)
    return Outline(
        str(found.group.name),
        found.group.size,
        len(compared),
        least,
        len(clusters),
        [
            Cluster(len(some), [member_of(*compared[at]) for at in some[:_SHOWN]])
            for some in clusters[:_CLUSTERS]
        ],
    )


def _sketched(
    lookup: Lookup, members: Sequence[tuple[int, Member]]
) -> Iterator[tuple[tuple[int, Member], npt.NDArray[np.uint8]]]:
    """Yield some members of one frame with their sketches; nothing if the frame is gone."""
    with suppress(Gone):
        frame, _ = lookup.frame(members[0][0] >> POSITION_BITS)
        for one in members:
            row = one[0] & ((1 << POSITION_BITS) - 1)
            if row < len(frame.sketches):
                yield one, frame.sketches[row]


def _clusters(sketches: npt.NDArray[np.uint8], threshold: float) -> list[list[int]]:
    """Return the rows that match the first one of their cluster, cluster by cluster.

    What is in none of the first 100 is a cluster of its own each.
    """
    left = np.arange(len(sketches))
    found: list[list[int]] = []
    while len(left) and len(found) < 100:  # noqa: PLR2004 -- as said
        near = similarity(sketches[left[0]], sketches[left]) >= threshold
        near[0] = True
        found.append(left[near].tolist())
        left = left[~near]
    return [*found, *([at] for at in left.tolist())]
