"""What ``neardup serve`` answers about groups of documents that match one another."""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Protocol, TypeVar

import msgspec

from lsh.index import NO_TIME
from worker.groups.reading import Found, GroupsReader, Sort
from worker.groups.rows import Member
from worker.groups.store import GroupsUnusable
from worker.serve.answers import Refused
from worker.serve.following import Following

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
