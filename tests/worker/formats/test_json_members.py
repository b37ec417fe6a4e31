"""The members of an object are found in its bytes, whatever they hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.formats.json import members, without_members

OWN = ("duplicate_of", "duplicate_first")
names = st.text() | st.sampled_from([*OWN, "a", "{", "}", ",", '"', "\\", '\\"', ":"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
pairs = st.lists(st.tuples(names, values), max_size=5)
spaces = st.sampled_from(["", " ", "\n\t ", "\r\n"])


def written(given: list[tuple[str, Any]], space: str, *, ascii_only: bool) -> bytes:
    """Write an object by hand: names may repeat."""
    listed = f"{space},{space}".join(
        json.dumps(name, ensure_ascii=ascii_only)
        + f"{space}:{space}"
        + json.dumps(value, ensure_ascii=ascii_only)
        for name, value in given
    )
    return f"{space}{{{space}{listed}{space}}}{space}".encode()


@given(given=pairs, space=spaces, ascii_only=st.booleans())
def test_every_member_is_found_in_its_place(
    given: list[tuple[str, Any]], space: str, *, ascii_only: bool
) -> None:
    value = written(given, space, ascii_only=ascii_only)
    found = members(value)
    assert found is not None
    assert [one.name for one in found] == [name for name, _ in given]
    for one, pair in zip(found, given, strict=True):
        assert json.loads(b"{%s}" % value[one.start : one.end]) == dict([pair])


@given(given=pairs, space=spaces, ascii_only=st.booleans())
def test_members_are_taken_out_wherever_and_however_often_they_are(
    given: list[tuple[str, Any]], space: str, *, ascii_only: bool
) -> None:
    value = written(given, space, ascii_only=ascii_only)
    left = json.loads(without_members(value, OWN), object_pairs_hook=lambda found: found)
    kept = [pair for pair in given if pair[0] not in OWN]
    expected = json.loads(json.dumps(kept), object_pairs_hook=lambda found: found)
    assert left == [tuple(pair) for pair in expected]
    if len(kept) == len(given):
        assert without_members(value, OWN) == value


@pytest.mark.parametrize(
    "value",
    [b"", b"1", b'"{}"', b"[{}]", b"{", b"}", b"{}{}", b"{} x", b"x {}", b'{"a":"}', b"[1}"],
)
def test_what_is_no_object_has_none(value: bytes) -> None:
    assert members(value) is None
    with pytest.raises(ValueError, match="not a JSON object"):
        without_members(value, ["a"])


def test_depth_takes_no_stack() -> None:
    deep = b"[" * 1_000_000 + b"]" * 1_000_000
    value = b'{"duplicate_of":%s,"a":%s}' % (deep, deep)
    assert without_members(value, OWN) == b'{"a":%s}' % deep
