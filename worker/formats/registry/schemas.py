"""Schemas as they are met: asked for once, kept, and waited for if the registry is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple, Protocol
from weakref import finalize

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.common._httpx_compat import httpx

from worker.bus import Away, Denied
from worker.formats.registry.wire_format import id_of, named
from worker.formats.unreadable import Unreadable

__all__ = ["Decoder", "Fetched", "Registry", "RegistryOptions", "Schemas"]

_log = logging.getLogger(__name__)

_WAIT_SECONDS = 10.0
"""How long a batch waits for the registry before its stage polls again, and reads it anew."""
_PAUSE_SECONDS = 0.5
_SILENT_SECONDS = 5.0
_REFUSED_SECONDS = 60.0
"""How long it counts that the registry has no schema of an id."""
_MOST_REFUSED = 10_000
_UNKNOWN = 404
_NO_REASON = (None, -1, _UNKNOWN)
_NOT_ALLOWED = (401, 403)
_WAIT_FOR = (408, 429)
_REFUSALS = range(400, 500)
_ERRORS = (httpx.HTTPError, ValueError, TypeError, AttributeError, LookupError)
"""What the client raises if nobody answers, or answers what no registry would."""


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Where the registry is, and how to log in: ``credentials`` are ``user:password``."""

    url: str
    credentials: str | None = None
    ca_file: Path | None = None
    timeout_seconds: float = 5.0


class Fetched(NamedTuple):
    """A schema and the schemas that it refers to, by name, each after those that it refers to."""

    kind: str
    text: str
    references: list[tuple[str, str]]


class Decoder(Protocol):
    """Decodes what has one schema."""

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the fields, as far as the schema has them."""

    def decode(self, value: bytes, start: int) -> object:
        """Return what is in a value from a position on.

        Raises:
            Unreadable: it isn't what the schema says.
        """


class Registry:
    """Asks a schema registry, by the client that comes with confluent-kafka."""

    def __init__(self, options: RegistryOptions) -> None:
        """Take where it is. Nothing is sent yet."""
        conf: dict[str, object] = {
            "url": options.url,
            "timeout": options.timeout_seconds,
            "max.retries": 0,
        }
        if options.credentials is not None:
            conf["basic.auth.user.info"] = options.credentials
        if options.ca_file is not None:
            conf["ssl.ca.location"] = str(options.ca_file)
        logging.getLogger(httpx.__name__).setLevel(logging.WARNING)  # Else each answer is a line.
        self._url = options.url
        self._client = SchemaRegistryClient(conf)
        # A client keeps one form of a schema. Protobuf is asked for as a descriptor, too.
        self._serialized = SchemaRegistryClient(conf)
        for client in (self._client, self._serialized):
            finalize(self, client.close)

    def fetch(self, ident: int | str) -> Fetched:
        """Return the schema with an id or a GUID.

        Raises:
            Unreadable: the registry has none.
            Away: it can't be asked now.
            Denied: it doesn't let us, or isn't one.
        """
        try:
            found = _schema(self._client, ident)
            kind = found.schema_type or "AVRO"
            if kind != "PROTOBUF":
                return _with_references(self._client, kind, found)
            found = _schema(self._serialized, ident, "serialized")
            return _with_references(self._serialized, kind, found, "serialized")
        except SchemaRegistryError as error:
            raise self._refusal(ident, error) from None
        except _ERRORS as error:
            said = str(error) or type(error).__name__
            raise Away(f"the schema registry {self._url} is away: {said}") from None

    def _refusal(self, ident: int | str, error: SchemaRegistryError) -> Exception:
        status = error.http_status_code
        answer = f"the schema registry {self._url} answered {status} to {named(ident)}"
        if status in _NOT_ALLOWED:
            return Denied(f"{answer}: see registry.credentials_file")
        if status in _WAIT_FOR or status not in _REFUSALS:
            return Away(answer)
        if isinstance(ident, int) and status == _UNKNOWN and error.error_code in _NO_REASON:
            return Denied(f"{answer}, without a reason of its own: see registry.url")
        return Unreadable("no-schema", f"the registry doesn't have {named(ident)} ({status})")


def _schema(client: SchemaRegistryClient, ident: int | str, form: str | None = None) -> Schema:
    if isinstance(ident, int):
        return client.get_schema(ident, fmt=form)
    return client.get_schema_by_guid(ident, fmt=form)


def _with_references(
    client: SchemaRegistryClient, kind: str, schema: Schema, form: str | None = None
) -> Fetched:
    """Return a schema with all that it refers to."""
    found: dict[str, str] = {}

    def collect(one: Schema) -> None:
        for reference in one.references or ():
            name = reference.name or ""
            if name not in found:
                subject, version = reference.subject or "", reference.version or 1
                theirs = client.get_version(subject, version, deleted=True, fmt=form).schema
                collect(theirs)
                found[name] = theirs.schema_str or ""

    collect(schema)
    return Fetched(kind, schema.schema_str or "", list(found.items()))


class _Refused(NamedTuple):
    """Why there is no decoder, and when that was."""

    why: Unreadable
    at: float


class Schemas:
    """The decoders of the schemas that were met, by the marks of values."""

    def __init__(
        self,
        fetch: Callable[[int | str], Fetched],
        made: Callable[[Fetched], Decoder],
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        """Take what asks the registry, and what makes a decoder or raises ``ValueError``."""
        self._fetch = fetch
        self._made = made
        self._clock = clock
        self._pause = pause
        self.known: dict[bytes, Decoder] = {}
        """The decoders by marks: whoever is in a hurry looks here first."""
        self._refused: dict[bytes, _Refused] = {}
        self._silent: tuple[float, Away] | None = None

    def decoder(self, mark: bytes) -> Decoder:
        """Return the decoder of a mark; the registry is asked once if it wasn't before.

        Raises:
            Unreadable: there is no such schema, or it can't be used.
            Away: the registry can't be asked now.
            Denied: the registry doesn't let us.
        """
        found = self.known.get(mark)
        if found is not None:
            return found
        if mark not in self._refused:
            self._ask_once(mark)
        refused = self._refused.get(mark)
        if refused is not None:
            raise refused.why
        return self.known[mark]

    def _ask_once(self, mark: bytes) -> None:
        """Ask for a mark, unless the registry was away just now: many may be asked for in turn."""
        if self._silent is not None and self._clock() < self._silent[0]:
            raise self._silent[1]
        self._silent = None
        try:
            self._ask(mark)
        except Away as error:
            self._silent = self._clock() + _SILENT_SECONDS, error
            raise

    def prepare(self, marks: Iterable[bytes]) -> None:
        """Ask for what isn't known of these marks; wait some seconds if the registry is away.

        Raises:
            Away: it still is.
            Denied: the registry doesn't let us.
        """
        now = self._clock()
        if len(self._refused) > _MOST_REFUSED:
            self._refused.clear()
        for mark in sorted(set(marks) - self.known.keys()):
            refused = self._refused.get(mark)
            if refused is None or now - refused.at > _REFUSED_SECONDS:
                self._await(mark, now + _WAIT_SECONDS)

    def _await(self, mark: bytes, until: float) -> None:
        waiting = False
        while True:
            try:
                self._ask(mark)
            except Away as error:
                if not waiting:
                    _log.warning("%s; documents wait for it, and none is rejected", error)
                if self._clock() > until:
                    raise
                waiting = True
                self._pause(_PAUSE_SECONDS)
            else:
                if waiting:
                    _log.info("the schema registry answers again")
                return

    def _ask(self, mark: bytes) -> None:
        """Keep the decoder of a mark, or why there is none."""
        self._refused.pop(mark, None)
        try:
            ident = id_of(mark)
            self.known[mark] = self._usable(ident)
        except Unreadable as error:
            self._refused[mark] = _Refused(error, self._clock())

    def _usable(self, ident: int | str) -> Decoder:
        fetched = self._fetch(ident)
        try:
            made = self._made(fetched)
        except ValueError as error:
            raise Unreadable("no-schema", f"{named(ident)} can't be used: {error}") from None
        _log.info("%s (%s) is known now", named(ident), fetched.kind.lower())
        return made
