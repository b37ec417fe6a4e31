"""Avro by fastavro: only the fields that are needed are built."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader
from fastavro._read_py import schemaless_reader as bounded_reader
from fastavro.schema import SchemaParseException
from fastavro.types import Schema

from worker.formats.registry.wanted import Wanted
from worker.formats.registry.wire_format import NOT_BY_SCHEMA
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
_ERRORS: Final = (EOFError, LookupError, TypeError, ValueError, OverflowError)
"""What fastavro raises about bytes that aren't what the schema says."""

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
        # The compiled reader calls itself once for each level, and would overflow the stack.
        self._read = bounded_reader if shape.recursive else schemaless_reader
        self._reader: Schema | None = None
        if needed is not None:
            try:
                self._reader = parse_schema(_Pruned(named).of(self._schema, needed))
            except _TwiceError:
                self._reader = None
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
            found: object = self._read(stream, self._schema, self._reader)
        except RecursionError:
            raise Unreadable("too-deep", "the Avro value is nested too deeply") from None
        except IndexError:
            said = "the value ends too early, or has an index that the schema doesn't have"
            raise Unreadable(NOT_BY_SCHEMA, f"not what the Avro schema says: {said}") from None
        except _ERRORS as error:
            said = str(error)[:100] or "the value ends too early"
            raise Unreadable(NOT_BY_SCHEMA, f"not what the Avro schema says: {said}") from None
        left = len(value) - stream.tell()
        if left:
            raise Unreadable(
                NOT_BY_SCHEMA, f"not what the Avro schema says: {left} bytes are left over"
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
        full = self._named.get(schema) if isinstance(schema, str) else schema
        if full is None:
            return schema
        match full["type"]:
            case "array":
                return {**full, "items": self.of(full["items"], needed)}
            case "map":
                return {**full, "values": self.of(full["values"], _ALL)}
            case "record" | "error":
                return self._once(full, needed) or self._record(full, needed)
            case "enum" | "fixed":
                return self._once(full, _ALL) or full
            case _:
                return full

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
        if isinstance(schema, list):
            for one in schema:
                self.look(one, above)
            return False
        full = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(full, str):
            return full == "null"
        match full["type"]:
            case "record" | "error":
                name = full["name"]
                if name in above:
                    self.recursive = True
                    return False
                if name not in self._weightless:
                    within = above | {name}
                    fields = [self.look(one["type"], within) for one in full["fields"]]
                    self._weightless[name] = all(fields)
                return self._weightless[name]
            case "array":
                if self.look(full["items"], above):
                    raise ValueError("it has an array whose elements take no bytes")
                return False
            case "map":
                self.look(full["values"], above)
                return False
            case "fixed":
                return full["size"] == 0
            case kind:
                return kind == "null"


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
