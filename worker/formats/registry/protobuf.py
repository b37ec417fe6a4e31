"""Protobuf by dynamic messages: classes are made from the schema, with the needed fields only.

A message takes room for every field that it has, however short its bytes are, so those that aren't
needed are left out of the schema. What imports are for is then mostly gone, too. The library bounds
the depth of messages.
"""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC
from functools import lru_cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message import DecodeError, Message

from worker.fields import FieldTree
from worker.formats.unreadable import Unreadable

_MOMENT: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_DEEPEST: Final = 32
"""Most indexes of a message: one for each level at which it is declared."""
_FIRST: Final = (0,)
_LONGEST_NAME: Final = 1_000
"""With the names that it is within, which each message has once more."""
_MOST_FILES: Final = 400

_Read = Callable[[Any], object]
_File = descriptor_pb2.FileDescriptorProto


class ProtobufDecoder:
    """Decodes values of one schema, which may have several messages, into dictionaries."""

    def __init__(
        self,
        schema: str,
        references: Sequence[tuple[str, str]],
        needed: FieldTree | None,
        *,
        by_name: bool = False,
    ) -> None:
        """Take a file's descriptor in base64, or its text; by names, the files that it imports.

        ``needed`` are the fields to read; None: the plain ones of the message itself. ``by_name``:
        values name their message, as Apicurio's do, rather than having its index.

        Raises:
            Exception: the schema can't be used; the message says why.
        """
        self._needed = needed
        self._by_name = by_name
        self._pool = descriptor_pool.DescriptorPool()
        if not _is_descriptor(schema):
            schema, references = compiled(schema, references)
        self._file = _file("value.proto", schema)
        declared = self._file.message_type
        self.names: Sequence[str] = [one.name for one in declared[0].field] if declared else []
        self._add({name: _file(name, text) for name, text in references})
        self._messages: dict[tuple[int, ...], tuple[type[Message], _Read]] = {}
        if declared:
            self._message(_FIRST)

    def _add(self, files: dict[str, _File]) -> None:
        """Add the file to the pool, after what it imports; what nobody has may not be needed."""
        needed = self._needed
        names = None if needed is None else set(_names(needed))
        files[self._file.name] = self._file
        graph: dict[str, list[str]] = {}
        left = list(files)
        while left:
            name = left.pop()
            if name in graph:
                continue
            own = known(name)
            if own is not None:
                files[name] = own
            elif name in files:
                _prune(files[name], names)
            graph[name] = list(files[name].dependency) if name in files else []
            if len(graph) > _MOST_FILES:
                raise ValueError(f"it takes more than {_MOST_FILES} files")
            left += graph[name]
        added: list[str] = []
        for name in TopologicalSorter(graph).static_order():
            if name not in files:
                continue
            file = files[name]
            file.dependency[:] = added
            del file.public_dependency[:], file.weak_dependency[:]
            try:
                self._pool.Add(file)
            except TypeError as error:
                away = [one for one in graph if one not in files]
                said = f"{error}" + (f" (nobody registered {', '.join(away[:3])})" if away else "")
                raise ValueError(said) from None
            added.append(name)

    def decode(self, value: bytes, start: int) -> object:
        """Return the needed fields of the message in a value from a position on.

        Fields that are not set are left out, except texts that can't be told from empty ones.

        Raises:
            Unreadable: it isn't what the schema says.
        """
        indexes, start = (self._named if self._by_name else _indexes)(value, start)
        made, read = self._message(indexes)
        message = made()
        try:
            message.ParseFromString(value[start:])
            return read(message)
        except Exception as error:  # noqa: BLE001 -- any: both the value and its schema are a stranger's
            raise Unreadable(
                "not-by-schema", f"not what the Protobuf schema says: {str(error)[:100]}"
            ) from None

    def _message(self, indexes: tuple[int, ...]) -> tuple[type[Message], _Read]:
        """Return the class of a message of the file, and what reads it."""
        before = self._messages.get(indexes)
        if before is not None:
            return before
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

    def _named(self, value: bytes, start: int) -> tuple[tuple[int, ...], int]:
        """Return the index of the message that a value names, and the position behind the name.

        Apicurio's serializers write a message of one field, the name without its package, behind
        its length: 0 if there is none.
        """
        length, start = _varint(value, start)
        end = start + length
        if length == 0:
            return _FIRST, end
        name = value[start + 2 : end]
        if end > len(value) or value[start : start + 2] != bytes((0x0A, len(name) & 0x7F)):
            raise Unreadable("not-by-schema", "the name of the message is none")
        for index, declared in enumerate(self._file.message_type):
            if declared.name.encode() == name:
                return (index,), end
        raise Unreadable("not-by-schema", f"the schema has no message {name[:100]!r}")


def _is_descriptor(schema: str) -> bool:
    """Return whether a schema is base64, as no text of a file is."""
    try:
        return bool(b64decode(schema, validate=True))
    except ValueError:
        return False


def _file(name: str, schema: str) -> _File:
    """Return the descriptor of a file, in base64.

    Raises:
        ValueError: it is no such descriptor.
    """
    file = _File()
    try:
        file.ParseFromString(b64decode(schema, validate=True))
    except (ValueError, DecodeError):
        raise ValueError("it is no file's descriptor in base64") from None
    file.name = name
    return file


def _names(needed: FieldTree) -> Iterable[str]:
    """Return the names of all fields that are needed, on any level."""
    for name, part in needed.fields.items():
        yield name
        yield from _names(part)


def _prune(file: _File, names: Collection[str] | None) -> None:
    """Leave only fields with these names; None: all, and what is in messages as bytes."""
    del file.extension[:], file.service[:]
    left = [(message, len(file.package)) for message in file.message_type]
    while left:
        message, above = left.pop()
        length = above + 1 + len(message.name)
        if length > _LONGEST_NAME:
            raise ValueError(f"it has a name of more than {_LONGEST_NAME} characters")
        left += [(one, length) for one in message.nested_type]
        del message.extension[:], message.extension_range[:]
        del message.reserved_range[:], message.reserved_name[:]
        if not message.options.map_entry:
            _prune_message(message, names)


def _prune_message(message: DescriptorProto, names: Collection[str] | None) -> None:
    kept = []
    for field in message.field:
        if names is not None and field.name not in names:
            continue
        if names is None and field.type == FieldDescriptorProto.TYPE_GROUP:
            continue
        if names is None and field.type == FieldDescriptorProto.TYPE_MESSAGE:
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.ClearField("type_name")
        kept.append(FieldDescriptorProto.FromString(field.SerializeToString()))
    used = sorted({field.oneof_index for field in kept if field.HasField("oneof_index")})
    places = {index: place for place, index in enumerate(used)}
    for field in kept:
        if field.HasField("oneof_index"):
            field.oneof_index = places[field.oneof_index]
    choices = [message.oneof_decl[index].name for index in used]
    del message.field[:], message.oneof_decl[:]
    message.field.extend(kept)
    for choice in choices:
        message.oneof_decl.add(name=choice)


def _indexes(value: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Return the indexes of the message in the file, and the position behind them.

    Raises:
        Unreadable: there are none.
    """
    if value[start : start + 1] == b"\0":
        return _FIRST, start + 1
    count, start = _zigzag(value, start)
    if not 0 < count <= _DEEPEST:
        raise Unreadable("not-by-schema", f"a message has {count} indexes")
    indexes = []
    for _ in range(count):
        index, start = _zigzag(value, start)
        indexes.append(index)
    return tuple(indexes), start


def _zigzag(value: bytes, start: int) -> tuple[int, int]:
    """Return a number of either sign, and the position behind it."""
    number, start = _varint(value, start)
    return (number >> 1) ^ -(number & 1), start


def _varint(value: bytes, start: int) -> tuple[int, int]:
    """Return a number of at most 5 bytes, and the position behind it."""
    number = 0
    for place, byte in enumerate(value[start : start + 5]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 -- the last byte of a number
            return number, start + place + 1
    raise Unreadable("not-by-schema", "the indexes of the message end too early")


def _object(descriptor: Descriptor, needed: FieldTree) -> _Read:
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


def _reader(field: FieldDescriptor, needed: FieldTree) -> _Read | None:
    """Return what reads a field's value; None if it is a plain one."""
    own = field.message_type
    if own is not None and own.GetOptions().map_entry:
        kept = _one(own.fields_by_name["value"], FieldTree(whole=True))
        return lambda value: {str(key): _kept(kept, value[key]) for key in value}
    one = _one(field, needed)
    if not field.is_repeated:
        return one
    return list if one is None else lambda value: [one(each) for each in value]


def _one(field: FieldDescriptor, needed: FieldTree) -> _Read | None:
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


_GOOGLE: Final = re.compile(r"(google/(?:api|protobuf|rpc|type)/[a-z_]{1,40})\.proto")
"""Of Protobuf itself, and of googleapis-common-protos."""
_CONFLUENT: Final = re.compile(r"(confluent/(?:meta|type/[a-z_]{1,40}))\.proto")
_CLIENT: Final = "confluent_kafka.schema_registry"
"""The package with Confluent's own files. It isn't imported: that takes more packages."""


def known(name: str) -> FileDescriptorProto | None:
    """Return the descriptor of a file that every client has; None if it is none of these."""
    found = _descriptor(name) if _GOOGLE.fullmatch(name) or _CONFLUENT.fullmatch(name) else None
    return None if found is None else FileDescriptorProto.FromString(found)


@lru_cache(maxsize=256)
def _descriptor(name: str) -> bytes | None:
    path = name.removesuffix(".proto") + "_pb2"
    try:
        module = _beside_client(path) if name.startswith("confluent/") else _imported(path)
    except (ImportError, OSError):
        return None
    return bytes(module.DESCRIPTOR.serialized_pb)


def _imported(path: str) -> Any:  # noqa: ANN401 -- a module
    return import_module(path.replace("/", "."))


def _beside_client(path: str) -> Any:  # noqa: ANN401 -- a module
    client = find_spec(_CLIENT)
    if client is None or client.origin is None:
        raise ImportError(_CLIENT)
    spec = spec_from_file_location(
        path.replace("/", "."), Path(client.origin).parent / f"{path}.py"
    )
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_MAIN: Final = "value.proto"
_SECONDS: Final = 10
_PLACE: Final = re.compile(r"\S+\.proto:")
"""How a line begins that says what is wrong."""
_IMPORT: Final = re.compile(r'\bimport\s+(?:public\s+|weak\s+)?["\']([^"\'\s]{1,200})["\']')


def compiled(text: str, references: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """Return a file's descriptor in base64, and by names those of the files that it imports.

    Takes the texts of all of them.

    Raises:
        ValueError: they can't be compiled; the message says why.
    """
    if find_spec("grpc_tools") is None:
        raise ValueError("the registry returns it as text, which takes more: grpcio-tools")
    try:
        with TemporaryDirectory(prefix="neardup-proto-") as folder:
            return _compiled(Path(folder), [*references, (_MAIN, text)])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"protoc: {error}") from None


def _compiled(folder: Path, files: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    shared = _known(text for _, text in files)
    (folder / "known").write_bytes(FileDescriptorSet(file=shared.values()).SerializeToString())
    for name, text in files:
        if name in shared:
            continue
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"it imports {name}, which is no name of a file")
        target = folder / "in" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    out = folder / "out"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder / 'in'}"]
    command += [f"--descriptor_set_in={folder / 'known'}"]
    command += ["--include_imports", f"--descriptor_set_out={out}", _MAIN]
    # In a process of its own: what it says is the reason, and it has an end.
    done = subprocess.run(  # noqa: S603 -- no shell, and names are checked
        command, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode:
        errors = done.stderr.replace(f"{folder / 'in'}/", "").splitlines()
        said = [line for line in errors if _PLACE.match(line)]
        raise ValueError(f"protoc: {said[0] if said else f'exit status {done.returncode}'}")
    made = FileDescriptorSet.FromString(out.read_bytes()).file
    texts = {one.name: b64encode(one.SerializeToString()).decode() for one in made}
    return texts.pop(_MAIN), list(texts.items())


def _known(texts: Iterable[str]) -> dict[str, FileDescriptorProto]:
    """Return what texts import that every client has, with what that imports."""
    found: dict[str, FileDescriptorProto] = {}
    left = [name for text in texts for name in _IMPORT.findall(text)]
    while left:
        name = left.pop()
        file = None if name in found else known(name)
        if file is not None:
            found[name] = file
            left += file.dependency
    return found
