"""Documents as JSON objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET

from lsh._core import read_payloads
from lsh.index import NO_TIME
from worker.bus import RecordBatch
from worker.fields import Path, Step, parse
from worker.formats.base import NO_TIMESTAMP, DocumentFormat, DocumentOptions, Documents
from worker.formats.times import FIRST_TIME, LAST_TIME, time_reader
from worker.formats.unreadable import NULL_TEXT, Unreadable, kind_of, utf8
from worker.wire.headers import DUPLICATE_FIRST, DUPLICATE_OF

Decode: TypeAlias = Callable[[bytes], Any]


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

    A member ``a.b`` is the one of that name, or else ``b`` in the object ``a``; see
    `worker.fields`.
    """

    def __init__(self, options: DocumentOptions) -> None:
        """Create decoders that skip all members except those in ``options``."""
        super().__init__(options)
        members = [options.id_field, *options.text_fields]
        if options.time_field is not None:
            members.append(options.time_field)
        self._decode, self._fields = self._reader(members)
        self._id_of = self._fields[options.id_field].get
        self._texts = [self._fields[member] for member in options.text_fields]
        self._only_text = self._texts[0].get if len(self._texts) == 1 else None
        self._read_time = time_reader(options.time_format)
        self._time = None if options.time_field is None else self._fields[options.time_field]
        named = self._fields[options.id_field].path, self._fields[options.text_fields[0]].path
        several = len(options.text_fields) > 1 or options.time_field is not None
        self._plain = not several and not any(path.steps for path in named)
        """Whether the core can read what is asked for."""
        # Finds ids even if the text can't be decoded.
        self._deleted_field = options.deleted_id_field or options.id_field
        self._decode_id, found = self._reader([options.id_field, self._deleted_field])
        self._lone_id = found[options.id_field].get
        self._deleted_id = found[self._deleted_field].get

    def read_all(self, batch: RecordBatch) -> Documents:
        """See `DocumentFormat`. The core reads plain objects, which most payloads are."""
        options, stamps = self._options, batch.timestamps
        largest = sum(
            max(map(len, filter(None, one)), default=0) for one in (batch.values, batch.keys)
        )
        dated = ((stamps >= FIRST_TIME) & (stamps < LAST_TIME)) | (stamps == NO_TIMESTAMP)
        fits = largest <= options.max_record_bytes and batch.headers is None
        if not (self._plain and fits and dated.all()):
            return super().read_all(batch)
        found, texts = read_payloads(batch.values, options.id_field, options.text_fields[0])
        ids = [b"" if ident is None else ident for ident in found]
        left = np.zeros(len(batch), bool)
        for row, (ident, text) in enumerate(zip(found, texts, strict=True)):
            if ident is None and text is not None:
                ids[row] = self._id_beside(batch, row)
            if (
                text is None
                or not 0 < len(text) <= options.max_text_characters
                or text.isspace()
                or not 0 < len(ids[row]) <= options.max_id_bytes
            ):
                left[row] = True
        times = [NO_TIME if stamp == NO_TIMESTAMP else stamp for stamp in stamps.tolist()]
        self.times_read += len(batch) - int(left.sum())
        if left.any():
            rest = zip(
                np.flatnonzero(left).tolist(), *super().read_all(batch.only(left)), strict=True
            )
            for row, ident, text, time in rest:
                ids[row], texts[row], times[row] = ident, text, time
        return Documents(ids, texts, times)

    def _id_beside(self, batch: RecordBatch, row: int) -> bytes:
        """Return the id of a payload that has none; nothing if its record has none either."""
        try:
            return self._plain_id(None, batch, row)
        except Unreadable:
            return b""

    def excerpt(self, value: bytes) -> str:
        """See `DocumentFormat`."""
        try:
            return self._text(decoded(self._decode, value))
        except Unreadable:
            return value.decode(errors="replace")

    def fields(self, value: bytes) -> Sequence[str] | None:
        """See `DocumentFormat`."""
        _check_utf8(value)
        found: dict[str, msgspec.Raw] = decoded(_members.decode, value)
        return list(found)

    def having(self, value: bytes) -> Collection[str]:
        """See `DocumentFormat`."""
        payload = decoded(self._decode, value)
        return [name for name, field in self._fields.items() if _has(field.get, payload)]

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
            self._check_encoding(value)
        try:
            payload = self._decode(value)
        except (msgspec.DecodeError, RecursionError):
            payload = decoded(self._decode, value)  # It fails again, and says why.
        text = None if self._only_text is None else self._only_text(payload)
        if type(text) is not str:
            text = self._text(payload)
        time = None
        if self._time is not None:
            given = _given(self._time.get(payload))
            if given is not None:
                time = self._read_time(given, self._time.path.name)
        found = self._id_of(payload)
        return None if found is msgspec.UNSET else found, text, time

    def _check_encoding(self, value: bytes) -> None:
        """Check what the decoder doesn't: the members that it skips."""
        _check_utf8(value)

    def _find_id(self, value: bytes) -> object:
        try:
            return _given(self._lone_id(self._decode_id(value)))
        except (ValueError, RecursionError):
            return None

    def _find_deleted_id(self, value: bytes) -> object:
        if self._options.deletes != "forget":
            return None
        try:
            self._text(decoded(self._decode, value))
        except Unreadable as error:
            if error.code != NULL_TEXT:
                return None
        else:
            return None
        try:
            return _given(self._deleted_id(self._decode_id(value)))
        except (ValueError, RecursionError):
            return None

    def _reader(self, members: Sequence[str]) -> tuple[Decode, dict[str, Field]]:
        """Return a decoder that skips all other members, and the fields that ``members`` name."""
        paths = [parse(member) for member in members]
        decode, get = decoder_of([*members, *(path.head for path in paths)])
        return decode, {
            path.name: Field(path, getter(path, get[path.name], get[path.head]), get[path.head])
            for path in paths
        }

    def _text(self, payload: object) -> str:
        parts: list[str] = []
        blank = ""
        null: Field | None = None
        for field in self._texts:
            part = field.get(payload)
            if isinstance(part, str):
                parts.append(part)
            elif part is None:
                null = field
            elif part is not msgspec.UNSET:
                parts += joined(field.path, part)
                blank = f"field {field.path.name!r} is empty"
        if parts:
            return parts[0] if len(parts) == 1 else "\n".join(parts)
        if blank:
            raise Unreadable("empty-text", blank)
        if null is not None:
            raise Unreadable(NULL_TEXT, f"{null_in(null, payload)!r} is null")
        names = ", ".join(absent(field, payload) for field in self._texts)
        raise Unreadable("no-text", f"no field {names}")


def decoder_of(names: Sequence[str]) -> tuple[Decode, dict[str, Getter]]:
    """Return a decoder of objects that skips all members but some, and what returns each."""
    attributes = {f"member{n}": name for n, name in enumerate(dict.fromkeys(names))}
    payload = msgspec.defstruct(
        "Payload",
        [(attribute, object, msgspec.UNSET) for attribute in attributes],
        rename=attributes.get,
        gc=False,
    )
    decode: Decode = msgspec.json.Decoder(payload).decode
    return decode, {name: attrgetter(attribute) for attribute, name in attributes.items()}


def _has(get: Getter, payload: object) -> bool:
    """Return whether a payload has a field, of whatever type its value is."""
    try:
        return _given(get(payload)) is not None
    except Unreadable:
        return True


def decoded(decode: Decode, value: bytes) -> Any:  # noqa: ANN401 -- depends on the decoder
    """Return what a payload is decoded to.

    Raises:
        Unreadable: it is no JSON object; the error says what it is.
    """
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
    except UnicodeDecodeError as error:
        raise Unreadable("invalid-utf8", error.reason) from None  # It doesn't say where.
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


Getter: TypeAlias = Callable[[object], object]
"""Returns a field's value in a payload, `Elements` if its path leads to several, and UNSET if the
payload doesn't have the field."""
_KEY_CHARACTERS = 40


class Field(NamedTuple):
    """A field of payloads: its path, what returns its value, and what returns that of its head."""

    path: Path
    get: Getter
    head: Getter


class Elements(list[tuple[str, object]]):
    """The values to which a path with ``[]`` leads, and the path of each; none of them is null."""


def getter(path: Path, plain: Getter, head: Getter) -> Getter:
    """Return what finds a field: the member of that name, or else what its path leads to.

    ``plain`` returns the member that has the path's name, ``head`` the one where the path begins.
    What is returned raises `Unreadable` if something else than an array is where ``[]`` stands, or
    else than an object below it.
    """
    if not path.steps:
        return plain
    follow = _every(path) if path.several else partial(_along, path.steps)

    def get(payload: object) -> object:
        given = plain(payload)
        if given is not UNSET and given is not None:
            return given
        found = follow(head(payload))
        return given if found is UNSET else found

    return get


def joined(path: Path, value: object) -> list[str]:
    """Return the texts that a field's value is; null has none.

    Raises:
        Unreadable: a value is no string; the message names it, and the path that may be meant.
    """
    if value is None:
        return []
    texts = []
    for place, part in value if isinstance(value, Elements) else [(path.name, value)]:
        if not isinstance(part, str):
            raise Unreadable(
                "text-wrong-type",
                f"field {place!r} is {kind_of(part)}, not a string{_meant(path.name, part)}",
            )
        texts.append(part)
    return texts


def absent(field: Field, payload: object) -> str:
    """Return the name of a field that a payload lacks, and of an array that its path misses."""
    value, place = field.head(payload), field.path.head
    for number, step in enumerate(field.path.steps):
        if isinstance(step, str) and isinstance(value, list):
            rest = "".join(_written(each) for each in field.path.steps[number:])
            return f"{field.path.name!r}; {place!r} is an array: {place}[]{rest} may be meant"
        if step is None:
            break
        value, place = _next(value, step), place + _written(step)
    return repr(field.path.name)


def null_in(field: Field, payload: object) -> str:
    """Return the name of the field that is null, of one that is null or in an object that is."""
    value, place = field.head(payload), field.path.head
    for step in field.path.steps:
        if value is None or step is None:
            break
        value, place = _next(value, step), place + _written(step)
    return place if value is None else field.path.name


def _written(step: Step) -> str:
    if isinstance(step, str):
        return f".{step}"
    return "[]" if step is None else f"[{step}]"


def _along(steps: Sequence[Step], found: object) -> object:
    """Return what steps lead to from a value, without `[]`; UNSET if they lead nowhere.

    What is in a null is null.
    """
    for step in steps:
        if found is None:
            break
        found = _next(found, step)
    return found


def _next(value: object, step: Step) -> object:
    """Return a member or an element; UNSET if the value doesn't have it."""
    if isinstance(step, str):
        return value.get(step, UNSET) if isinstance(value, dict) else UNSET
    has = isinstance(value, list) and step is not None and step < len(value)
    return value[step] if has else UNSET  # type: ignore[index]


def _every(path: Path) -> Getter:
    """Return what finds all that a path leads to; UNSET if that is nothing."""
    reach = path.steps.index(None)
    before, after = path.steps[:reach], path.steps[reach:]
    place = path.head + "".join(map(_written, before))

    def follow(found: object) -> object:
        found = _along(before, found)
        if found is None or found is UNSET:
            return found
        into = Elements()
        lacks = _collect(found, after, place, into)
        return UNSET if lacks and not into else into

    return follow


def _collect(value: object, steps: Sequence[Step], place: str, into: Elements) -> bool:
    """Add what steps lead to from a value; return whether it, or each of its elements, lacks that.

    A null lacks nothing, and adds nothing.
    """
    for number, step in enumerate(steps):
        if value is None or value is UNSET:
            break
        if step is None:
            if not isinstance(value, list):
                raise _wrong(place, value, "an array")
            rest = steps[number + 1 :]
            lacks = [_collect(each, rest, f"{place}[{at}]", into) for at, each in enumerate(value)]
            return all(lacks) and bool(lacks)
        if isinstance(step, str) and not isinstance(value, dict):
            raise _wrong(place, value, "an object")
        value, place = _next(value, step), place + _written(step)
    if value is not None and value is not UNSET:
        into.append((place, value))
    return value is UNSET


def _wrong(place: str, value: object, needed: str) -> Unreadable:
    return Unreadable("text-wrong-type", f"field {place!r} is {kind_of(value)}, not {needed}")


def _meant(name: str, value: object) -> str:
    """Return the path that leads to the texts in an array."""
    if not isinstance(value, list):
        return ""
    objects = [each for each in value if isinstance(each, dict)]
    if not objects:
        return f"; {name}[] joins its elements"
    keys = (key for each in objects for key, text in each.items() if isinstance(text, str))
    named = {"text": 0, "content": 1}
    key = min(keys, key=lambda key: named.get(key, 2), default="NAME")[:_KEY_CHARACTERS]
    return f"; its elements are objects, and {name}[].{key} joins their {key}"


_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NAME = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:', re.DOTALL)
_OPEN, _CLOSED = np.frombuffer(b"[{", np.uint8), np.frombuffer(b"]}", np.uint8)
_QUOTE, _COMMA = ord('"'), ord(",")


class Member(NamedTuple):
    """A member: its name, and the range from after the brace or comma to the next one."""

    name: str
    start: int
    end: int


def members(value: bytes) -> list[Member] | None:
    """Return the members of an object, in order; None if ``value`` isn't an object.

    Takes time linear in the size, and no stack, however deeply the object is nested. What is
    nested isn't checked.
    """
    # An escape becomes two bytes that mean nothing; then each quote begins or ends a string.
    data = np.frombuffer(_ESCAPE.sub(b"__", value), np.uint8)
    outside = np.cumsum(data == _QUOTE) % 2 == 0
    steps = np.isin(data, _OPEN).astype(np.int8) - np.isin(data, _CLOSED).astype(np.int8)
    depth = np.cumsum(np.where(outside, steps, 0))
    inside = np.flatnonzero(depth >= 1)
    if not len(inside):
        return None
    first, last = int(inside[0]), int(inside[-1]) + 1
    whole = (
        value[:first].strip(b" \t\r\n") == b""
        and value[first : first + 1] == b"{"
        and value[last : last + 1] == b"}"
        and value[last + 1 :].strip(b" \t\r\n") == b""
        and last - first == len(inside)
    )
    if not whole:
        return None
    commas = np.flatnonzero(outside & (depth == 1) & (data == _COMMA)).tolist()
    cuts = [first, *commas, last]
    found = [
        Member(_name(value, before + 1, end), before + 1, end) for before, end in pairwise(cuts)
    ]
    if len(found) == 1 and not found[0].name and not value[first + 1 : last].strip(b" \t\r\n"):
        return []
    return found


def _name(value: bytes, start: int, end: int) -> str:
    """Return a member's name; an empty one if it has none, or one that is no text."""
    found = _NAME.match(value, start, end)
    try:
        return msgspec.json.decode(found[1], type=str) if found else ""
    except msgspec.DecodeError:
        return ""


def without_members(value: bytes, names: Collection[str]) -> bytes:
    """Return an object without its members of these names, however often and however spelt.

    Each takes a comma beside it along. All other bytes stay.

    Raises:
        ValueError: ``value`` isn't an object.
    """
    found = members(value)
    if found is None:
        raise ValueError("not a JSON object")
    if not found:
        return value
    kept = [value[one.start : one.end] for one in found if one.name not in names]
    return value[: found[0].start] + b",".join(kept) + value[found[-1].end :]
