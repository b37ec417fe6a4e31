"""The client of a schema registry: what it asks for, and what follows from each answer.

A stranger may have written a schema, so whatever is read for one is bounded: see `_Budget`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from ssl import SSLContext, create_default_context
from time import monotonic
from typing import Final, NamedTuple
from urllib.parse import quote
from weakref import finalize

import certifi
import httpx2 as httpx
import msgspec

from worker.bus import Away, Denied
from worker.formats.registry.wire_format import Ident, named
from worker.formats.unreadable import Unreadable
from worker.untrusted import NOT_READ

__all__ = ["Fetched", "Missing", "Registry", "RegistryOptions"]

_MOST_BYTES: Final = 4 << 20
"""Of all answers that one schema takes. A registry's own limit for a schema is 1 MB."""
_MOST_REFERENCES: Final = 256
"""Schemas that one refers to, also through others: one request each."""
_MOST_LEVELS: Final = 64
"""References within one another: each takes an answer before the next can be asked for."""
_SCHEMA_SECONDS: Final = 30.0
"""For a schema with all that it refers to, if each answer comes in time."""
_AT_ONCE: Final = 16
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_ZIPPED: Final = ("gzip", "x-gzip", "deflate")
_UNKNOWN = 404
_NO_REASON = (None, _UNKNOWN)
_UNAUTHORIZED = 401
_NOT_ALLOWED = (_UNAUTHORIZED, 403)
_WAIT_FOR = (408, 429)
_OK: Final = 200
_REFUSALS = range(400, 500)
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


class Fetched(NamedTuple):
    """A schema and the schemas that it refers to, by name, each after those that it refers to."""

    kind: str
    text: str
    references: list[tuple[str, str]]


class Missing(Unreadable):
    """The registry doesn't have a schema. It may have it later."""

    def __init__(self, detail: str) -> None:
        """``detail`` says what is missing."""
        super().__init__("no-schema", detail)


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _Answer(msgspec.Struct, rename="camel"):
    schema: str
    schema_type: str | None = None
    references: list[_Reference] | None = None


class _Token(msgspec.Struct):
    access_token: str
    expires_in: float | None = None


class _Refusal(Exception):
    """An answer that isn't a schema: its status, and the code of the registry's own error."""

    def __init__(self, status: int, code: object) -> None:
        self.status = status
        self.code = code
        super().__init__(status)


class _Budget:
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


class Registry:
    """Asks a schema registry, several schemas at once."""

    def __init__(self, options: RegistryOptions) -> None:
        """Take where it is. Nothing is sent yet."""
        logging.getLogger(httpx.__name__).setLevel(logging.WARNING)  # Else each answer is a line.
        self._options = options
        self._urls = [url.strip().rstrip("/") for url in options.url.split(",")]
        user, _, password = (options.credentials or "").partition(":")
        self._login = httpx.BasicAuth(user, password) if options.credentials else None
        self._headers = {"Accept": _ACCEPT, "Accept-Encoding": "identity"}
        if options.logical_cluster is not None:
            self._headers["target-sr-cluster"] = options.logical_cluster
        if options.identity_pool is not None:
            self._headers["Confluent-Identity-Pool-Id"] = options.identity_pool
        self._token = ""
        self._renew_at = 0.0
        # A thread of its own: only so does an answer that drips have an end.
        self._client = httpx.AsyncClient(verify=_context(options), timeout=None)
        self._loop = asyncio.new_event_loop()
        rest = self._loop, self._client
        threading.Thread(target=_serve, args=rest, name="registry", daemon=True).start()
        finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._renewing = asyncio.Lock()

    def fetch(self, idents: Sequence[Ident]) -> list[Fetched | Exception]:
        """Return the schema of each id or GUID, or why there is none.

        That is `Missing` if the registry has none, `Unreadable` if it can't be used, `Away` if the
        registry can't be asked now, and `Denied` if it doesn't let us, or isn't one.
        """

        async def all_of_them() -> list[Fetched | BaseException]:
            return await asyncio.gather(*map(self._fetch, idents), return_exceptions=True)

        found = asyncio.run_coroutine_threadsafe(all_of_them(), self._loop).result()
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, Unreadable | Away | Denied):
                raise one
        return found  # type: ignore[return-value]  # the exceptions are those three

    async def _fetch(self, ident: Ident) -> Fetched:
        where = "ids" if isinstance(ident, int) else "guids"
        path = f"/schemas/{where}/{ident}"
        budget = _Budget(named(ident))
        try:
            async with asyncio.timeout(_SCHEMA_SECONDS):
                found = await self._get(path, {}, budget)
                kind = found.schema_type or "AVRO"
                # Protobuf is asked for as descriptors, too.
                form = {"format": "serialized"} if kind == "PROTOBUF" else {}
                if form:
                    found = await self._get(path, form, budget)
                # What JSON refers to is not needed to read it.
                more = [] if kind == "JSON" else await self._references(ident, found, form, budget)
        except _Refusal as refusal:
            raise self._refused(ident, refusal) from None
        except TimeoutError:
            said = f"takes more than {_SCHEMA_SECONDS:g} s, with all that it refers to"
            raise Missing(f"{named(ident)} {said}") from None
        return Fetched(kind, found.schema, more)

    def _refused(self, ident: Ident, refusal: _Refusal) -> Exception:
        status = refusal.status
        answer = f"the schema registry {self._options.url} answered {status} to {named(ident)}"
        if status in _NOT_ALLOWED:
            return Denied(f"{answer}: see registry.credentials_file")
        if isinstance(ident, int) and status == _UNKNOWN and refusal.code in _NO_REASON:
            return Denied(f"{answer}, without a reason of its own: see registry.url")
        return Missing(f"the registry doesn't have {named(ident)} ({status})")

    def _away(self, why: str) -> Away:
        return Away(f"the schema registry {self._options.url} is away: {why}")

    async def _references(
        self, ident: Ident, schema: _Answer, form: Mapping[str, str], budget: _Budget
    ) -> list[tuple[str, str]]:
        """Return all that a schema refers to, each after what it refers to itself."""
        found: dict[str | None, _Answer] = {None: schema}
        graph: dict[str | None, list[str]] = {}
        level = found
        while any(one.references for one in level.values()):
            asked: dict[str, _Reference] = {}
            for name, one in level.items():
                theirs = one.references or []
                graph[name] = [each.name for each in theirs]
                asked |= {each.name: each for each in theirs if each.name not in found}
            budget.ask(len(asked))
            answers = await asyncio.gather(
                *(self._reference(ident, each, form, budget) for each in asked.values()),
                return_exceptions=True,
            )
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            level = dict(zip(asked, answers, strict=True))  # type: ignore[arg-type]  # none is one
            found |= level
        try:
            order = list(TopologicalSorter(graph).static_order())
        except CycleError:
            said = f"{named(ident)} can't be used: what it refers to refers to itself"
            raise Unreadable("no-schema", said) from None
        return [(name, found[name].schema) for name in order if name is not None]

    async def _reference(
        self, ident: Ident, reference: _Reference, form: Mapping[str, str], budget: _Budget
    ) -> _Answer:
        subject, version = reference.subject, reference.version
        why = f"{named(ident)} can't be used: it refers to {subject[:100]!r}"
        if subject in {"", ".", ".."}:
            raise Unreadable("no-schema", f"{why}, which is no subject")
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        try:
            return await self._get(path, {"deleted": "true", **form}, budget)
        except _Refusal as refusal:
            if refusal.status == _UNAUTHORIZED:
                raise
            # Not ours to mend, whatever it is: whoever wrote the schema chose the subject.
            said = f"{why}, version {version}, which the registry doesn't give ({refusal.status})"
            raise Missing(said) from None

    async def _get(self, path: str, query: Mapping[str, str], budget: _Budget) -> _Answer:
        """Return what the registry answers; addresses are tried in turn.

        Raises:
            Unreadable: it is no schema, or too large.
            _Refusal: there is none, or it doesn't let us.
            Away: it doesn't answer, or as no registry would.
            Denied: the issuer of tokens doesn't let us.
        """
        last = self._away("it has no address")
        for url in self._urls:
            try:
                async with self._slots:
                    return await self._ask(url + path, query, budget)
            except Away as error:
                last = error
        raise last

    async def _ask(self, url: str, query: Mapping[str, str], budget: _Budget) -> _Answer:
        status, body = await self._sent("GET", url, budget, params=query)
        if status == _UNAUTHORIZED and self._options.token_url is not None:
            self._token = ""  # It may have been revoked.
            status, body = await self._sent("GET", url, budget, params=query)
        if status in _WAIT_FOR or (status != _OK and status not in _REFUSALS):
            raise Away(f"the schema registry {self._options.url} answered {status}")
        try:
            found = msgspec.json.decode(body)
        except NOT_READ as error:
            found = error
        if status != _OK:
            raise _Refusal(status, found.get("error_code") if isinstance(found, dict) else None)
        if not isinstance(found, dict):
            raise self._away("its answer is no object in JSON")
        try:
            return msgspec.convert(found, _Answer)
        except msgspec.ValidationError as error:
            said = f"the registry's answer is no schema: {error}"
            raise Unreadable("no-schema", said[:200]) from None

    async def _sent(
        self, method: str, url: str, budget: _Budget, **more: Mapping[str, str]
    ) -> tuple[int, bytes]:
        headers, login = self._headers, self._login
        if self._options.token_url is not None:
            headers, login = {**headers, "Authorization": f"Bearer {await self._issued()}"}, None
        return await self._exchanged(
            self._away, budget, method=method, url=url, headers=headers, auth=login, **more
        )

    async def _exchanged(
        self, away: Callable[[str], Away], budget: _Budget, **request: object
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer.

        Raises:
            Unreadable: it is larger than what is left of the budget.
            Away: there is none in time.
        """
        if self._client is None:  # Of the thread with the loop.
            self._client = httpx.AsyncClient(verify=self._tls, timeout=None)
        seconds = self._options.timeout_seconds
        try:
            async with asyncio.timeout(seconds), self._client.stream(**request) as answer:  # type: ignore[arg-type]
                body = await _body(answer, budget)
        except TimeoutError:
            raise away(f"no answer within {seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, zlib.error) as error:
            raise away(_said(error)) from None
        finally:
            self._client.cookies.clear()
        return answer.status_code, body

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
            scope = self._options.token_scope
            form = {
                "grant_type": "client_credentials",
                **({} if scope is None else {"scope": scope}),
            }
            try:
                status, body = await self._exchanged(
                    lambda why: Away(f"the issuer of tokens {url} is away: {why}"),
                    _Budget("its answer"),
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


async def _body(answer: httpx.Response, budget: _Budget) -> bytes:
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
