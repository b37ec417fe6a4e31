"""Any key has an id; no two have the same; what wasn't cut tells its key."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.ids_of_keys import ODD_KEYS, id_of_key
from worker.formats.keys import LEAST_ID_BYTES, KeyKind, Keys
from worker.formats.unreadable import Unreadable
from worker.settings.documents import DocumentsSection
from worker.settings.sections import LimitsSection

TAIL = 72
MOST = st.sampled_from([LEAST_ID_BYTES, 100, 1_024])
TEXTS = st.text(min_size=1, max_size=40).map(lambda text: text.encode(errors="surrogatepass"))


def own(draw: st.DrawFn, most: int) -> bytes:
    """Draw a key that is the id of another key."""
    return Keys(most=most).ident(draw(st.binary(min_size=1, max_size=60) | TEXTS)) or b""


@st.composite
def keys(draw: st.DrawFn, most: int = LEAST_ID_BYTES) -> bytes:
    kinds = st.sampled_from(["binary", "text", "long", "own", "odd"])
    match draw(kinds):
        case "binary":
            return draw(st.binary(min_size=1, max_size=40))
        case "text":
            return draw(TEXTS)
        case "long":
            return draw(TEXTS | st.binary(min_size=1, max_size=3)) * 100
        case "own":
            return own(draw, most)
        case _:
            return draw(st.sampled_from(ODD_KEYS))


@given(keys(), MOST, st.sampled_from(["auto", "bytes"]))
def test_any_key_has_an_id_that_can_be_one(key: bytes, most: int, kind: KeyKind) -> None:
    ident = Keys(kind, most).ident(key)
    assert ident
    assert len(ident) <= most
    assert ident.decode().encode() == ident
    if kind == "auto":
        assert ident == id_of_key(key, most)


@given(keys(), keys(), st.sampled_from(["auto", "bytes"]))
@example(b"\x00", b"hex:00", "auto")
@example(b"k" * 1_025, id_of_key(b"k" * 1_025, LEAST_ID_BYTES), "auto")
def test_no_two_keys_have_the_same_id(one: bytes, other: bytes, kind: KeyKind) -> None:
    rule = Keys(kind, LEAST_ID_BYTES)
    ids = {rule.ident(one), rule.ident(other), rule.ident(rule.ident(one))}
    assert len(ids) == len({one, other, rule.ident(one)})


@given(keys(), st.sampled_from(["auto", "bytes"]))
def test_an_id_that_was_not_cut_tells_its_key(key: bytes, kind: KeyKind) -> None:
    rule = Keys(kind, LEAST_ID_BYTES)
    ident = rule.ident(key) or b""
    cut = ident[-TAIL:-64] == b"~sha256:"
    assert rule.key(ident) == (ident if cut else key)
    assert cut == (len(key if ident[:4] != b"hex:" else b"hex:" + key.hex().encode()) > rule.most)


@given(st.integers(-(2**63), 2**63 - 1))
@example(-(2**63))
@example(0)
@example(127)
@example(128)
def test_a_long_is_its_number(number: int) -> None:
    key = number.to_bytes(8, "big", signed=True)
    assert Keys("long").ident(key) == str(number).encode()
    assert Keys("long").key(str(number).encode()) == key


def test_an_int_is_its_number() -> None:
    assert Keys("int").ident(b"\xff\xff\xff\xfe") == b"-2"
    assert Keys("int").key(b"-2") == b"\xff\xff\xff\xfe"


@pytest.mark.parametrize("kind", ["long", "int"])
@pytest.mark.parametrize("ident", [b"9223372036854775808", b"007", b"x", b"1 ", b"9" * 5_000])
def test_an_id_that_is_no_keys_number_stays(kind: KeyKind, ident: bytes) -> None:
    assert Keys(kind).key(ident) == ident


@pytest.mark.parametrize("kind", get_args(KeyKind))
def test_no_key_and_an_empty_one_are_no_id(kind: KeyKind) -> None:
    assert Keys(kind).ident(None) is None
    assert Keys(kind).ident(b"") is None


def test_keys_can_be_ignored() -> None:
    assert Keys("ignore").ident(b"key") is None
    assert Keys("ignore").key(b"key") == b"key"


@pytest.mark.parametrize(
    ("kind", "key", "detail"),
    [
        ("long", b"12", "2 bytes (hexadecimal 3132); documents.key is long, which takes 8 bytes"),
        ("int", b"\0" * 8, "8 bytes (hexadecimal 0000000000000000); documents.key is int, which"),
        ("text", b"a\0", "2 bytes (hexadecimal 6100); documents.key is text, which takes UTF-8"),
        ("text", b"\xff" * 99, f"99 bytes (hexadecimal {'ff' * 16}…); documents.key is text"),
    ],
)
def test_a_key_that_is_not_what_the_setting_says_is_no_id(
    kind: KeyKind, key: bytes, detail: str
) -> None:
    with pytest.raises(Unreadable, match=f"^bad-id: the key has {re.escape(detail)}"):
        Keys(kind).ident(key)


@given(TEXTS)
def test_text_has_the_ids_that_it_has_by_itself(key: bytes) -> None:
    try:
        ident = Keys("text").ident(key)
    except Unreadable:
        assert (Keys().ident(key) or b"").startswith(b"hex:")
    else:
        assert ident == Keys().ident(key)


def test_settings_take_the_same_kinds_and_the_least_limit() -> None:
    assert get_args(DocumentsSection.model_fields["key"].annotation) == get_args(KeyKind)
    assert LimitsSection(id_bytes=LEAST_ID_BYTES).id_bytes == LEAST_ID_BYTES
    with pytest.raises(ValueError, match="greater than or equal to 96"):
        LimitsSection(id_bytes=LEAST_ID_BYTES - 1)
