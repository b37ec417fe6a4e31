"""Requests to a schema registry: how to log in, and how much may be read for one schema.

A stranger may have written a schema. So an answer has a deadline, and a size.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import zlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext, create_default_context
from time import monotonic
from typing import Any, Final, TypeVar
from weakref import finalize

import certifi
import httpx2 as httpx
import msgspec

from worker.bus import Away, Denied
from worker.formats.unreadable import Unreadable
from worker.untrusted import NOT_READ

_T = TypeVar("_T")

_MOST_BYTES: Final = 4 << 20
"""Of all answers that one schema takes. A registry's own limit for a schema is 1 MB."""
_MOST_REFERENCES: Final = 256
"""Schemas that one refers to, also through others: one request each."""
_MOST_LEVELS: Final = 64
"""References within one another: each takes an answer before the next can be asked for."""
_AT_ONCE: Final = 16
_HEADERS: Final = {
    "Accept": "application/vnd.schemaregistry.v1+json, application/json",
    "Accept-Encoding": "identity",
}
_ZIPPED: Final = ("gzip", "x-gzip", "deflate")
_UNAUTHORIZED: Final = 401
_WAIT_FOR: Final = (408, 429)
_REFUSALS: Final = range(400, 500)
_TOKEN_SHARE: Final = 0.8
"""Of its life, after which a token is renewed."""
_TOKEN_SECONDS: Final = 300.0
"""The life of a token whose issuer doesn't say it."""


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Where the registry is, and how to log in.

    ``credentials`` are ``user:password``, or the id and the secret of a client that gets tokens
    from ``token_url``. ``logical_cluster`` and ``identity_pool`` are Confluent Cloud's.
    """

    url: str
    credentials: str | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    token_url: str | None = None
    token_scope: str | None = None
    logical_cluster: str | None = None
    identity_pool: str | None = None
    timeout_seconds: float = 5.0

    def away(self, why: str) -> Away:
        """Return the error of a registry that can't be asked."""
        return Away(f"the schema registry {self.url} is away: {why}")


class _Token(msgspec.Struct):
    access_token: str
    expires_in: float | None = None


class Budget:
    """What may be read for one schema."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bytes = _MOST_BYTES
        self._references = _MOST_REFERENCES
        self._levels = _MOST_LEVELS

    @property
    def room(self) -> int:
        """Return how many bytes may still come."""
        return self._bytes

    def read(self, size: int) -> None:
        """Count bytes of an answer.

        Raises:
            Unreadable: they are too many.
        """
        self._bytes -= size
        if self._bytes < 0:
            raise self._beyond(f"{_MOST_BYTES >> 20} MiB")

    def ask(self, count: int) -> None:
        """Count references, which are on one level.

        Raises:
            Unreadable: they are too many.
        """
        self._references -= count
        self._levels -= 1
        if self._references < 0:
            raise self._beyond(f"{_MOST_REFERENCES} references")
        if self._levels < 0:
            raise self._beyond(f"{_MOST_LEVELS} references within one another")

    def _beyond(self, most: str) -> Unreadable:
        return Unreadable("no-schema", f"{self._what} can't be used: it takes more than {most}")


class Exchange:
    """Sends requests in a thread of its own: only so does an answer that drips have an end."""

    def __init__(self, options: RegistryOptions) -> None:
        """Take how to log in. Nothing is sent yet."""
        logging.getLogger(httpx.__name__).setLevel(logging.WARNING)  # Else each answer is a line.
        self._options = options
        user, _, password = (options.credentials or "").partition(":")
        self._login = httpx.BasicAuth(user, password) if options.credentials else None
        self._headers = dict(_HEADERS)
        if options.logical_cluster is not None:
            self._headers["target-sr-cluster"] = options.logical_cluster
        if options.identity_pool is not None:
            self._headers["Confluent-Identity-Pool-Id"] = options.identity_pool
        self._token = ""
        self._renew_at = 0.0
        self._renewing = asyncio.Lock()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._client = httpx.AsyncClient(verify=_context(options), timeout=None)
        self._loop = asyncio.new_event_loop()
        rest = self._loop, self._client
        threading.Thread(target=_serve, args=rest, name="registry", daemon=True).start()
        finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run what sends requests, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def get(self, url: str, query: Mapping[str, str], budget: Budget) -> tuple[int, bytes]:
        """Return the status and the body of the registry's answer.

        Raises:
            Unreadable: it is larger than what is left of the budget.
            Away: the registry, or the issuer of tokens, doesn't answer in time.
            Denied: the issuer of tokens doesn't let us.
        """
        async with self._slots:
            if self._options.token_url is None:
                return await self._got(url, query, budget)
            token = await self._issued()
            status, body = await self._got(url, query, budget, token)
            if status != _UNAUTHORIZED:
                return status, body
            if self._token == token:  # It may have been revoked.
                self._token = ""
            return await self._got(url, query, budget, await self._issued())

    async def _got(
        self, url: str, query: Mapping[str, str], budget: Budget, token: str | None = None
    ) -> tuple[int, bytes]:
        own = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await self._exchanged(
            self._options.away,
            budget,
            method="GET",
            url=url,
            params=query,
            headers={**self._headers, **own},
            auth=self._login if token is None else None,
        )

    async def _exchanged(
        self, away: Callable[[str], Away], budget: Budget, **request: object
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer.

        Raises:
            Unreadable: it is larger than what is left of the budget.
            Away: there is none in time.
        """
        seconds = self._options.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await self._sent(budget, request)
                except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                    # A server closes a connection that rests; the request may have crossed with it.
                    return await self._sent(budget, request)
        except TimeoutError:
            raise away(f"no answer within {seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, zlib.error) as error:
            raise away(_said(error)) from None
        finally:
            self._client.cookies.clear()

    async def _sent(self, budget: Budget, request: Mapping[str, Any]) -> tuple[int, bytes]:
        async with self._client.stream(**request) as answer:
            return answer.status_code, await _body(answer, budget)

    async def _issued(self) -> str:
        """Return a token, by the client's own credentials (RFC 6749, section 4.4).

        Raises:
            Away: the issuer doesn't answer.
            Denied: it doesn't let us.
        """
        url = self._options.token_url
        async with self._renewing:
            if self._token and monotonic() < self._renew_at:
                return self._token
            form = {"grant_type": "client_credentials"}
            if self._options.token_scope is not None:
                form["scope"] = self._options.token_scope
            try:
                status, body = await self._exchanged(
                    lambda why: Away(f"the issuer of tokens {url} is away: {why}"),
                    Budget("its answer"),
                    method="POST",
                    url=url,
                    headers={"Accept": "application/json"},
                    auth=self._login,
                    data=form,
                )
            except Unreadable as error:
                raise Away(f"the issuer of tokens {url} is away: {error.detail}") from None
            if status in _REFUSALS and status not in _WAIT_FOR:
                raise Denied(
                    f"the issuer of tokens {url} answered {status}: see registry.credentials_file,"
                    " registry.token_url and registry.token_scope"
                )
            try:
                token = msgspec.json.decode(body, type=_Token)
            except NOT_READ:
                raise Away(f"the issuer of tokens {url} answered {status}, no token") from None
            life = _TOKEN_SECONDS if token.expires_in is None else token.expires_in
            self._renew_at = monotonic() + _TOKEN_SHARE * life
            self._token = token.access_token
            return self._token


def _said(error: BaseException) -> str:
    """Return what an error says, or what the one behind it says, if it is empty."""
    behind: BaseException | None = error
    while behind is not None and not str(behind):
        behind = behind.__cause__ or behind.__context__
    return str(behind or type(error).__name__)[:200]


def _serve(loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient) -> None:
    """Run a loop until it is stopped, and close what it used."""
    loop.run_forever()
    loop.run_until_complete(client.aclose())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


async def _body(answer: httpx.Response, budget: Budget) -> bytes:
    """Return the body of an answer; one that is compressed, although none may be, is bounded."""
    parts = []
    async for part in answer.aiter_raw():
        budget.read(len(part))
        parts.append(part)
    body = b"".join(parts)
    if answer.headers.get("content-encoding", "").lower() in _ZIPPED:
        body = zlib.decompressobj(32 + zlib.MAX_WBITS).decompress(body, budget.room + 1)
        budget.read(len(body))
    return body


def _context(options: RegistryOptions) -> SSLContext:
    context = create_default_context(cafile=options.ca_file or certifi.where())
    if options.certificate_file is not None:
        # With a password, even an empty one, nobody is asked for it.
        context.load_cert_chain(options.certificate_file, options.key_file, password="")
    return context
