"""Documents as JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.fields import kind_of, time_of, utf8
from worker.formats.members import members, without_members
from worker.formats.unreadable import NULL_TEXT, Unreadable
from worker.wire.headers import DUPLICATE_FIRST, DUPLICATE_OF

__all__ = ["JsonFormat"]


_OWN = (DUPLICATE_OF, DUPLICATE_FIRST)
_SIGNS = (*(name.encode() for name in _OWN), b"\\u")
"""One of these is in every payload that has a member of neardup's: nothing else can spell it."""


class _Probe(msgspec.Struct, gc=False):
    """Detects whether a JSON object already has one of neardup's members."""

    duplicate_of: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    duplicate_first: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_probe = msgspec.json.Decoder(_Probe)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class JsonFormat(DocumentFormat):
    """JSON objects with members for the id, the text and the time.

    A member ``a.b`` is the one of that name, or else ``b`` in the object ``a``.
    """

    def __init__(self, options: DocumentOptions) -> None:
        """Create decoders that skip all members except those in ``options``."""
        super().__init__(options)
        members = [options.id_field, *options.text_fields]
        if options.time_field is not None:
            members.append(options.time_field)
        self._decode, self._members = _reader(members)
        self._id_of = self._members[options.id_field]
        self._texts = [(member, self._members[member]) for member in options.text_fields]
        self._time = (
            (options.time_field, self._members[options.time_field])
            if options.time_field is not None
            else None
        )
        # Finds ids even if the text can't be decoded.
        self._deleted_field = options.deleted_id_field or options.id_field
        self._decode_id, found = _reader([options.id_field, self._deleted_field])
        self._lone_id, self._deleted_id = found[options.id_field], found[self._deleted_field]

    def excerpt(self, value: bytes) -> str:
        """See `DocumentFormat`."""
        try:
            return self._text(_decoded(self._decode, value))
        except (Unreadable, UnicodeDecodeError):
            return value.decode(errors="replace")

    def fields(self, value: bytes) -> Sequence[str] | None:
        """See `DocumentFormat`."""
        _check_utf8(value)
        found: dict[str, msgspec.Raw] = _decoded(_members.decode, value)
        return list(found)

    def having(self, value: bytes) -> Collection[str]:
        """See `DocumentFormat`."""
        payload = _decoded(self._decode, value)
        return [member for member, get in self._members.items() if _given(get(payload)) is not None]

    def can_splice(self, value: bytes) -> bool:
        """Return whether a payload is an object."""
        if not _begins_object(value):
            return False
        try:
            _probe.decode(value)
        except msgspec.DecodeError:
            return False
        except RecursionError:
            # Nested so deeply that it could be read only where the stack was shallower.
            return members(value) is not None
        return True

    def splice(self, value: bytes, matches: bytes, first: bytes) -> bytes:
        """Return an object with neardup's members as its last, and as the only ones so named."""
        if _has_own(value):
            value = without_members(value, _OWN)
        brace = value.rindex(b"}")
        comma = b"" if value[:brace].rstrip().endswith(b"{") else b","
        added = b'%s"%s":%s,"%s":%s' % (
            comma, DUPLICATE_OF.encode(), matches, DUPLICATE_FIRST.encode(), first
        )  # fmt: skip
        return value[:brace] + added + value[brace:]

    def _parse(self, value: bytes) -> tuple[object, str, int | None]:
        if not value.isascii():
            _check_utf8(value)  # The decoder doesn't check members that it skips.
        payload = _decoded(self._decode, value)
        text = self._text(payload)
        time = None
        if self._time is not None:
            member, get = self._time
            given = _given(get(payload))
            if given is not None:
                time = time_of(given, member)
        return _given(self._id_of(payload)), text, time

    def _find_id(self, value: bytes) -> object:
        try:
            return _given(self._lone_id(self._decode_id(value)))
        except (ValueError, RecursionError):
            return None

    def _find_deleted_id(self, value: bytes) -> object:
        if self._options.deletes != "forget":
            return None
        try:
            self._text(_decoded(self._decode, value))
        except Unreadable as error:
            if error.code != NULL_TEXT:
                return None
        else:
            return None
        try:
            return _given(self._deleted_id(self._decode_id(value)))
        except (ValueError, RecursionError):
            return None

    def _text(self, payload: Any) -> str:  # noqa: ANN401 -- depends on the decoder
        parts = []
        null = None
        for member, get in self._texts:
            part = get(payload)
            if part is msgspec.UNSET:
                continue
            if part is None:
                null = member
                continue
            if not isinstance(part, str):
                raise Unreadable(
                    "text-wrong-type", f"field {member!r} is {kind_of(part)}, not a string"
                )
            parts.append(part)
        if not parts:
            if null is not None:
                raise Unreadable("null-text", f"{_null_in(payload, null)!r} is null")
            members = ", ".join(repr(member) for member, _ in self._texts)
            raise Unreadable("no-text", f"no field {members}")
        return parts[0] if len(parts) == 1 else "\n".join(parts)


_Getter: TypeAlias = Callable[[object], object]


def _reader(members: Sequence[str]) -> tuple[Callable[[bytes], Any], dict[str, _Getter]]:
    """Return a decoder that skips all other members, and a getter for each of ``members``."""
    heads = (member.partition(".")[0] for member in members)
    attribute = {name: f"member{n}" for n, name in enumerate(dict.fromkeys([*members, *heads]))}
    names = {name: member for member, name in attribute.items()}
    payload = msgspec.defstruct(
        "Payload", [(name, object, msgspec.UNSET) for name in names], rename=names.get, gc=False
    )
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(payload).decode
    return decode, {member: _getter(member, attribute) for member in members}


def _getter(member: str, attribute: Mapping[str, str]) -> _Getter:
    """Return what finds a member, or else follows the path that its name is."""
    plain: _Getter = attrgetter(attribute[member])
    head, *path = member.split(".")
    if not path:
        return plain
    first: _Getter = attrgetter(attribute[head])

    def get(payload: object) -> object:
        given = plain(payload)
        if _given(given) is not None:
            return given
        found = first(payload)
        for name in path:
            if found is None:
                break  # What is in a null is null.
            found = found.get(name, msgspec.UNSET) if isinstance(found, dict) else msgspec.UNSET
        return given if found is msgspec.UNSET else found

    return get


def _null_in(payload: Any, member: str) -> str:  # noqa: ANN401 -- depends on the decoder
    """Return which member is null, of a member that is null or in one that is."""
    found: object = dict(
        zip(payload.__struct_encode_fields__, msgspec.structs.astuple(payload), strict=True)
    )
    names = member.split(".")
    for depth, name in enumerate(names, 1):
        found = found.get(name, msgspec.UNSET) if isinstance(found, dict) else msgspec.UNSET
        if found is None:
            return ".".join(names[:depth])
    return member


def _decoded(decode: Callable[[bytes], Any], value: bytes) -> Any:  # noqa: ANN401 -- depends on the decoder
    try:
        return decode(value)
    except msgspec.ValidationError as error:
        if _begins_object(value):
            # A number outside the range of all number types.
            raise Unreadable("not-json", str(error)) from None
        if value.strip() == b"null":
            raise Unreadable("null-text", "the JSON value is null") from None
        raise Unreadable("not-an-object", "the JSON value is not an object") from None
    except RecursionError:
        raise Unreadable("too-deep", "the JSON value is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise Unreadable("not-json", str(error)) from None


def _given(value: object) -> object:
    """Return a member's value; None also if the payload doesn't have the member."""
    return None if value is msgspec.UNSET else value


def _check_utf8(value: bytes) -> None:
    """Check that a payload is UTF-8.

    Raises:
        Unreadable: it is not. If it doesn't begin like an object either, it is no JSON at all.
    """
    try:
        utf8(value)
    except Unreadable:
        if _begins_object(value):
            raise
        raise Unreadable("not-json", f"the payload begins with byte 0x{value[0]:02x}") from None


def _has_own(value: bytes) -> bool:
    """Return whether an object has, or may have, one of neardup's members itself."""
    if not any(sign in value for sign in _SIGNS):
        return False
    try:
        found = _probe.decode(value)
    except RecursionError:
        return True
    return not (found.duplicate_of is msgspec.UNSET and found.duplicate_first is msgspec.UNSET)


def _begins_object(value: bytes) -> bool:
    return value.lstrip(b" \t\r\n").startswith(b"{")
