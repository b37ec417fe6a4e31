"""The fields of JSON documents, to which paths lead, and why they may not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from msgspec import UNSET

from worker.fields import Path, Step
from worker.formats.unreadable import Unreadable, kind_of

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
