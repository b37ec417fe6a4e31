"""What ``neardup serve`` answers about groups of documents that match one another."""

from __future__ import annotations

import binascii
import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, get_args

import msgspec

from lsh.index import NO_TIME
from worker.groups.reading import Found, GroupsReader, Sort
from worker.groups.rows import Member
from worker.groups.store import GroupsUnusable
from worker.serve.answers import error
from worker.serve.following import Following, Warming
from worker.serve.questions import BadRequest
from worker.serve.responder import Said
from worker.settings.units import duration_ms

_log = logging.getLogger(__name__)

GROUPS_PATH = "/v1/groups"
GROUP_PATH = "/v1/groups/{id:path}"
DOCUMENT_PATH = "/v1/documents/{id:path}/group"
GROUPS_PATHS = (GROUPS_PATH, GROUP_PATH, DOCUMENT_PATH)
_LIMIT = 100
_MOST = 1_000
_LEAST = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER_DIGITS = 19


class AskedGroups(NamedTuple):
    """A request: its path as it is defined, the id in it, and its parameters."""

    path: str
    id: str | None
    parameters: Sequence[tuple[str, str]]


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


class GroupPages:
    """Answers requests about groups. Thread-safe."""

    def __init__(self, following: Following) -> None:
        """Take who keeps the groups."""
        self._following = following

    def answer(self, asked: AskedGroups) -> Said:
        """Return the answer to a request."""
        try:
            if not self._following.keeps_groups:
                return no_groups(asked)
            found = self._following.groups(partial(_answered, asked))
        except BadRequest as why:
            return HTTPStatus.BAD_REQUEST, error(str(why))
        except Warming as why:
            return HTTPStatus.SERVICE_UNAVAILABLE, error(str(why))
        except GroupsUnusable as why:
            _log.warning("groups can't be read: %s", why)
            reason = "the groups can't be read; the log says why"
            return HTTPStatus.SERVICE_UNAVAILABLE, error(reason)
        if found is None:
            what = "is in no group" if asked.path == DOCUMENT_PATH else "is no group"
            return HTTPStatus.NOT_FOUND, error(f"{asked.id!r} {what}")
        return HTTPStatus.OK, msgspec.json.encode(found)


def no_groups(asked: AskedGroups) -> Said:
    """Return that no groups are kept."""
    del asked
    return HTTPStatus.NOT_FOUND, error("this server keeps no groups (serve.groups)")


def _answered(asked: AskedGroups, reader: GroupsReader) -> Groups | Group | None:
    """Return the answer; None if there is no such group.

    Raises:
        BadRequest: a parameter is wrong.
    """
    if asked.path == GROUPS_PATH:
        return _listed(_Parameters(asked, ("sort", "since", "min", "limit", "cursor")), reader)
    ident = asked.id or ""
    if asked.path == DOCUMENT_PATH:
        _Parameters(asked, ())
        found = reader.of_document(ident.encode(errors="replace"))
        return None if found is None else _group(found)
    parameters = _Parameters(asked, ("limit", "cursor"))
    after, limit = parameters.cursor(8), parameters.number("limit", _LIMIT, _MOST)
    is_number = ident.isascii() and ident.isdigit() and len(ident) <= _NUMBER_DIGITS
    found = reader.named(int(ident)) if is_number else None
    if found is None:
        return None
    members, following = reader.members(found.at, limit, after)
    listed = [member_of(*one) for one in members]
    return msgspec.structs.replace(_group(found), members=listed, next=_cursor(following))


def _listed(parameters: _Parameters, reader: GroupsReader) -> Groups:
    found, following = reader.listed(
        parameters.sort(),
        parameters.number("limit", _LIMIT, _MOST),
        after=parameters.cursor(16),
        since_ms=parameters.since(),
        least=parameters.number("min", _LEAST, None),
    )
    progress = reader.progress
    now = _time(NO_TIME if progress.now is None else progress.now)
    listed, at = list(map(_group, found)), progress.position
    return Groups(listed, _cursor(following), progress.groups, now, at, progress.begun)


class _Parameters:
    """The parameters of a request. Methods raise `BadRequest` if one is wrong."""

    def __init__(self, asked: AskedGroups, known: Collection[str]) -> None:
        self._given: Mapping[str, str] = dict(asked.parameters)
        for name in self._given:
            if name not in known:
                takes = f"takes {', '.join(known)}" if known else "takes none"
                raise BadRequest(f"{name}: is no parameter; the request {takes}")

    def sort(self) -> Sort:
        given = self._given.get("sort", "size")
        for one in get_args(Sort):
            if one == given:
                found: Sort = one
                return found
        raise BadRequest(f"sort: got {given!r}, takes {', '.join(get_args(Sort))}")

    def since(self) -> int | None:
        given = self._given.get("since")
        try:
            return duration_ms(given) if given else None
        except ValueError:
            raise BadRequest(f"since: got {given!r}, takes a length such as 24h") from None

    def number(self, name: str, default: int, most: int | None) -> int:
        given = self._given.get(name, str(default))
        number = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0  # noqa: PLR2004 -- digits
        if number < 1 or (most is not None and number > most):
            takes = "1 or more" if most is None else f"1 to {most}"
            raise BadRequest(f"{name}: got {given!r}, takes {takes}")
        return number

    def cursor(self, length: int) -> bytes:
        """Return where to go on; it has so many bytes."""
        given = self._given.get("cursor")
        if given is None:
            return b""
        try:
            found = urlsafe_b64decode(given.encode("ascii") + b"==")
        except (ValueError, binascii.Error):
            found = b""
        if len(found) != length:
            raise BadRequest(f"cursor: got {given!r}, takes the `next` of an answer")
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
