"""What clients may ask over HTTP: the table of routes, and what answers each of them.

`worker.serve.api` serves the table, `worker.serve.openapi` describes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from collections.abc import Sequence as Several
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import TypeVar

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from worker.closing import Closing
from worker.corrections.service import MadeList
from worker.documents.published import Document, Documents, Duplicate
from worker.groups.reading import GroupsReader
from worker.groups.store import GroupsUnusable
from worker.observe.feed import Duplicates, Since
from worker.observe.flow import Flow
from worker.serve.answers import Refused, Reply
from worker.serve.asking import Body
from worker.serve.comparisons import Compare, Comparison
from worker.serve.correcting import Correct, Corrected
from worker.serve.desk import Busy, Desk, Turns
from worker.serve.following import Warming
from worker.serve.groups import (
    GROUPS_PATH,
    AskGroups,
    Group,
    Groups,
    Outline,
    listed,
    of_document,
    with_members,
)
from worker.serve.parameters import (
    AFTER,
    AFTER_MEMBER,
    CURSOR,
    LEAST,
    LIMIT,
    MOST,
    SEQUENCE,
    SINCE,
    SKIPPED,
    SORT,
    SOUGHT,
    Call,
    Parameter,
    check_one,
    decoded,
)
from worker.serve.queries import PATH
from worker.serve.rights import Right, Rights

T = TypeVar("T")

EVENTS = "text/event-stream"
UNSTORED = {"Cache-Control": "no-store"}
_NUMBER_DIGITS = 19
"""No number of a document has more."""
_STREAMS = 64
_TURN_SECONDS = 0.25
_IN_EVENT = 2
"""The duplicates in an event at most. More would pass too quickly to be read."""
_BEAT_SECONDS = 10.0
"""A stream without news sends a comment, so that both sides notice when the other one is gone."""


class Failure(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    error: str


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a page sends to sign in: the content of a token's file."""

    token: str


class Granted(msgspec.Struct, frozen=True):
    """What a client may do with the token or the cookie that it sends."""

    may_read: bool
    may_correct: bool


class News(msgspec.Struct, frozen=True):
    """The data of an event of the stream: the latest of ``of`` duplicates since the last event."""

    duplicates: list[Duplicate]
    of: int


Answer = Response | msgspec.Struct | bytes
"""What answers a request: a whole response, a value, or that as JSON."""


class Sources(Closing):
    """What routes answer from. Streams end once `end` was called."""

    def __init__(
        self,
        query: Callable[[bytes], Awaitable[bytes]],
        groups: AskGroups,
        desk: Callable[[], Desk],
        rights: Rights,
    ) -> None:
        """Take what answers, and who has which rights.

        ``groups`` is called in a thread of its own. ``desk`` returns what answers the rest.
        """
        self.query = query
        self.desk = desk
        self.rights = rights
        self.ended = False
        self._groups = groups
        self._executor = ThreadPoolExecutor(1, "groups")
        self._turns = Turns(self._executor)
        self._streams = 0

    async def groups(self, ask: Callable[[GroupsReader], T]) -> T:
        """Return what ``ask`` returns of the groups.

        Raises:
            Refused: there are none, or too many requests wait.
            Warming: they can't be read yet.
        """
        return await self._turns.run(lambda: self._groups(ask))

    def begin_stream(self) -> Callable[[], None]:
        """Count a stream; return what is called at its end.

        Raises:
            Refused: too many are open.
        """
        if self._streams >= _STREAMS:
            reason = "too many streams are open; try again"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason, {"Retry-After": "5"})
        self._streams += 1
        return self._end_stream

    def _end_stream(self) -> None:
        self._streams -= 1

    def end(self) -> None:
        """End the streams; from any thread."""
        self.ended = True

    def close(self) -> None:
        """Answer what waits, and end the thread. Call it when nobody asks any more."""
        self._executor.shutdown()


async def _query(sources: Sources, call: Call) -> bytes:
    return await sources.query(call.body)


async def _duplicates(sources: Sources, call: Call) -> Duplicates:
    limit, cursor = call[LIMIT], call[CURSOR]
    return await sources.desk().latest(cursor, limit)


async def _stream(sources: Sources, call: Call) -> Response:
    desk = sources.desk()
    return _Stream(_news(sources, call, desk), sources.begin_stream())


async def _news(sources: Sources, call: Call, desk: Desk) -> AsyncIterator[bytes]:
    """Yield events: some of the latest duplicates, and of how many."""
    number, beat = desk.feed.number, monotonic()
    yield b"retry: 2000\n\n"
    while not sources.ended:
        try:
            since = await desk.since(number, _IN_EVENT)
        except (Busy, Warming, GroupsUnusable):
            since = Since([], 0, number)
        if since.of:
            news = call.shown(msgspec.json.encode(News(since.duplicates, since.of)))
            # JSON has no line breaks of its own, and those of texts are escaped.
            yield b"id: %d\ndata: %s\n\n" % (since.number, news)
            number, beat = since.number, monotonic()
        elif monotonic() - beat >= _BEAT_SECONDS:
            yield b":\n\n"
            beat = monotonic()
        await asyncio.sleep(_TURN_SECONDS)


async def _documents(sources: Sources, call: Call) -> Documents:
    desk, given = sources.desk(), call.given
    if [name for name, _ in given] not in (["id"], ["header"], ["sequence"]):
        reason = "takes one of id=…, header=name or name=value, sequence=…"
        raise Refused(HTTPStatus.BAD_REQUEST, reason)
    ((asked, text),) = given
    if asked == "id":
        return await desk.with_id(text)
    if asked == "header":
        name, equals, value = text.partition("=")
        return await desk.with_header(name, value if equals else None)
    sequence = call[SEQUENCE]
    one = await desk.document(sequence)
    document = Document(one.id, sequence, one.source, one.time, None, one.text, [], [])
    return Documents([document], 1, complete=True)


async def _comparison(sources: Sources, call: Call) -> Comparison:
    asked = decoded(call.body, Compare)
    check_one(asked.left, "left")
    check_one(asked.right, "right")
    return await sources.desk().compare(asked)


async def _groups(sources: Sources, call: Call) -> Groups:
    ask = partial(
        listed,
        sort=call[SORT],
        limit=call[MOST],
        after=call[AFTER],
        since_ms=call[SINCE],
        least=call[LEAST],
    )
    return await sources.groups(ask)


async def _group(sources: Sources, call: Call) -> Group:
    after, limit = call[AFTER_MEMBER], call[MOST]
    number = _number_of_group(call.id)

    def ask(reader: GroupsReader) -> Group | None:
        return None if number is None else with_members(reader, number, limit, after=after)

    found = await sources.groups(ask)
    if found is None:
        raise _no_group(call.id)
    return found


async def _group_of_document(sources: Sources, call: Call) -> Group:
    found = await sources.groups(partial(of_document, ident=call.id))
    if found is None:
        raise Refused(HTTPStatus.NOT_FOUND, f"{call.id!r} is in no group")
    return found


async def _outline(sources: Sources, call: Call) -> Outline:
    desk, number = sources.desk(), _number_of_group(call.id)
    found = None if number is None else await desk.outline(number)
    if found is None:
        raise _no_group(call.id)
    return found


async def _flow(sources: Sources, call: Call) -> Flow:
    del call
    return await sources.desk().flow()


async def _corrections(sources: Sources, call: Call) -> MadeList:
    limit, skipped = call[LIMIT], call[SKIPPED]
    return await sources.desk().corrections(skipped, limit)


async def _correct(sources: Sources, call: Call) -> Corrected:
    asked = decoded(call.body, Correct)
    check_one(asked, "the correction")
    if asked.allow is not msgspec.UNSET:
        check_one(asked.allow.of, "of")
    return await sources.desk().correct(asked)


async def _session(sources: Sources, call: Call) -> Granted:
    del sources
    return Granted(Right.READ in call.rights, Right.CORRECT in call.rights)


async def _sign_in(sources: Sources, call: Call) -> Response:
    answer = sources.rights.signed_in(decoded(call.body, Session).token)
    if answer is None:
        raise Refused(HTTPStatus.FORBIDDEN, "this is not the token of this server")
    return answer


async def _sign_out(sources: Sources, call: Call) -> Response:
    del call
    return sources.rights.signed_out()


def _number_of_group(given: str) -> int | None:
    is_number = given.isascii() and given.isdigit() and len(given) <= _NUMBER_DIGITS
    return int(given) if is_number else None


def _no_group(given: str) -> Refused:
    return Refused(HTTPStatus.NOT_FOUND, f"{given!r} is no group")


class _Stream(StreamingResponse):
    """A stream of events, which tells when it has ended, also if it never began."""

    def __init__(self, events: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(events, headers=UNSTORED, media_type=EVENTS)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


@dataclass(frozen=True, eq=False)
class Route:
    """A route, and how it is described.

    Attributes:
        method: its method.
        path: its path. An ``id`` that is a ``path`` may have ``/`` in it.
        text: what it is for.
        handler: what answers.
        answer: the type of an answer; None: there is no content.
        takes: the type of the body; None: there is none.
        parameters: the parameters in the address.
        named: whether others are refused.
        id: what the id in the path is.
        right: what its client must be allowed; None: anybody may ask.
        timed: whether it is given up after some seconds.
        events: whether the answer is a stream.
        refuses: the statuses of refusals.
    """

    method: str
    path: str
    text: str
    handler: Callable[[Sources, Call], Awaitable[Answer]]
    answer: type[msgspec.Struct] | None
    takes: type[msgspec.Struct] | None = None
    parameters: Several[Parameter[object]] = ()
    named: bool = False
    id: str = ""
    right: Right | None = Right.READ
    timed: bool = False
    events: bool = False
    refuses: Several[int] = (400, 401, 503)


_OF_GROUP = "`id` of a group, or the number of a member"
ROUTES = (
    Route(
        "POST", PATH, "What a text or a document would match", _query, Reply,
        takes=Body, timed=True, refuses=(400, 401, 403, 413, 415, 421, 503),
    ),
    Route(
        "GET", "/v1/duplicates", "The latest duplicates", _duplicates, Duplicates,
        parameters=(LIMIT, CURSOR), named=True,
    ),
    Route(
        "GET", "/v1/duplicates/stream", "Duplicates as they are committed", _stream, News,
        events=True,
    ),
    Route(
        "GET", "/v1/documents", "Documents by id, by header, or by sequence number",
        _documents, Documents, parameters=(SOUGHT,), refuses=(400, 401, 404, 503),
    ),
    Route(
        "POST", "/v1/comparison", "Two documents side by side", _comparison, Comparison,
        takes=Compare, refuses=(400, 401, 403, 413, 415, 503),
    ),
    Route(
        "GET", GROUPS_PATH, "Groups of documents that match each other", _groups, Groups,
        parameters=(SORT, SINCE, LEAST, MOST, AFTER), named=True, timed=True,
        refuses=(400, 401, 404, 503),
    ),
    Route(
        "GET", "/v1/groups/{id:path}", "A group with its members", _group, Group,
        parameters=(MOST, AFTER_MEMBER), named=True, id=_OF_GROUP, timed=True,
        refuses=(400, 401, 404, 503),
    ),
    Route(
        "GET", "/v1/groups/{id}/outline",
        "Of what a group consists: clusters, or a chain of them", _outline, Outline,
        id=_OF_GROUP, refuses=(401, 404, 503),
    ),
    Route(
        "GET", "/v1/documents/{id:path}/group", "The group of the latest document with an id",
        _group_of_document, Group, named=True, id="its id, in which `/` may be `%2F`",
        timed=True, refuses=(400, 401, 404, 503),
    ),
    Route(
        "GET", "/v1/flow", "Stages, shards and rejections", _flow, Flow,
        refuses=(401, 503),
    ),
    Route(
        "GET", "/v1/corrections", "What people have corrected", _corrections, MadeList,
        parameters=(LIMIT, SKIPPED), named=True,
    ),
    Route(
        "POST", "/v1/corrections", "Correct, or undo a correction", _correct, Corrected,
        takes=Correct, right=Right.CORRECT, refuses=(400, 401, 403, 404, 409, 413, 415, 503),
    ),
    Route(
        "GET", "/v1/session", "What you may do", _session, Granted, right=None, refuses=(),
    ),
    Route(
        "POST", "/v1/session", "Trade a token for a cookie", _sign_in, None,
        takes=Session, right=None, refuses=(400, 403, 413, 415),
    ),
    Route(
        "DELETE", "/v1/session", "Take the cookie away", _sign_out, None, right=None,
        refuses=(),
    ),
)  # fmt: skip
"""The routes, in the order of their description."""
