"""What clients may ask over HTTP: ``POST /v1/query``, what `Reading` has, and the page.

A web page that an operator looks at can make the browser send requests to a server on the same
machine or network, by a name of its own that it lets point there (DNS rebinding). So `Host` must
name the server, and `Origin` must be the server as the client calls it: scheme, host and port. A
body must be declared as JSON, which a browser sends to another origin only if that allows it. A
browser that says that the page of another site asks is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from worker.closing import Closing
from worker.page import page_routes
from worker.serve.answers import error
from worker.serve.desk import Desk
from worker.serve.group_pages import AskedGroups, no_groups
from worker.serve.pages import PATH
from worker.serve.reading import READ, Reading, shown_to, while_there
from worker.serve.responder import Respond, Responder, Said
from worker.serve.rights import Right, Rights
from worker.settings.sections import ServeSection

_JSON = "application/json"
_UNSTORED: Mapping[str, str] = {"Cache-Control": "no-store"}
_TOGETHER = 16
_LONG_BYTES = 64 << 10
"""Longer bodies are answered one by one, by a thread of their own: shorter ones don't wait for
them."""
_BODIES_BYTES = 64 << 20
"""The size of all bodies at most that are being received, or wait for their answer."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_API = "/v1/"
_OPEN = frozenset({"/v1/session", "/v1/openapi.json"})
"""What of the API needs no right."""
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
        groups: Callable[[AskedGroups], Said] = no_groups,
        desk: Callable[[], Desk | None] = lambda: None,
    ) -> None:
        """Begin.

        ``most_bytes`` is the size of a body at most. ``at`` has the names by which the server may
        be called, and whether it has TLS. ``seconds`` is how long an answer may take.
        ``groups`` answers what is asked of the groups; ``desk`` returns what answers the rest, once
        it is there.
        """
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._bodies = _Bodies(_BODIES_BYTES, most_bytes)
        self._short, self._long = (Responder(respond, most) for most in (_TOGETHER, 1))
        self._reading = Reading(desk, groups, self._body, rights, seconds)
        app = Starlette(
            routes=[
                Route(PATH, self._query, methods=["POST"]),
                *self._reading.routes,
                *page_routes(),
            ],
            middleware=[
                Middleware(_OwnHosts, at=at),
                Middleware(_Allowed, rights=rights),
            ],
            exception_handlers={
                HTTPException: _refused,
                ClientDisconnect: _gone,
                Exception: _failed,
            },
        )
        app.router.redirect_slashes = False  # It would lead out of a proxy's path.
        self.app: ASGIApp = app

    async def _query(self, request: Request) -> Response:
        try:
            self._check(request)
            async with self._bodies.received(request) as body:
                responder = self._long if len(body) > _LONG_BYTES else self._short
                async with asyncio.timeout(self._seconds):
                    status, said = await while_there(request, responder.answer(body))
        except TimeoutError:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            said = error(f"there was no answer within {self._seconds:g} s")
        return Response(shown_to(request, said), status, _UNSTORED, _JSON)

    async def _body(self, request: Request) -> bytes:
        """Return the body of a request.

        Raises:
            HTTPException: it may not be posted.
        """
        self._check(request)
        async with self._bodies.received(request) as body:
            request.scope[READ] = True
            return body

    def end_streams(self) -> None:
        """End what would go on for ever; from any thread."""
        self._reading.end()

    def _check(self, request: Request) -> None:
        """Refuse a body that may not be posted, as far as its headers say so.

        Raises:
            HTTPException: it may not.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON:
            raise HTTPException(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the header Content-Type must be {_JSON}"
            )
        if int(request.headers.get("content-length", "0")) > self._most_bytes:
            raise _too_long(self._most_bytes)

    def close(self) -> None:
        """Answer what waits, and end the threads. Call it when nobody asks any more."""
        self._reading.close()
        self._short.end()
        self._long.end()


def _too_long(most: int) -> HTTPException:
    return HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body may have {most} bytes, and has more"
    )


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
            HTTPException: there is no room, or it is too long.
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
            raise HTTPException(
                HTTPStatus.SERVICE_UNAVAILABLE, reason, {"Retry-After": "1"}
            ) from None
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
            headers = {**_UNSTORED, "WWW-Authenticate": "Bearer"}
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

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] = _UNSTORED) -> None:
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
    assert isinstance(why, HTTPException)  # noqa: S101 -- it is the handler of these
    reason = why.detail
    if request.url.path == PATH and why.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        reason = "queries are posted"
    headers = {**_UNSTORED, **(why.headers or {})}
    if request.scope.get(READ):
        return Response(error(reason), why.status_code, headers, _JSON)
    return _Refusal(why.status_code, reason, headers)


async def _gone(request: Request, why: Exception) -> Response:
    """Return anything: nobody is there to get it."""
    del request, why
    return Response()


async def _failed(request: Request, why: Exception) -> Response:
    """Tell the client; uvicorn logs the error."""
    del request, why
    said = error("it failed; the log says why")
    return Response(said, HTTPStatus.INTERNAL_SERVER_ERROR, _UNSTORED, _JSON)
