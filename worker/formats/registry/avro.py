"""Avro by fastavro: only the fields that are needed are built."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, Final

from fastavro import parse_schema
from fastavro._read import _read_data as read_data  # type: ignore[attr-defined]  # compiled
from fastavro._read_py import read_data as read_data_bounded
from fastavro.io.binary_decoder import BinaryDecoder
from fastavro.schema import SchemaParseException
from fastavro.types import Schema

from worker.formats.registry.wanted import Wanted
from worker.formats.unreadable import Unreadable

__all__ = ["AvroDecoder"]

_ALL: Final = Wanted(whole=True)
_MOMENTS: Final = frozenset((
    "date",
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
))  # fmt: skip
"""Logical types that are read as such; what has another one is what it is stored as."""
_RECORDS: Final = frozenset(("record", "error"))
_ERRORS: Final = (EOFError, LookupError, TypeError, ValueError, OverflowError)
"""What fastavro raises about bytes that aren't what the schema says."""

_OPTIONS: Final = {
    "return_record_name": False,
    "return_record_name_override": False,
    "return_named_type": False,
    "return_named_type_override": False,
    "handle_unicode_errors": "strict",
}
"""The defaults of `fastavro.schemaless_reader`, which reads no union of types from references."""

_Named = dict[str, Any]
"""The definitions of types by their full names."""


class AvroDecoder:
    """Decodes values of one schema into dictionaries, or into what else the schema is of."""

    def __init__(self, schema: str, references: Sequence[str], needed: Wanted | None) -> None:
        """Parse a schema, and those that it refers to, each after what it refers to itself.

        ``needed`` are the fields to decode; None: all.

        Raises:
            ValueError: the schema can't be used; the message says why.
        """
        named: _Named = {}
        try:
            for one in references:
                parse_schema(_stored(json.loads(one)), named)
            self._schema = parse_schema(_stored(json.loads(schema)), named)
        except (SchemaParseException, RecursionError, *_ERRORS) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        shape = _Shape(named)
        shape.look(self._schema, frozenset())
        self._recursive = shape.recursive
        self._reader: Schema | None = None
        readers: _Named = {}
        if needed is not None:
            with suppress(_TwiceError):
                self._reader = parse_schema(_Pruned(named).of(self._schema, needed), readers)
        self._named = {"writer": named, "reader": readers}
        top = named.get(self._schema) if isinstance(self._schema, str) else self._schema
        listed = top.get("fields", ()) if isinstance(top, dict) else ()
        self.names: Sequence[str] = [one["name"] for one in listed]

    def decode(self, value: bytes, start: int) -> object:
        """Return what a value holds from a position on.

        Raises:
            Unreadable: it isn't what the schema says.
        """
        stream = BytesIO(value)
        stream.seek(start)
        try:
            rest = (self._schema, self._named, self._reader, _OPTIONS)
            if self._recursive:
                # The compiled reader calls itself for each level, and would overflow the stack.
                decoder = BinaryDecoder(stream)  # type: ignore[no-untyped-call]
                found: object = read_data_bounded(decoder, *rest)  # type: ignore[no-untyped-call]
            else:
                found = read_data(stream, *rest)
        except RecursionError:
            raise Unreadable("too-deep", "the Avro value is nested too deeply") from None
        except IndexError:
            said = "the value ends too early, or has an index that the schema doesn't have"
            raise Unreadable("not-by-schema", f"not what the Avro schema says: {said}") from None
        except _ERRORS as error:
            said = str(error)[:100] or "the value ends too early"
            raise Unreadable("not-by-schema", f"not what the Avro schema says: {said}") from None
        left = len(value) - stream.tell()
        if left:
            raise Unreadable(
                "not-by-schema", f"not what the Avro schema says: {left} bytes are left over"
            )
        return found


class _TwiceError(Exception):
    """A type is needed twice, with different fields: a schema can define it only once."""


class _Pruned:
    """Leaves out of a schema what isn't needed."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._given: dict[str, Wanted] = {}

    def of(self, schema: Any, needed: Wanted) -> Any:  # noqa: ANN401 -- JSON
        """Return a schema with no other fields than those that are needed.

        Raises:
            _TwiceError: it would have to define a type twice.
        """
        if isinstance(schema, list):
            return [self.of(one, needed) for one in schema]
        full = self._named.get(schema, {"type": schema}) if isinstance(schema, str) else schema
        kind = full["type"]
        if kind in _RECORDS:
            return self._once(full, needed) or self._record(full, needed)
        if kind in {"enum", "fixed"}:
            return self._once(full, _ALL) or full
        if kind == "array":
            return {**full, "items": self.of(full["items"], needed)}
        return {**full, "values": self.of(full["values"], _ALL)} if kind == "map" else full

    def _once(self, full: Mapping[str, Any], needed: Wanted) -> str | None:
        """Return the name of a type that has been defined; otherwise note that it is."""
        name: str = full["name"]
        if name not in self._given:
            self._given[name] = needed
            return None
        if self._given[name] != needed:
            raise _TwiceError(name)
        return name

    def _record(self, full: Mapping[str, Any], needed: Wanted) -> dict[str, Any]:
        fields = [
            {
                **one,
                "type": self.of(one["type"], _ALL if needed.whole else needed.fields[one["name"]]),
            }
            for one in full["fields"]
            if needed.whole or one["name"] in needed.fields
        ]
        return {"type": full["type"], "name": full["name"], "fields": fields}


class _Shape:
    """Finds out whether values of a schema can be nested without end, or grow from nothing."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._weightless: dict[str, bool] = {}
        self.recursive = False

    def look(self, schema: Any, above: frozenset[str]) -> bool:  # noqa: ANN401 -- JSON
        """Look at a schema within records with these names; return whether it takes no bytes.

        Raises:
            ValueError: an array has elements that take no bytes: a short value may have any number.
        """
        full = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(full, list):
            for one in full:
                self.look(one, above)
            return False
        kind = full if isinstance(full, str) else full["type"]
        if kind in _RECORDS:
            return self._record(full, above)
        if kind == "array" and self.look(full["items"], above):
            raise ValueError("it has an array whose elements take no bytes")
        if kind == "map":
            self.look(full["values"], above)
        return kind == "null" or (kind == "fixed" and full["size"] == 0)

    def _record(self, full: Mapping[str, Any], above: frozenset[str]) -> bool:
        name = full["name"]
        if name in above:
            self.recursive = True
            return False
        if name not in self._weightless:
            fields = [self.look(one["type"], above | {name}) for one in full["fields"]]
            self._weightless[name] = all(fields)
        return self._weightless[name]


def _stored(schema: Any) -> Any:  # noqa: ANN401 -- JSON
    """Return a schema without logical types, except those of moments."""
    if isinstance(schema, list):
        return [_stored(one) for one in schema]
    if isinstance(schema, dict):
        return {
            name: _stored(value)
            for name, value in schema.items()
            if name != "logicalType" or value in _MOMENTS
        }
    return schema
