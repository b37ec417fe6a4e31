"""Documents with a schema in a registry: Avro, Protobuf, or JSON with a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from time import sleep
from typing import Any

import msgspec

from worker.bus import Away, Denied, Record, RecordBatch
from worker.fields import parse
from worker.formats.base import DocumentFormat, DocumentOptions, Documents
from worker.formats.json import Decode, JsonFormat, decoded, decoder_of
from worker.formats.json_fields import Field, Getter, getter
from worker.formats.keys import Keys
from worker.formats.registry.avro import AvroDecoder
from worker.formats.registry.client import Fetched, Registry
from worker.formats.registry.exchange import RegistryOptions
from worker.formats.registry.protobuf import ProtobufDecoder
from worker.formats.registry.schemas import Decoder, Fetch, Schemas
from worker.formats.registry.wanted import Wanted, wanted
from worker.formats.registry.wire_format import (
    ID_BYTES,
    Ident,
    mark_of,
    mark_or_none,
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
        needed = wanted(texts, paths)
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

    def _decoder_of(self, needed: Wanted | None) -> Callable[[Fetched], Decoder]:
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
