"""The client of a schema registry: what it asks for, and what follows from each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from worker.bus import Away, Denied
from worker.formats.registry.exchange import Budget, Exchange, RegistryOptions
from worker.formats.registry.wire_format import Ident, named
from worker.formats.unreadable import Unreadable
from worker.untrusted import NOT_READ

_SCHEMA_SECONDS: Final = 30.0
"""For a schema with all that it refers to, if each answer comes in time."""
_UNKNOWN = 404
_NO_REASON = (None, _UNKNOWN)
_UNAUTHORIZED = 401
_NOT_ALLOWED = (_UNAUTHORIZED, 403)
_WAIT_FOR = (408, 429)
_OK: Final = 200
_REFUSALS = range(400, 500)


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


class _Refusal(Exception):
    """An answer that isn't a schema: its status, and the code of the registry's own error."""

    def __init__(self, status: int, code: object) -> None:
        self.status = status
        self.code = code
        super().__init__(status)


class Registry:
    """Asks a schema registry, several schemas at once."""

    def __init__(self, options: RegistryOptions) -> None:
        """Take where it is. Nothing is sent yet."""
        self._options = options
        self._urls = [url.strip().rstrip("/") for url in options.url.split(",")]
        self._exchange = Exchange(options)

    def fetch(self, idents: Sequence[Ident]) -> list[Fetched | Exception]:
        """Return the schema of each id or GUID, or why there is none.

        That is `Missing` if the registry has none, `Unreadable` if it can't be used, `Away` if the
        registry can't be asked now, and `Denied` if it doesn't let us, or isn't one.
        """

        async def all_of_them() -> list[Fetched | BaseException]:
            return await asyncio.gather(*map(self._fetch, idents), return_exceptions=True)

        found = self._exchange.run(all_of_them())
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, Unreadable | Away | Denied):
                raise one
        return found  # type: ignore[return-value]  # the exceptions are those three

    async def _fetch(self, ident: Ident) -> Fetched:
        where = "ids" if isinstance(ident, int) else "guids"
        path = f"/schemas/{where}/{ident}"
        budget = Budget(named(ident))
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

    async def _references(
        self, ident: Ident, schema: _Answer, form: Mapping[str, str], budget: Budget
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
        self, ident: Ident, reference: _Reference, form: Mapping[str, str], budget: Budget
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

    async def _get(self, path: str, query: Mapping[str, str], budget: Budget) -> _Answer:
        """Return what the registry answers; addresses are tried in turn.

        Raises:
            Unreadable: it is no schema, or too large.
            _Refusal: there is none, or it doesn't let us.
            Away: it doesn't answer, or as no registry would.
            Denied: the issuer of tokens doesn't let us.
        """
        last = self._options.away("it has no address")
        for url in self._urls:
            try:
                return await self._ask(url + path, query, budget)
            except Away as error:
                last = error
        raise last

    async def _ask(self, url: str, query: Mapping[str, str], budget: Budget) -> _Answer:
        status, body = await self._exchange.get(url, query, budget)
        if status in _WAIT_FOR or (status != _OK and status not in _REFUSALS):
            raise Away(f"the schema registry {self._options.url} answered {status}")
        try:
            found = msgspec.json.decode(body)
        except NOT_READ:
            found = None
        if status != _OK:
            raise _Refusal(status, found.get("error_code") if isinstance(found, dict) else None)
        if found is None and body.lstrip().startswith(b"{"):
            raise Unreadable("no-schema", "the registry's answer can't be read: it isn't JSON")
        if not isinstance(found, dict):
            raise self._options.away("its answer is no object in JSON")
        try:
            return msgspec.convert(found, _Answer)
        except msgspec.ValidationError as error:
            said = f"the registry's answer is no schema: {error}"
            raise Unreadable("no-schema", said[:200]) from None
