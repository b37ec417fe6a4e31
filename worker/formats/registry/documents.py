"""Documents with a schema in a registry: Avro, Protobuf, or JSON with a JSON Schema."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from time import monotonic, sleep
from typing import Any, Final, Protocol

import msgspec

from worker.bus import Away, Denied, Record, RecordBatch
from worker.fields import FieldTree, field_tree, parse
from worker.formats.base import DocumentFormat, DocumentOptions, Documents
from worker.formats.json import Decode, Field, Getter, JsonFormat, decoded, decoder_of, getter
from worker.formats.keys import Keys
from worker.formats.registry.avro import AvroDecoder
from worker.formats.registry.client import Fetched, Missing, Registry
from worker.formats.registry.exchange import RegistryOptions
from worker.formats.registry.protobuf import ProtobufDecoder
from worker.formats.registry.wire_format import (
    ID_BYTES,
    Ident,
    id_of,
    mark_of,
    mark_or_none,
    named,
    whole,
    whole_batch,
)
from worker.formats.times import since_epoch
from worker.formats.unreadable import Unreadable, kind_of


class RegistryFormat(JsonFormat):
    """Values in Confluent's wire format; the schema says how each is decoded.

    The fields are those of `JsonFormat`. Matches are never spliced in: a schema may not allow it.
    """

    framed = True

    def __init__(
        self,
        options: DocumentOptions,
        registry: RegistryOptions | None,
        fetch: Fetch | None = None,
        *,
        id_bytes: int = ID_BYTES,
    ) -> None:
        """Take the fields and limits, and where the registry is; ``fetch`` replaces its client.

        ``id_bytes`` is the length of ids. Those of 8 are Apicurio's.
        """
        self._id_bytes = id_bytes
        self._short = 1 + id_bytes
        if fetch is None:
            assert registry is not None  # noqa: S101 -- one of the two is given
            fetch = Registry(registry).fetch
        ask = fetch

        def fetched(idents: Sequence[Ident]) -> Sequence[Fetched | Exception]:
            with self.waiting():
                return ask(idents)

        def pause(seconds: float) -> None:
            with self.waiting():
                sleep(seconds)

        texts = list(map(parse, options.text_fields))
        others = [options.id_field, options.time_field, options.deleted_id_field]
        paths = [parse(name) for name in others if name is not None]
        needed = field_tree(texts, paths)
        self._names = list(dict.fromkeys([*needed.fields, *(one.name for one in texts + paths)]))
        self._values = Schemas(fetched, self._decoder_of(needed), pause=pause)
        self._known = self._values.known
        super().__init__(options)
        self._plain = False
        self._read_time = _with_moments(self._read_time)
        self._marked_keys = None
        if options.key == "registry":
            self._marked_keys = Schemas(fetched, self._decoder_of(None), pause=pause)
            self.keys = _KeysWithSchema(
                "auto", options.max_id_bytes, self._marked_keys, options.id_field, id_bytes
            )

    def prepare(self, batches: Sequence[RecordBatch]) -> None:
        """See `DocumentFormat`."""
        whole_ones = list(map(whole_batch, batches))
        self._prepare(self._values, (value for one in whole_ones for value in one.values))
        if self._marked_keys is not None:
            self._prepare(self._marked_keys, (key for one in whole_ones for key in one.keys))

    def _prepare(self, schemas: Schemas, given: Iterable[bytes | None]) -> None:
        marks = {mark_or_none(one, self._id_bytes) for one in given}
        schemas.prepare(mark for mark in marks if mark is not None)

    def whole(self, record: Record) -> Record:
        """See `DocumentFormat`."""
        return whole(record)

    def read_all(self, batch: RecordBatch) -> Documents:
        """See `DocumentFormat`."""
        return DocumentFormat.read_all(self, whole_batch(batch))

    def excerpt(self, value: bytes) -> str:
        """See `DocumentFormat`."""
        try:
            return super().excerpt(value)
        except (Away, Denied):
            return value.decode(errors="replace")

    def identify(self, value: bytes, key: bytes | None = None) -> bytes | None:
        """See `DocumentFormat`. None also if the registry doesn't tell."""
        try:
            return super().identify(value, key)
        except (Away, Denied):
            return None

    def fields(self, value: bytes) -> Sequence[str] | None:
        """See `DocumentFormat`. Nothing is asked for that."""
        decoder = self._known.get(mark_of(value, self._id_bytes))
        if decoder is None:
            raise Unreadable("no-schema", "its schema wasn't met before")
        return decoder.names

    def can_splice(self, value: bytes) -> bool:  # noqa: ARG002 -- none can
        """See `DocumentFormat`."""
        return False

    def _check_encoding(self, value: bytes) -> None:
        """Leave that to the decoder."""

    def _reader(self, members: Sequence[str]) -> tuple[Decode, dict[str, Field]]:
        fields = {}
        for path in map(parse, members):
            head = _member(path.head)
            fields[path.name] = Field(path, getter(path, _member(path.name), head), head)
        return self._decoded, fields

    def _decoded(self, value: bytes) -> object:
        decoder = self._known.get(value[: self._short])  # A hot path.
        if decoder is not None:
            found = decoder.decode(value, self._short)
        else:
            mark = mark_of(value, self._id_bytes)
            found = self._values.decoder(mark).decode(value, len(mark))
        if not isinstance(found, dict):
            raise Unreadable("not-an-object", f"the value is {kind_of(found)}, not a record")
        return found

    def _find_id(self, value: bytes) -> object:
        with suppress(Unreadable):
            return super()._find_id(value)
        return None

    def _find_deleted_id(self, value: bytes) -> object:
        with suppress(Unreadable):
            return super()._find_deleted_id(value)
        return None

    def _decoder_of(self, needed: FieldTree | None) -> Callable[[Fetched], Decoder]:
        def made(fetched: Fetched) -> Decoder:
            kind, text, references = fetched
            if kind == "AVRO":
                return AvroDecoder(text, [each for _, each in references], needed)
            if kind == "PROTOBUF":
                by_name = self._id_bytes != ID_BYTES
                return ProtobufDecoder(text, references, needed, by_name=by_name)
            if kind == "JSON":
                return _Json(None if needed is None else self._names)
            raise ValueError(f"its type is {kind[:20]!r}, not AVRO, JSON or PROTOBUF")

        return made


class _Json:
    """Decodes JSON; its schema says nothing that is needed for that."""

    names = ()

    def __init__(self, names: Sequence[str] | None) -> None:
        self._decode: Decode = msgspec.json.Decoder().decode
        self._get: list[tuple[str, Getter]] = []
        if names is not None:
            self._decode, found = decoder_of(names)
            self._get = list(found.items())

    def decode(self, value: bytes, start: int) -> object:
        """Return a member of each of the names that the value has; without names, all of it."""
        found = decoded(self._decode, value[start:])
        if not self._get:
            return found
        return {name: got for name, get in self._get if (got := get(found)) is not msgspec.UNSET}


@dataclass(frozen=True, slots=True)
class _KeysWithSchema(Keys):
    """Keys in the wire format: a text or a number, or a record whose id field, or only one, is."""

    schemas: Schemas | None = None
    field: str = ""
    id_bytes: int = ID_BYTES

    def ident(self, key: bytes | None) -> bytes | None:
        """See `Keys`."""
        if not key or self.schemas is None:
            return None
        mark = mark_of(key, self.id_bytes)
        try:
            found = self.schemas.decoder(mark).decode(key, len(mark))
        except Unreadable as error:
            raise Unreadable("bad-id", f"the key can't be decoded: {error}") from None
        if isinstance(found, dict):
            only = next(iter(found.values())) if len(found) == 1 else None
            found = found.get(self.field, only)
        if isinstance(found, str | int) and not isinstance(found, bool):
            return Keys.ident(self, str(found).encode())
        raise Unreadable("bad-id", f"the key is {kind_of(found)}, not a text or a number")


def _member(name: str) -> Getter:
    def get(found: Any) -> object:  # noqa: ANN401 -- what `_decoded` returns
        return found.get(name, msgspec.UNSET)

    return get


def _with_moments(read: Callable[[object, str], int]) -> Callable[[object, str], int]:
    """Return what also reads the times that a schema says are such."""

    def read_any(given: object, field: str) -> int:
        if isinstance(given, datetime):
            return since_epoch(given)
        if isinstance(given, date):
            return since_epoch(datetime(given.year, given.month, given.day))  # noqa: DTZ001 -- in UTC
        return read(given, field)

    return read_any


_log = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 10.0
"""How long a batch waits for the registry before its stage polls again, and reads it anew."""
_PAUSE_SECONDS: Final = 0.5
_SILENT_SECONDS: Final = 5.0
_AT_ONCE: Final = 16
"""Schemas that are asked for together."""
_MOST_KNOWN: Final = 16 << 20
"""Characters of the schemas that are kept; decoders take some ten times as much."""
_MOST_REFUSED: Final = 10_000
_UNKNOWN_SECONDS: Final = 60.0
"""How long it counts that the registry has no schema of an id."""
_AGAIN: Final = 16
_AGAIN_SECONDS: Final = 1.0
"""So many of those are asked for again in this time: most ids that nobody has are garbage."""
_UNUSABLE_SECONDS: Final = 600.0
"""How long it counts that a schema can't be used. None changes, but the reason may be ours."""
_SAID: Final = 200
"""Characters of what is said about a schema: it may quote all of it."""

Fetch = Callable[[Sequence[Ident]], Sequence[Fetched | Exception]]
"""Asks for schemas; returns each, or `Unreadable`, `Away`, or `Denied`: see `Registry.fetch`."""


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


class Schemas:
    """The decoders of the schemas that were met, by the marks of values.

    Strangers choose the marks, and some of them the schemas: both are kept within bounds.
    """

    def __init__(
        self,
        fetch: Fetch,
        made: Callable[[Fetched], Decoder],
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        """Take what asks the registry, and what makes a decoder, or raises anything."""
        self._fetch = fetch
        self._made = made
        self._clock = clock
        self._pause = pause
        self.known: dict[bytes, Decoder] = {}
        """The decoders by marks: whoever is in a hurry looks here first."""
        self._lengths: dict[bytes, int] = {}
        self._refused: dict[bytes, tuple[Unreadable, float]] = {}
        """Why there is no decoder, and from when on the registry may be asked again."""
        self._again_at = 0.0
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
        if mark in self._refused:
            # An error that is raised again would keep the frames of each time.
            raise self._refused[mark][0].with_traceback(None)
        return self.known[mark]

    def _ask_once(self, mark: bytes) -> None:
        """Ask for a mark, unless the registry was away just now: many may be asked for in turn."""
        if self._silent is not None and self._clock() < self._silent[0]:
            raise self._silent[1].with_traceback(None)
        self._silent = None
        self._forget((mark,))
        away = self._ask([mark])
        if away is not None:
            self._silent = self._clock() + _SILENT_SECONDS, away
            raise away

    def prepare(self, marks: Iterable[bytes]) -> None:
        """Ask for what isn't known of these marks; wait some seconds if the registry is away.

        What the registry didn't have is asked for again after a while, a few at a time. Whether
        it answers then makes no difference to a document that could go on.

        Raises:
            Away: it still is, or there was more to ask for than can be in this time.
            Denied: the registry doesn't let us.
        """
        wanted = set(marks)
        self._forget(wanted)
        missing = sorted(wanted - self.known.keys())
        self._await([mark for mark in missing if mark not in self._refused])
        now = self._clock()
        if self._refused and now >= self._again_at:
            self._again_at = now + _AGAIN_SECONDS
            # The oldest are first.
            due = (one for one, (_, at) in self._refused.items() if at < now and one in wanted)
            self._ask(list(islice(due, _AGAIN)))

    def _forget(self, wanted: Collection[bytes]) -> None:
        """Forget what is more than may be kept, the oldest first, but nothing that is wanted."""
        excess = max(0, len(self._refused) - _MOST_REFUSED)
        for mark in list(islice((one for one in self._refused if one not in wanted), excess)):
            del self._refused[mark]
        total = sum(self._lengths.values())
        for mark in [one for one in self.known if one not in wanted]:
            if total <= _MOST_KNOWN:
                break
            del self.known[mark]
            total -= self._lengths.pop(mark)

    def _await(self, marks: list[bytes]) -> None:
        """Ask for marks until all are answered."""
        until = self._clock() + _WAIT_SECONDS
        waiting = False
        while marks:
            asked = marks[:_AT_ONCE]
            away = self._ask(asked)
            marks[:_AT_ONCE] = [
                mark for mark in asked if mark not in self.known and mark not in self._refused
            ]
            if away is not None:
                if not waiting:
                    _log.warning("%s; documents wait for it, and none is rejected", away)
                waiting = True
            elif waiting:
                waiting = False
                _log.info("the schema registry answers again")
            if marks and self._clock() > until:
                more = f"{len(marks)} more schemas are to be asked for; documents wait for them"
                raise away or Away(more)
            if away is not None:
                self._pause(_PAUSE_SECONDS)

    def _ask(self, marks: Sequence[bytes]) -> Away | None:
        """Keep the decoders of marks, or why there is none; return why some have no answer yet.

        Raises:
            Denied: the registry doesn't let us.
        """
        asked: dict[bytes, Ident] = {}
        for mark in marks:
            try:
                asked[mark] = id_of(mark)
            except Unreadable as error:
                self._refuse(mark, error, _UNUSABLE_SECONDS)
        away = None
        for mark, found in zip(asked, self._fetch([*asked.values()]), strict=True):
            if isinstance(found, Away):
                away = found
                if mark in self._refused:
                    self._refuse(mark, self._refused[mark][0], _UNKNOWN_SECONDS)
            elif isinstance(found, Unreadable):
                later = isinstance(found, Missing)
                self._refuse(mark, found, _UNKNOWN_SECONDS if later else _UNUSABLE_SECONDS)
            elif isinstance(found, Exception):
                raise found
            else:
                self._keep(mark, asked[mark], found)
        return away

    def _refuse(self, mark: bytes, why: Unreadable, seconds: float) -> None:
        self._refused.pop(mark, None)
        self._refused[mark] = why, self._clock() + seconds

    def _keep(self, mark: bytes, ident: Ident, fetched: Fetched) -> None:
        """Keep the decoder of a schema, or why there is none."""
        try:
            made = self._made(fetched)
        except Exception as error:  # noqa: BLE001 -- any: a stranger wrote the schema
            said = f"{named(ident)} can't be used: {type(error).__name__}: {error}"
            self._refuse(mark, Unreadable("no-schema", said[:_SAID]), _UNUSABLE_SECONDS)
            return
        self._refused.pop(mark, None)
        self.known[mark] = made
        self._lengths[mark] = len(fetched.text) + sum(len(text) for _, text in fetched.references)
        _log.info("%s (%s) is known now", named(ident), fetched.kind.lower())
