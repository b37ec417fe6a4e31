"""Protobuf by dynamic messages: classes are made from the schema, and only needed fields are read.

The library bounds the depth of messages, and the memory that it takes by the size of the value.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import UTC
from importlib import import_module
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from worker.formats.registry.proto_text import compiled
from worker.formats.registry.wanted import Wanted
from worker.formats.unreadable import Unreadable

__all__ = ["ProtobufDecoder"]

_KNOWN: Final = "google/protobuf/"
_MOMENT: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_DEEPEST: Final = 32
"""Most indexes of a message: one for each level at which it is declared."""
_FIRST: Final = (0,)

_Read = Callable[[Any], object]


class ProtobufDecoder:
    """Decodes values of one schema, which may have several messages, into dictionaries."""

    def __init__(
        self, schema: str, references: Sequence[tuple[str, str]], needed: Wanted | None
    ) -> None:
        """Take a file's descriptor in base64, or its text; by names, the files that it imports.

        ``needed`` are the fields to read; None: all.

        Raises:
            ValueError: the schema can't be used; the message says why.
        """
        self._needed = needed
        self._pool = descriptor_pool.DescriptorPool()
        if not _is_descriptor(schema):
            schema, references = compiled(schema, references)
        self._file = _file("value.proto", schema)
        files = {name: _file(name, text) for name, text in references}
        try:
            self._add(self._file, files)
        except TypeError as error:
            raise ValueError(str(error)) from None
        self._messages: dict[tuple[int, ...], tuple[type[Message], _Read]] = {}
        first = self._message(_FIRST)[0] if self._file.message_type else None
        self.names: Sequence[str] = [] if first is None else list(first.DESCRIPTOR.fields_by_name)

    def _add(
        self,
        file: descriptor_pb2.FileDescriptorProto,
        files: dict[str, descriptor_pb2.FileDescriptorProto],
    ) -> None:
        """Add a file to the pool, after those that it imports."""
        for name in file.dependency:
            if name in files:
                self._add(files.pop(name), files)
            elif name.startswith(_KNOWN) and not _has(self._pool, name):
                self._add(_well_known(name), files)
        self._pool.Add(file)

    def decode(self, value: bytes, start: int) -> object:
        """Return the needed fields of the message in a value from a position on.

        Fields that are not set are left out, except texts that can't be told from empty ones.

        Raises:
            Unreadable: it isn't what the schema says.
        """
        indexes, start = _indexes(value, start)
        made, read = self._message(indexes)
        message = made()
        try:
            message.ParseFromString(value[start:])
            return read(message)
        except (DecodeError, OverflowError, ValueError) as error:
            raise Unreadable(
                "not-by-schema", f"not what the Protobuf schema says: {str(error)[:100]}"
            ) from None

    def _message(self, indexes: tuple[int, ...]) -> tuple[type[Message], _Read]:
        """Return the class of a message of the file, and what reads it."""
        known = self._messages.get(indexes)
        if known is not None:
            return known
        declared: Any = self._file.message_type
        names = [self._file.package] if self._file.package else []
        for index in indexes:
            if not 0 <= index < len(declared):
                raise Unreadable("not-by-schema", f"the schema has no message with index {indexes}")
            names.append(declared[index].name)
            declared = declared[index].nested_type
        descriptor = self._pool.FindMessageTypeByName(".".join(names))
        needed = self._needed
        read = _all if needed is None or needed.whole else _object(descriptor, needed)
        made = message_factory.GetMessageClass(descriptor), read
        self._messages[indexes] = made
        return made


def _is_descriptor(schema: str) -> bool:
    """Return whether a schema is base64, as no text of a file is."""
    try:
        return bool(b64decode(schema, validate=True))
    except ValueError:
        return False


def _file(name: str, schema: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a file, in base64.

    Raises:
        ValueError: it is no such descriptor.
    """
    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(b64decode(schema, validate=True))
    except (ValueError, DecodeError):
        raise ValueError("it is no file's descriptor in base64") from None
    file.name = name
    return file


def _has(pool: descriptor_pool.DescriptorPool, name: str) -> bool:
    try:
        pool.FindFileByName(name)
    except KeyError:
        return False
    return True


def _well_known(name: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a file that comes with Protobuf.

    Raises:
        ValueError: there is none of this name.
    """
    module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
    try:
        found = import_module(module).DESCRIPTOR
    except ImportError:
        raise ValueError(f"it imports {name}, which is not a file of Protobuf") from None
    file = descriptor_pb2.FileDescriptorProto()
    found.CopyToProto(file)
    return file


def _indexes(value: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Return the indexes of the message in the file, and the position behind them.

    Raises:
        Unreadable: there are none.
    """
    if value[start : start + 1] == b"\0":
        return _FIRST, start + 1
    count, start = _varint(value, start)
    if not 0 < count <= _DEEPEST:
        raise Unreadable("not-by-schema", f"a message has {count} indexes")
    indexes = []
    for _ in range(count):
        index, start = _varint(value, start)
        indexes.append(index)
    return tuple(indexes), start


def _varint(value: bytes, start: int) -> tuple[int, int]:
    """Return a number of at most 5 bytes in zigzag, and the position behind it."""
    number = 0
    for place, byte in enumerate(value[start : start + 5]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 -- the last byte of a number
            return (number >> 1) ^ -(number & 1), start + place + 1
    raise Unreadable("not-by-schema", "the indexes of the message end too early")


def _object(descriptor: Descriptor, needed: Wanted) -> _Read:
    """Return what reads the needed fields of a message."""
    fields: list[tuple[str, bool, bool, _Read | None]] = []
    for name, part in needed.fields.items():
        field = descriptor.fields_by_name.get(name)
        if field is not None:
            fields.append((name, field.has_presence, part.text, _reader(field, part)))

    def read(message: Any) -> object:  # noqa: ANN401 -- its fields are those of the schema
        found = {}
        for name, tells, text, convert in fields:
            if tells and not message.HasField(name):
                continue
            value = getattr(message, name)
            if tells or text or value:
                found[name] = value if convert is None else convert(value)
        return found

    return read


def _reader(field: FieldDescriptor, needed: Wanted) -> _Read | None:
    """Return what reads a field's value; None if it is a plain one."""
    own = field.message_type
    if own is not None and own.GetOptions().map_entry:
        kept = _one(own.fields_by_name["value"], Wanted(whole=True))
        return lambda value: {str(key): _kept(kept, value[key]) for key in value}
    one = _one(field, needed)
    if not field.is_repeated:
        return one
    return list if one is None else lambda value: [one(each) for each in value]


def _one(field: FieldDescriptor, needed: Wanted) -> _Read | None:
    """Return what reads a value of a field, or one of its values; None if it is a plain one."""
    own = field.message_type
    if own is None:
        return None
    if own.full_name == _MOMENT:
        return _moment
    if own.full_name in _WRAPPERS:
        return lambda value: value.value
    return _all if needed.whole else _object(own, needed)


def _kept(read: _Read | None, value: object) -> object:
    return value if read is None else read(value)


def _moment(value: Any) -> object:  # noqa: ANN401 -- a Timestamp
    return value.ToDatetime(tzinfo=UTC)


def _all(message: Any) -> object:  # noqa: ANN401 -- its fields are those of the schema
    """Return the plain fields of a message that are set; others are there, but empty."""
    return {
        field.name: {} if field.message_type is not None or field.is_repeated else value
        for field, value in message.ListFields()
    }
