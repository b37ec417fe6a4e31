"""Serves the routes and the page, bounds what is posted, and refuses whoever may not ask.

A web page that an operator looks at can make the browser send requests to a server on the same
machine or network, by a name of its own that it lets point there (DNS rebinding). So `Host` must
name the server, and `Origin` must be the server as the client calls it: scheme, host and port. A
body must be declared as JSON, which a browser sends to another origin only if that allows it. A
browser that says that the page of another site asks is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from worker.bus import BusError
from worker.closing import Closing
from worker.corrections.request import CorrectionError
from worker.documents.lookup import Gone
from worker.formats.unreadable import Unreadable
from worker.groups.store import GroupsUnusable
from worker.index.errors import StoreDamaged
from worker.page import page_routes
from worker.serve.answers import Refused, error
from worker.serve.desk import Desk, no_desk
from worker.serve.following import Warming
from worker.serve.groups import AskGroups, no_groups
from worker.serve.openapi import described
from worker.serve.parameters import Call
from worker.serve.queries import PATH, Respond, Responder
from worker.serve.rights import Right, Rights
from worker.serve.routes import ROUTES, UNSTORED, Route, Sources
from worker.settings.sections import ServeSection
from worker.visible import visible

T = TypeVar("T")

_JSON = "application/json"
_TOGETHER = 16
_LONG_BYTES = 64 << 10
"""Longer bodies are answered one by one, by a thread of their own: shorter ones don't wait for
them."""
_BODIES_BYTES = 64 << 20
"""The size of all bodies at most that are being received, or wait for their answer."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_API = "/v1/"
_DESCRIPTION = "/v1/openapi.json"
_OPEN = frozenset({_DESCRIPTION, *(one.path for one in ROUTES if one.right is None)})
"""What of the API needs no right."""
_READ = "neardup.read"
"""In the scope of a request whose body was read: there is none to wait for."""
_STATUSES: Mapping[type, HTTPStatus] = {
    Gone: HTTPStatus.NOT_FOUND,
    **dict.fromkeys((Unreadable, CorrectionError), HTTPStatus.BAD_REQUEST),
    **dict.fromkeys(
        (Warming, GroupsUnusable, StoreDamaged, BusError, OSError), HTTPStatus.SERVICE_UNAVAILABLE
    ),
}
"""The statuses of errors by which an answer may fail, and whose reasons clients are told."""
_ELSEWHERE = frozenset({"cross-site", "same-site"})
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+))(?::(\d{1,5}))?")
"""A host and maybe a port; IPv6 has brackets."""
_PORTS = {"http": "80", "https": "443"}


class QueryApi(Closing):
    """Answers requests with what threads of its own are told by ``respond``."""

    def __init__(  # noqa: PLR0913 -- what is asked, by whom, and within which bounds
        self,
        respond: Respond,
        most_bytes: int,
        at: ServeSection,
        seconds: float,
        *,
        rights: Rights,
        groups: AskGroups = no_groups,
        desk: Callable[[], Desk] = no_desk,
    ) -> None:
        """Begin.

        ``most_bytes`` is the size of a body at most. ``at`` has the names by which the server may
        be called, and whether it has TLS. ``seconds`` is how long an answer may take.
        ``groups`` answers what is asked of the groups; ``desk`` returns what answers the rest.
        """
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._bodies = _Bodies(_BODIES_BYTES, most_bytes)
        self._short, self._long = (Responder(respond, most) for most in (_TOGETHER, 1))
        self._sources = Sources(self._query, groups, desk, rights)
        app = Starlette(
            routes=[
                *self._routes(),
                StarletteRoute(_DESCRIPTION, _described, methods=["GET"]),
                *page_routes(),
            ],
            middleware=[
                Middleware(_OwnHosts, at=at),
                Middleware(_Allowed, rights=rights),
            ],
            exception_handlers={
                HTTPException: _refused,
                Refused: _refused,
                **dict.fromkeys(_STATUSES, _refused),
                ClientDisconnect: _gone,
                Exception: _failed,
            },
        )
        app.router.redirect_slashes = False  # It would lead out of a proxy's path.
        self.app: ASGIApp = app

    def _routes(self) -> Iterator[StarletteRoute]:
        """Yield the routes of each path; an id that may have slashes matches last."""
        for path in sorted({one.path: None for one in ROUTES}, key=lambda path: ":path" in path):
            by_method = {one.method: one for one in ROUTES if one.path == path}
            endpoint = partial(self._answer, by_method)
            yield StarletteRoute(path, endpoint, methods=[*by_method])

    async def _answer(self, by_method: Mapping[str, Route], request: Request) -> Response:
        route = by_method["GET" if request.method == "HEAD" else request.method]
        if route.right not in {None, *request.scope["rights"]}:
            reason = "this token may read, and not correct (serve.correcting_token_file)"
            raise Refused(HTTPStatus.FORBIDDEN, reason)
        if route.takes is None:
            return await self._answered(route, Call(request, route.parameters))
        self._check(request)
        async with self._bodies.received(request) as body:
            return await self._answered(route, Call(request, route.parameters, body))

    async def _answered(self, route: Route, call: Call) -> Response:
        request = call.request
        request.scope[_READ] = True
        if route.named:
            call.check_names()
        try:
            async with asyncio.timeout(self._seconds if route.timed else None) as limit:
                answer = await _while_there(request, route.handler(self._sources, call))
        except TimeoutError:
            if not limit.expired():
                raise
            reason = f"there was no answer within {self._seconds:g} s"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason) from None
        if isinstance(answer, Response):
            return answer
        said = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
        return Response(call.shown(said), headers=UNSTORED, media_type=_JSON)

    async def _query(self, body: bytes) -> bytes:
        return await (self._long if len(body) > _LONG_BYTES else self._short).answer(body)

    def end_streams(self) -> None:
        """End what would go on for ever; from any thread."""
        self._sources.end()

    def _check(self, request: Request) -> None:
        """Refuse a body that may not be posted, as far as its headers say so.

        Raises:
            Refused: it may not.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON:
            reason = f"the header Content-Type must be {_JSON}"
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, reason)
        if int(request.headers.get("content-length", "0")) > self._most_bytes:
            raise _too_long(self._most_bytes)

    def close(self) -> None:
        """Answer what waits, and end the threads. Call it when nobody asks any more."""
        self._sources.close()
        self._short.end()
        self._long.end()


async def _described(request: Request) -> Response:
    del request
    return Response(described(), media_type=_JSON)


async def _while_there(request: Request, answer: Awaitable[T]) -> T:
    """Return an answer; cancel it if its client goes before. The request's body was read, if any.

    Raises:
        ClientDisconnect: the client has gone.
    """
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


def _too_long(most: int) -> Refused:
    reason = f"the body may have {most} bytes, and has more"
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)


class _Bodies:
    """The bodies that are being received, or wait for their answer, within a bounded memory.

    If there is no room for more, the client that has taken longest to send its own must give up.
    """

    def __init__(self, most_bytes: int, of_one: int) -> None:
        self._left = most_bytes
        self._of_one = of_one
        self._coming: dict[asyncio.Timeout, None] = {}

    @asynccontextmanager
    async def received(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body.

        Raises:
            ClientDisconnect: the client has gone.
            Refused: there is no room, or it is too long.
        """
        held = 0
        parts = []
        try:
            async with asyncio.timeout(None) as patience:
                self._coming[patience] = None
                try:
                    async for part in request.stream():
                        parts.append(part)
                        held += len(part)
                        self._left -= len(part)
                        if held > self._of_one:
                            raise _too_long(self._of_one)
                        self._make_room()
                finally:
                    del self._coming[patience]
            body = b"".join(parts)
            parts.clear()
        except TimeoutError:
            reason = "too many bytes are being posted; try again"
            again = {"Retry-After": "1"}
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason, again) from None
        else:
            yield body
        finally:
            self._left += held
            self._make_room()

    def _make_room(self) -> None:
        if self._left < 0 and self._coming:
            longest = next(iter(self._coming))
            if not longest.expired():
                longest.reschedule(0)


class _Allowed:
    """Refuses those who may not read. What corrects asks for its own right: `rights` in the scope.

    The page's files hold nothing of documents, and need no right.
    """

    def __init__(self, app: ASGIApp, rights: Rights) -> None:
        self._app = app
        self._rights = rights

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        scope["rights"] = given = self._rights.given(Headers(scope=scope))
        path = scope["path"]
        if path.startswith(_API) and path not in _OPEN and Right.READ not in given:
            reason = "a token is missing, or it is not that of this server (serve.token_file)"
            headers = {**UNSTORED, "WWW-Authenticate": "Bearer"}
            await _Refusal(HTTPStatus.UNAUTHORIZED, reason, headers)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class _OwnHosts:
    """Refuses requests that were meant for another host, or that another's page has sent."""

    def __init__(self, app: ASGIApp, at: ServeSection) -> None:
        self._app = app
        self._hosts = _LOOPBACK | {host.lower() for host in (at.host, *at.hosts)}
        self._scheme = "http" if at.tls_cert_file is None and not at.tls_in_front else "https"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        headers = Headers(scope=scope)
        # Whoever names the address of the connection has no name that could point elsewhere.
        own = (scope["server"] or ("",))[0].removeprefix("::ffff:")
        called, origins = headers.getlist("host"), headers.getlist("origin")
        place = self._place(called[0]) if len(called) == 1 else None
        if place is None or place[0] not in {*self._hosts, own}:
            reason = (
                f"the host {', '.join(called)!r} is not this server; serve.hosts has the names"
                " that it may be called by"
            )
            await _Refusal(HTTPStatus.MISDIRECTED_REQUEST, reason)(scope, receive, send)
        elif scope["path"].startswith(_API) and headers.get("sec-fetch-site") in _ELSEWHERE:
            reason = "pages of other sites may not ask this server"
            await _Refusal(HTTPStatus.FORBIDDEN, reason)(scope, receive, send)
        elif not all(self._is_own(one, place) for one in origins):
            reason = (
                f"pages of {', '.join(origins)!r} may not ask this server, which is"
                f" {self._scheme}://{called[0]} (serve.tls_in_front if a proxy has TLS)"
            )
            await _Refusal(HTTPStatus.FORBIDDEN, reason)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_own(self, origin: str, place: tuple[str, str]) -> bool:
        scheme, _, authority = origin.partition("://")
        return scheme == self._scheme and self._place(authority) == place

    def _place(self, authority: str) -> tuple[str, str] | None:
        """Return a host and its port; None if it names none."""
        found = _AUTHORITY.fullmatch(authority.lower())
        return None if found is None else (found[1] or found[2], found[3] or _PORTS[self._scheme])


class _Refusal(Response):
    """An answer before the body was read, which is read and thrown away then.

    A close with unread input would reset the connection, and lose the answer.
    """

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] = UNSTORED) -> None:
        super().__init__(error(reason), status, headers, _JSON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        del scope
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.body"})


async def _refused(request: Request, why: Exception) -> Response:
    reason, headers = str(why), dict(UNSTORED)
    if isinstance(why, Refused):
        status: int = why.status
        headers |= why.headers
    elif isinstance(why, HTTPException):
        status, reason = why.status_code, why.detail
        headers |= why.headers or {}
        if request.url.path == PATH and status == HTTPStatus.METHOD_NOT_ALLOWED:
            reason = "queries are posted"
    else:
        status = next(_STATUSES[one] for one in type(why).__mro__ if one in _STATUSES)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            reason = visible(reason)
    if request.scope.get(_READ):
        return Response(error(reason), status, headers, _JSON)
    return _Refusal(status, reason, headers)


async def _gone(request: Request, why: Exception) -> Response:
    """Return anything: nobody is there to get it."""
    del request, why
    return Response()


async def _failed(request: Request, why: Exception) -> Response:
    """Tell the client; uvicorn logs the error."""
    del request, why
    said = error("it failed; the log says why")
    return Response(said, HTTPStatus.INTERNAL_SERVER_ERROR, UNSTORED, _JSON)
