"""What clients may ask over HTTP beside queries: the routes, and how their answers are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from worker.bus import BusError
from worker.closing import Closing
from worker.documents.lookup import Gone
from worker.documents.published import Document, Documents
from worker.formats.unreadable import Unreadable
from worker.groups.store import GroupsUnusable
from worker.index.errors import StoreDamaged
from worker.serve.answers import coarse
from worker.serve.correcting import Correct, Refused
from worker.serve.desk import Busy, Desk, Turns
from worker.serve.feed import Since
from worker.serve.following import Warming
from worker.serve.group_pages import GROUPS_PATHS, AskedGroups
from worker.serve.openapi import described
from worker.serve.responder import Said
from worker.serve.rights import Right, Rights
from worker.serve.views import Compare, Granted, News, Session
from worker.untrusted import NOT_READ, why
from worker.visible import visible
from worker.wire.corrections import CorrectionError

T = TypeVar("T")

Body = Callable[[Request], Awaitable[bytes]]
"""Returns the body of a request that may be posted."""

_JSON = "application/json"
_UNSTORED = {"Cache-Control": "no-store"}
_MOST = 100
_DEFAULT = 50
_STREAMS = 64
_TURN_SECONDS = 0.25
_SHOWN = 2
"""The duplicates in an event at most. More would pass too quickly to be read."""
_BEAT_SECONDS = 10.0
"""A stream without news sends a comment, so that both sides notice when the other one is gone."""

READ = "neardup.read"
"""In the scope of a request whose body was read: there is none to wait for."""

_compare = msgspec.json.Decoder(Compare).decode
_correct = msgspec.json.Decoder(Correct).decode
_session = msgspec.json.Decoder(Session).decode


class Reading(Closing):
    """Answers what is read. Its streams end once `end` was called."""

    def __init__(
        self,
        desk: Callable[[], Desk | None],
        groups: Callable[[AskedGroups], Said],
        body: Body,
        rights: Rights,
        seconds: float,
    ) -> None:
        """Take what answers, once it is there, what reads bodies, and who has which rights.

        ``groups`` is called in a thread of its own, and may take ``seconds``.
        """
        self._desk = desk
        self._groups = groups
        self._seconds = seconds
        self._executor = ThreadPoolExecutor(1, "groups")
        self._turns = Turns(self._executor)
        self._body = body
        self._rights = rights
        self._ended = False
        self._streams = 0
        self.routes: list[BaseRoute] = [
            Route("/v1/session", self._session, methods=["GET", "POST", "DELETE"]),
            Route("/v1/openapi.json", self._described, methods=["GET"]),
            Route("/v1/duplicates", self._duplicates, methods=["GET"]),
            Route("/v1/duplicates/stream", self._stream, methods=["GET"]),
            Route("/v1/documents", self._documents, methods=["GET"]),
            Route("/v1/comparison", self._comparison, methods=["POST"]),
            Route("/v1/flow", self._flow, methods=["GET"]),
            Route("/v1/corrections", self._corrections, methods=["GET", "POST"]),
            Route("/v1/groups/{id}/outline", self._outline, methods=["GET"]),
            *(Route(path, self._of_groups, methods=["GET"]) for path in GROUPS_PATHS),
        ]

    def end(self) -> None:
        """End the streams; from any thread."""
        self._ended = True

    def close(self) -> None:
        """Answer what waits, and end the thread. Call it when nobody asks any more."""
        self._executor.shutdown()

    async def _session(self, request: Request) -> Response:
        if request.method in {"GET", "HEAD"}:
            rights = request.scope["rights"]
            return _json(request, Granted(Right.READ in rights, Right.CORRECT in rights))
        if request.method == "DELETE":
            return self._rights.signed_out()
        asked = _decoded(_session, await self._body(request))
        answer = self._rights.signed_in(asked.token)
        if answer is None:
            raise HTTPException(HTTPStatus.FORBIDDEN, "this is not the token of this server")
        return answer

    async def _described(self, request: Request) -> Response:
        del request
        return Response(described(), media_type=_JSON)

    async def _duplicates(self, request: Request) -> Response:
        _check_parameters(request, "limit", "cursor")
        limit = _number(request, "limit", _DEFAULT, 1, _MOST)
        cursor = _number(request, "cursor", -1, 0, 1 << 62)
        found = self._open().latest(None if cursor < 0 else cursor, limit)
        return _json(request, await _done(request, found))

    async def _stream(self, request: Request) -> Response:
        desk = self._open()
        if self._streams >= _STREAMS:
            raise HTTPException(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too many streams are open; try again",
                {"Retry-After": "5"},
            )
        self._streams += 1
        return _Stream(self._news(request, desk), self._streamed)

    def _streamed(self) -> None:
        self._streams -= 1

    async def _news(self, request: Request, desk: Desk) -> AsyncIterator[bytes]:
        """Yield events: some of the latest duplicates, and of how many."""
        number, beat = desk.feed.number, monotonic()
        yield b"retry: 2000\n\n"
        while not self._ended:
            try:
                since = await desk.since(number, _SHOWN)
            except (Busy, Warming, GroupsUnusable):
                since = Since([], 0, number)
            if since.of:
                news = shown_to(request, msgspec.json.encode(News(since.duplicates, since.of)))
                # JSON has no line breaks of its own, and those of texts are escaped.
                yield b"id: %d\ndata: %s\n\n" % (since.number, news)
                number, beat = since.number, monotonic()
            elif monotonic() - beat >= _BEAT_SECONDS:
                yield b":\n\n"
                beat = monotonic()
            await asyncio.sleep(_TURN_SECONDS)

    async def _documents(self, request: Request) -> Response:
        desk = self._open()
        given = request.query_params.multi_items()
        if [name for name, _ in given] not in (["id"], ["header"], ["sequence"]):
            raise HTTPException(
                HTTPStatus.BAD_REQUEST, "takes one of id=…, header=name or name=value, sequence=…"
            )
        (asked, text) = given[0]
        if asked == "id":
            return _json(request, await _done(request, desk.with_id(text)))
        if asked == "header":
            name, equals, value = text.partition("=")
            found = await _done(request, desk.with_header(name, value if equals else None))
            return _json(request, found)
        sequence = _number(request, "sequence", 0, 0, (1 << 63) - 1)
        one = await _done(request, desk.document(sequence))
        document = Document(one.id, sequence, one.source, one.time, None, one.text, [], [])
        return _json(request, Documents([document], 1, complete=True))

    async def _comparison(self, request: Request) -> Response:
        asked = _decoded(_compare, await self._body(request))
        _check(asked.left, "left")
        _check(asked.right, "right")
        return _json(request, await _done(request, self._open().compare(asked)))

    async def _flow(self, request: Request) -> Response:
        return _json(request, await _done(request, self._open().flow()))

    async def _corrections(self, request: Request) -> Response:
        if request.method in {"GET", "HEAD"}:
            _check_parameters(request, "limit", "cursor")
            limit = _number(request, "limit", _DEFAULT, 1, _MOST)
            skipped = _number(request, "cursor", 0, 0, (1 << 63) - 1)
            found = self._open().corrections(skipped, limit)
            return _json(request, await _done(request, found))
        if Right.CORRECT not in request.scope["rights"]:
            reason = "this token may read, and not correct (serve.correcting_token_file)"
            raise HTTPException(HTTPStatus.FORBIDDEN, reason)
        asked = _decoded(_correct, await self._body(request))
        _check(asked, "the correction")
        if asked.allow is not msgspec.UNSET:
            _check(asked.allow.of, "of")
        return _json(request, await _done(request, self._open().correct(asked)))

    async def _of_groups(self, request: Request) -> Response:
        asked = AskedGroups(
            request.scope["route"].path,
            request.path_params.get("id"),
            [*request.query_params.multi_items()],
        )
        try:
            async with asyncio.timeout(self._seconds):
                call = self._turns.run(partial(self._groups, asked))
                status, said = await _done(request, call)
        except TimeoutError:
            reason = f"there was no answer within {self._seconds:g} s"
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, reason) from None
        return Response(shown_to(request, said), status, _UNSTORED, _JSON)

    async def _outline(self, request: Request) -> Response:
        given = request.path_params["id"]
        is_number = given.isascii() and given.isdigit() and len(given) <= 19  # noqa: PLR2004 -- 64 bits
        outline = self._open().outline(int(given)) if is_number else None
        found = None if outline is None else await _done(request, outline)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"{given!r} is no group")
        return _json(request, found)

    def _open(self) -> Desk:
        """Return what answers.

        Raises:
            HTTPException: it isn't there yet.
        """
        desk = self._desk()
        if desk is None:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the server waits for Kafka")
        return desk


class _Stream(StreamingResponse):
    """A stream of events, which tells when it has ended, also if it never began."""

    def __init__(self, events: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(events, headers=_UNSTORED, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


async def while_there(request: Request, answer: Awaitable[T]) -> T:
    """Return an answer; cancel it if its client goes before. The request's body was read, if any.

    Raises:
        ClientDisconnect: the client has gone.
    """
    request.scope[READ] = True
    task, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    """Return once the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _done(request: Request, answer: Awaitable[T]) -> T:
    """Return an answer; errors become those of HTTP."""
    try:
        return await while_there(request, answer)
    except Refused as why:
        raise HTTPException(HTTPStatus.CONFLICT, str(why)) from None
    except Gone as why:
        raise HTTPException(HTTPStatus.NOT_FOUND, str(why)) from None
    except (Unreadable, CorrectionError) as why:
        raise HTTPException(HTTPStatus.BAD_REQUEST, str(why)) from None
    except Busy:
        reason = "too many requests wait; try again"
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, reason, {"Retry-After": "1"}) from None
    except (Warming, GroupsUnusable, StoreDamaged, BusError, OSError) as why:
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, visible(str(why))) from None


def _decoded(decode: Callable[[bytes], T], body: bytes) -> T:
    try:
        return decode(body)
    except NOT_READ as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, why(error)) from None


def _check(given: msgspec.Struct, name: str) -> None:
    """Refuse what has none of its members, or several.

    Raises:
        HTTPException: it does.
    """
    fields = given.__struct_fields__
    if sum(getattr(given, field) is not msgspec.UNSET for field in fields) != 1:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{name}: takes one of {', '.join(fields)}")


def _check_parameters(request: Request, *known: str) -> None:
    """Refuse a parameter that the request doesn't have.

    Raises:
        HTTPException: there is one.
    """
    for name in request.query_params:
        if name not in known:
            reason = f"{name[:40]}: is no parameter; the request takes {', '.join(known)}"
            raise HTTPException(HTTPStatus.BAD_REQUEST, reason)


def _number(request: Request, name: str, default: int, least: int, most: int) -> int:
    """Return a parameter.

    Raises:
        HTTPException: it is no number of the range.
    """
    given = request.query_params.get(name)
    if given is None:
        return default
    value = int(given) if given.isascii() and given.isdigit() and len(given) <= 20 else -1  # noqa: PLR2004 -- 64 bits
    if not least <= value <= most:
        raise HTTPException(
            HTTPStatus.BAD_REQUEST, f"{name}: got {given[:40]!r}, takes {least} to {most}"
        )
    return value


def shown_to(request: Request, answer: bytes) -> bytes:
    """Return an answer as its client may see it: without the right to correct, with less digits."""
    return answer if Right.CORRECT in request.scope["rights"] else coarse(answer)


def _json(request: Request, value: msgspec.Struct) -> Response:
    answer = shown_to(request, msgspec.json.encode(value))
    return Response(answer, headers=_UNSTORED, media_type=_JSON)
