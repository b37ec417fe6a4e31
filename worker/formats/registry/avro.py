"""Avro by fastavro: only the fields that are needed are built.

A stranger may have written the schema as well as the value. What fastavro does for a value is
bounded by its bytes only under the bounds on schemas that are here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, Final, NamedTuple

from fastavro import parse_schema
from fastavro._read import _read_data as read_data  # type: ignore[attr-defined]  # compiled
from fastavro._read_py import read_data as read_data_bounded
from fastavro.io.binary_decoder import BinaryDecoder
from fastavro.types import Schema

from worker.fields import FieldTree
from worker.formats.unreadable import Unreadable

_ALL: Final = FieldTree(whole=True)
_DEEPEST: Final = 64
"""Types within one another, also through their names: readers call themselves for each."""
_DEEPEST_TEXT: Final = 4 * _DEEPEST
"""Objects and arrays within one another in a schema's text."""
_LONGEST_NAME: Final = 1_000
"""Each type in a namespace has the whole name of that."""
_MOST_BRANCHES: Final = 1_000
_FEW_BRANCHES: Final = 16
"""A reader's schema has a union of at most these: it is searched for each value."""
_MOST_FREE: Final = 16
"""Values in a record that take no bytes: an array may have such a record for each of its bytes."""
_TOO_DEEP: Final = f"it has more than {_DEEPEST} types within one another"
_MOMENTS: Final = frozenset((
    "date",
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
))  # fmt: skip
"""Logical types that are read as such; what has another one is what it is stored as."""
_IGNORED: Final = frozenset(("doc", "default", "order"))
"""What only readers with another schema need, or people."""
_RECORDS: Final = frozenset(("record", "error"))

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

    def __init__(self, schema: str, references: Sequence[str], needed: FieldTree | None) -> None:
        """Parse a schema, and those that it refers to, each after what it refers to itself.

        ``needed`` are the fields to decode; None: those of the outermost record.

        Raises:
            Exception: the schema can't be used; the message says why.
        """
        named: _Named = {}
        for one in references:
            parse_schema(_stored(json.loads(one)), named)
        self._schema = parse_schema(_stored(json.loads(schema)), named)
        shape = _Shape(named)
        shape.look(self._schema, frozenset())
        self._recursive = shape.recursive
        top = named.get(self._schema) if isinstance(self._schema, str) else self._schema
        listed = top.get("fields", ()) if isinstance(top, dict) else ()
        self.names: Sequence[str] = [one["name"] for one in listed]
        if needed is None and self.names:
            needed = FieldTree(fields=dict.fromkeys(self.names, _ALL))
        self._reader: Schema | None = None
        readers: _Named = {}
        if needed is not None:
            with suppress(_UnprunedError):
                self._reader = parse_schema(_Pruned(named).of(self._schema, needed), readers)
        self._named = {"writer": named, "reader": readers}

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
        except Exception as error:  # noqa: BLE001 -- any: both the value and its schema are a stranger's
            said = str(error)[:100] or "the value ends too early"
            raise Unreadable("not-by-schema", f"not what the Avro schema says: {said}") from None
        left = len(value) - stream.tell()
        if left:
            raise Unreadable(
                "not-by-schema", f"not what the Avro schema says: {left} bytes are left over"
            )
        return found


class _UnprunedError(Exception):
    """A schema can't be pruned."""


class _Pruned:
    """Leaves out of a schema what isn't needed."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._given: dict[str, FieldTree] = {}

    def of(self, schema: Any, needed: FieldTree) -> Any:  # noqa: ANN401 -- JSON
        """Return a schema with no other fields than those that are needed.

        A record that is needed as a whole has none: it is no text, no id, and no time.

        Raises:
            _UnprunedError: it would have to define a type twice, or has a large union.
        """
        if isinstance(schema, list):
            if len(schema) > _FEW_BRANCHES:
                raise _UnprunedError
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

    def _once(self, full: Mapping[str, Any], needed: FieldTree) -> str | None:
        """Return the name of a type that has been defined; otherwise note that it is."""
        name: str = full["name"]
        if name not in self._given:
            self._given[name] = needed
            return None
        if self._given[name] != needed:
            raise _UnprunedError
        return name

    def _record(self, full: Mapping[str, Any], needed: FieldTree) -> dict[str, Any]:
        fields = [
            {"name": one["name"], "type": self.of(one["type"], needed.fields[one["name"]])}
            for one in full["fields"]
            if one["name"] in needed.fields
        ]
        return {"type": full["type"], "name": full["name"], "fields": fields}


class _Size(NamedTuple):
    """What a value of a schema may come to.

    ``height`` counts the types within one another, ``free`` the values in it that take no bytes;
    ``weightless`` is whether all of it takes none.
    """

    height: int
    free: int
    weightless: bool


class _Shape:
    """Finds out what values of a schema may come to."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._sizes: dict[str, _Size] = {}
        self.recursive = False

    def look(self, schema: Any, above: frozenset[str]) -> _Size:  # noqa: ANN401 -- JSON
        """Look at a schema within records with these names.

        Raises:
            ValueError: a short value may come to too many values, or be too deep for the reader.
        """
        full = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(full, list):
            if len(full) > _MOST_BRANCHES:
                raise ValueError(f"it has a union of more than {_MOST_BRANCHES} types")
            found = [self.look(one, above) for one in full]
            # Which one it is takes a byte.
            return _higher(found, free=0, weightless=False)
        kind = full if isinstance(full, str) else full["type"]
        if kind in _RECORDS:
            return self._record(full, above)
        if kind in {"array", "map"}:
            each = self.look(full["items" if kind == "array" else "values"], above)
            if kind == "array" and each.weightless:
                raise ValueError("it has an array whose elements take no bytes")
            return _higher([each], free=0, weightless=False)
        nothing = kind == "null" or (kind == "fixed" and full["size"] == 0)
        return _Size(1, int(nothing), nothing)

    def _record(self, full: Mapping[str, Any], above: frozenset[str]) -> _Size:
        name = full["name"]
        if name in above:
            self.recursive = True
            return _Size(1, 0, weightless=False)
        if len(above) > _DEEPEST:
            raise ValueError(_TOO_DEEP)
        if name not in self._sizes:
            fields = [self.look(one["type"], above | {name}) for one in full["fields"]]
            nothing = all(one.weightless for one in fields)
            free = sum(one.free for one in fields) + nothing
            if free > _MOST_FREE:
                raise ValueError(f"it has more than {_MOST_FREE} values that take no bytes")
            self._sizes[name] = _higher(fields, free=free, weightless=nothing)
        return self._sizes[name]


def _higher(within: Sequence[_Size], *, free: int, weightless: bool) -> _Size:
    height = 1 + max((one.height for one in within), default=0)
    if height > _DEEPEST:
        raise ValueError(_TOO_DEEP)
    return _Size(height, free, weightless)


def _stored(schema: Any, depth: int = 0) -> Any:  # noqa: ANN401 -- JSON
    """Return a schema without what isn't needed, and logical types except those of moments.

    Raises:
        ValueError: it is nested too deeply, or has too long a name.
    """
    if depth > _DEEPEST_TEXT:
        raise ValueError("it is nested too deeply")
    if isinstance(schema, list):
        return [_stored(one, depth + 1) for one in schema]
    if isinstance(schema, dict):
        names = schema.get("name"), schema.get("namespace")
        if any(isinstance(one, str) and len(one) > _LONGEST_NAME for one in names):
            raise ValueError(f"it has a name of more than {_LONGEST_NAME} characters")
        return {
            name: _stored(value, depth + 1)
            for name, value in schema.items()
            if name not in _IGNORED and (name != "logicalType" or value in _MOMENTS)
        }
    return schema
