"""JSON objects: what can be read, and the reason for everything that can't."""

from __future__ import annotations

import json

import pytest

from lsh.index import NO_TIME
from tests.worker.formats.parts import TIME, read, record
from worker.formats.base import Document, DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.unreadable import Unreadable

JSON = JsonFormat(DocumentOptions(text_fields=("title", "text"), max_id_bytes=16))


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [
        (b'{"id":"a","text":"hello"}', None, b"a"),
        (b'{"id":"a","text":"hello"}', b"key", b"a"),
        (b'{"id":12,"text":"hello"}', None, b"12"),
        (b'{"text":"hello"}', b"key", b"key"),
        (b'{"id":null,"text":"hello"}', b"key", b"key"),
        (b'{"text":"hello"}', None, b"docs-3-17"),
        ('{"id":"ä","text":"hello"}'.encode(), None, "ä".encode()),
    ],
)
def test_the_id_is_the_fields_else_the_keys_else_the_position(
    value: bytes, key: bytes | None, expected: bytes
) -> None:
    assert read(value, key) == (expected, "hello", TIME)


def test_texts_are_joined_in_the_order_of_the_settings() -> None:
    value = b'{"body":"two","title":"one","id":"a"}'
    assert read(value, text_fields=("title", "body"))[1] == "one\ntwo"
    assert read(b'{"body":"two"}', text_fields=("title", "body"))[1] == "two"


def read_nested(value: bytes) -> Document:
    return read(value, text_fields=("a.b.c",), id_field="a.id", time_field="a.at")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a":{"b":{"c":"deep"},"id":7,"at":1700000001}}', (b"7", "deep", TIME + 1_000)),
        (b'{"a.b.c":"plain","a":{"b":{"c":"deep"}}}', (b"docs-3-17", "plain", NO_TIME)),
        (b'{"a.b.c":null,"a":{"b":{"c":"deep"}}}', (b"docs-3-17", "deep", NO_TIME)),
        (b'{"a":{"b":{"c":"deep"}},"a.id":"x"}', (b"x", "deep", NO_TIME)),
    ],
)
def test_a_name_with_dots_is_a_field_or_else_a_path(value: bytes, expected: object) -> None:
    assert read_nested(value) == expected


@pytest.mark.parametrize("inner", ["1", '"x"', "[]", "{}", '{"b":[]}', '{"b":{"d":1}}'])
def test_a_path_that_leads_nowhere_is_no_field(inner: str) -> None:
    with pytest.raises(Unreadable, match=r"^no-text: no field 'a\.b\.c'"):
        read_nested(f'{{"a":{inner}}}'.encode())


@pytest.mark.parametrize("value", [b'{"a":{"b":{"c":null}}}', b'{"a.b.c":null,"a":1}'])
def test_a_null_at_the_end_of_a_path_is_named(value: bytes) -> None:
    with pytest.raises(Unreadable, match=r"^null-text: 'a\.b\.c' is null"):
        read_nested(value)


@pytest.mark.parametrize(
    ("value", "null"),
    [
        (b'{"a":null}', "a"),
        (b'{"a":{"b":null,"x":1}}', "a.b"),
        (b'{"a":null,"a.b.c":null}', "a"),
    ],
)
def test_a_null_on_the_way_is_no_missing_field(value: bytes, null: str) -> None:
    with pytest.raises(Unreadable, match=rf"^null-text: '{null}' is null"):
        read_nested(value)


def test_a_null_beside_a_text_is_left_out() -> None:
    value = b'{"a":null,"body":"two"}'
    assert read(value, text_fields=("a.title", "body")).text == "two"


def test_an_id_or_a_time_in_a_null_is_none() -> None:
    found = read(b'{"a":null,"text":"x"}', b"key", id_field="a.id", time_field="a.at")
    assert found == (b"key", "x", NO_TIME)


def test_the_id_in_a_path_is_found_whatever_else_is_wrong() -> None:
    nested = JsonFormat(DocumentOptions(id_field="a.id"))
    assert nested.identify(b'{"a":{"id":"x"},"text":[]}') == b"x"
    assert nested.identify(b'{"a":["x"]}') is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('"2023-11-14T22:13:20Z"', TIME),
        ('"2023-11-14T22:13:20"', TIME),
        ('"2023-11-14T23:13:20+01:00"', TIME),
        ("1700000000", TIME),
        ("1700000000.5", TIME + 500),
        ("1700000000000", TIME),
        ('"Tue, 14 Nov 2023 22:13:20 GMT"', TIME),
        ('"1969-12-31T23:59:59.9999Z"', -1),
        ("null", NO_TIME),
    ],
)
def test_times(given: str, expected: int) -> None:
    value = f'{{"text":"x","at":{given}}}'.encode()
    assert read(value, time_field="at")[2] == expected


def test_a_format_of_times_reads_other_numbers() -> None:
    value = b'{"text":"x","at":20231114}'
    assert read(value, time_field="at", time_format="%Y%m%d")[2] == TIME - TIME % 86_400_000


def test_times_that_were_read_are_counted() -> None:
    documents = JsonFormat(DocumentOptions(time_field="at"))
    for value in (b'{"text":"x","at":1700000000}', b'{"text":"x"}', b'{"text":"x","at":null}'):
        documents.read(record(value))
    with pytest.raises(Unreadable, match="bad-time"):
        documents.read(record(b'{"text":"x","at":1}'))
    assert documents.times_read == 1


CHAT = {
    "messages": [
        {"role": "user", "content": "one"},
        {"role": "tool", "content": None},
        None,
        {"role": "assistant"},
        {"role": "assistant", "content": "two"},
    ]
}


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("messages[].content", CHAT, "one\ntwo"),
        ("messages[0].content", CHAT, "one"),
        ("p[]", {"p": ["one", None, "two"]}, "one\ntwo"),
        ("p[].text", {"p": [{"text": "one"}, {"text": "two"}]}, "one\ntwo"),
        ("a[].b[].c", {"a": [{"b": [{"c": "1"}, {"c": "2"}]}, {"b": [{"c": "3"}]}]}, "1\n2\n3"),
        ("a.b[]", {"a": {"b": ["one"]}}, "one"),
        ("a[][]", {"a": [["one"], [], ["two"]]}, "one\ntwo"),
        ("a[1][0].b", {"a": [[], [{"b": "one"}]]}, "one"),
        ("p[]", {"p[]": "plain", "p": ["one"]}, "plain"),
    ],
)
def test_a_path_leads_into_arrays(path: str, value: object, text: str) -> None:
    assert read(json.dumps(value).encode(), text_fields=(path,))[1] == text


def test_the_texts_of_an_array_stand_among_those_of_other_fields() -> None:
    value = b'{"title":"zero","p":["one","two"],"end":"three"}'
    assert read(value, text_fields=("title", "p[]", "end"))[1] == "zero\none\ntwo\nthree"
    assert read(b'{"title":"zero","p":[]}', text_fields=("title", "p[]"))[1] == "zero"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("p", {"p": ["one"]}, "text-wrong-type: field 'p' is an array, not a string; p[] joins"),
        (
            "p",
            {"p": [{"n": 1, "body": "one"}]},
            (
                "text-wrong-type: field 'p' is an array, not a string; its elements are objects,"
                " and p[].body joins their body"
            ),
        ),
        (
            "m[].content",
            {"m": [{"content": "a"}, {"content": [{"type": "text", "text": "b"}]}]},
            (
                "text-wrong-type: field 'm[1].content' is an array, not a string; its elements are"
                " objects, and m[].content[].text joins their text"
            ),
        ),
        ("p[]", {"p": ["one", 2]}, "text-wrong-type: field 'p[1]' is a number, not a string"),
        ("p[].a", {"p": ["one"]}, "text-wrong-type: field 'p[0]' is a string, not an object"),
        ("p[]", {"p": "one"}, "text-wrong-type: field 'p' is a string, not an array"),
        ("p[].a", {"p": [{"b": "one"}]}, "no-text: no field 'p[].a'"),
        ("p[]", {}, "no-text: no field 'p[]'"),
        ("p[0]", {"p": []}, "no-text: no field 'p[0]'"),
        ("p[]", {"p": []}, "empty-text: field 'p[]' is empty"),
        ("p[]", {"p": [None]}, "empty-text: field 'p[]' is empty"),
        ("p[]", {"p": None}, "null-text: 'p' is null"),
        ("a[0].b[]", {"a": [{"b": "one"}]}, "text-wrong-type: field 'a[0].b' is a string, not an"),
        ("p[].a", {"p": [{"a": None}, {}]}, "empty-text: field 'p[].a' is empty"),
        ("p[].a", {"p": [{}, {}]}, "no-text: no field 'p[].a'"),
        ("p[]", {"p": ["", " "]}, "empty-text: the text is empty or blank"),
        ("a.b", {"a": [{"b": 1}]}, "no-text: no field 'a.b'; 'a' is an array: a[].b may be meant"),
        (
            "a.b.c.d",
            {"a": {"b": [1]}},
            "no-text: no field 'a.b.c.d'; 'a.b' is an array: a.b[].c.d may be meant",
        ),
    ],
)
def test_what_a_path_meets_instead_is_named(path: str, value: object, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(json.dumps(value).encode(), text_fields=(path,))
    assert str(caught.value).startswith(reason)


def test_a_field_is_had_whatever_its_path_meets() -> None:
    documents = JsonFormat(DocumentOptions(text_fields=("p[].a", "q[]", "r[].s")))
    assert documents.having(b'{"p":["x"],"q":[],"r":[{}]}') == ["p[].a", "q[]"]


DEEP = b'{"text":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DEEP_TEXT = b'{"text":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("not-json", b"hello"),
        ("not-json", b""),
        ("not-json", b'{"text":"a"} trailing'),
        ("not-json", b'{"text":"a","x":NaN}'),
        ("not-json", b'{"text":"\\ud800"}'),
        ("not-json", b'{"text":"\\udc00\\ud800"}'),
        ("not-json", b'{"text":"a\x00b"}'),
        ("not-an-object", b"[1,2]"),
        ("not-an-object", b'"text"'),
        ("null-text", b"null"),
        ("no-text", b'{"id":"a"}'),
        ("null-text", b'{"id":"a","text":null}'),
        ("text-wrong-type", b'{"text":["a"]}'),
        ("text-wrong-type", b'{"text":5}'),
        ("empty-text", b'{"text":""}'),
        ("empty-text", b'{"text":" \\n\\t\\u00a0"}'),
        ("invalid-utf8", b'{"text":"\xff"}'),
        ("invalid-utf8", b'{"text":"a","other":"\xc3"}'),
        ("not-json", b"\x1f\x8b\x08 compressed"),
        ("text-too-long", json.dumps({"text": "x" * 101}).encode()),
        ("too-large", json.dumps({"text": "x", "other": "y" * 2_000_000}).encode()),
        ("too-deep", DEEP),
        ("too-deep", DEEP_TEXT),
        ("bad-id", b'{"id":"","text":"a"}'),
        ("id-wrong-type", b'{"id":1.5,"text":"a"}'),
        ("id-wrong-type", b'{"id":true,"text":"a"}'),
        ("id-wrong-type", b'{"id":["a"],"text":"a"}'),
        ("bad-id", json.dumps({"id": "i" * 1_000_00, "text": "a"}).encode()),
        ("bad-time", b'{"text":"a","at":"NaN"}'),
        ("bad-time", b'{"text":"a","at":"9999-12-31T00:00:00Z"}'),
        ("bad-time", b'{"text":"a","at":253402214400}'),
        ("bad-time", b'{"text":"a","at":1e300}'),
        ("bad-time", b'{"text":"a","at":-5}'),
        ("bad-time", b'{"text":"a","at":20240101}'),
        ("bad-time", b'{"text":"a","at":1' + b"0" * 400 + b"}"),
        ("not-json", b'{"text":"a","at":1e400}'),
        ("time-wrong-type", b'{"text":"a","at":true}'),
    ],
)
def test_every_unreadable_document_has_its_reason(code: str, value: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        read(value, time_field="at", max_text_characters=100)
    assert caught.value.code == code
    assert str(caught.value).startswith(f"{code}: ")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"id":"a","text":"hello"}', b"a"),
        (b'{"text":"hello","id":12}', b"12"),
        ('{"id":"ä"}'.encode(), "ä".encode()),
        (b'{"id":"a","text":7}', b"a"),
        (b'{"id":"a","text":"\xff"}', b"a"),
        (b'{"id":"\xff"}', None),
        (b'{"id":"0123456789abcdef"}', b"0123456789abcdef"),
        (b'{"id":"0123456789abcdefg"}', None),
        (b'{"id":12345678901234567}', None),
        (b'{"id":""}', None),
        (b'{"id":null}', None),
        (b'{"id":1.5}', None),
        (b'{"id":true}', None),
        (b'{"id":["a"]}', None),
        (b'{"id":"a"} trailing', None),
        (b'["a"]', None),
        (b"", None),
        (DEEP, None),
    ],
)
def test_an_id_is_found_whatever_else_is_wrong(value: bytes, expected: bytes | None) -> None:
    assert JSON.identify(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"text":"two","title":"one"}', "one\ntwo"),
        (b'{"text":"two","id":["wrong"]}', "two"),
        (b'{"text":7}', '{"text":7}'),
        (b'{"text":"\xff"}', '{"text":"\ufffd"}'),
        (b"no JSON", "no JSON"),
        (DEEP, DEEP.decode()),
    ],
)
def test_an_excerpt_is_the_text_or_else_the_payload(value: bytes, expected: str) -> None:
    assert JSON.excerpt(value) == expected


def test_fields_are_named_as_they_come() -> None:
    assert JSON.fields(b'{"b":[1],"a":{"x":null}}') == ["b", "a"]


@pytest.mark.parametrize(
    ("code", "value"),
    [("not-json", b"{"), ("not-an-object", b"[1]"), ("invalid-utf8", b'{"a":"\xff"}')],
)
def test_what_is_no_object_has_no_fields(code: str, value: bytes) -> None:
    with pytest.raises(Unreadable, match=f"^{code}: "):
        JSON.fields(value)


OWN = b'"duplicate_of":[],"duplicate_first":{}}'


@pytest.mark.parametrize(
    ("value", "spliced"),
    [
        (b"{}", b"{" + OWN),
        (b' {"text":"a" }\n', b' {"text":"a" ,' + OWN + b"\n"),
        (b'{"a":{"duplicate_of":1}}', b'{"a":{"duplicate_of":1},' + OWN),
        (b'{"a":{"duplicate_first":1}}', b'{"a":{"duplicate_first":1},' + OWN),
        (b'{"duplicate_of":null}', b"{" + OWN),
        (b'{"duplicate_first":null}', b"{" + OWN),
        (b'{"a":1, "duplicate_of" : [{"id":"x"}] }', b'{"a":1,' + OWN),
        (b'{"a":1, "duplicate_first" : {"id":"x"} }', b'{"a":1,' + OWN),
        (b'{"duplicate_of":1,"a":1,"duplicate_of":2}', b'{"a":1,' + OWN),
        (b'{"duplicate_first":1,"a":1,"duplicate_of":2,"duplicate_first":3}', b'{"a":1,' + OWN),
        (b'{"duplicate\\u005fof":1, "a":"duplicate_of"}', b'{ "a":"duplicate_of",' + OWN),
        (b'{"duplicate\\u005ffirst":1, "a":"duplicate_of"}', b'{ "a":"duplicate_of",' + OWN),
        (DEEP, DEEP[:-1] + b"," + OWN),
        (DEEP[:-1] + b',"duplicate_of":1}', DEEP[:-1] + b"," + OWN),
        (DEEP[:-1] + b',"duplicate_first":1}', DEEP[:-1] + b"," + OWN),
    ],
)
def test_what_neardup_adds_comes_last_and_only_once(value: bytes, spliced: bytes) -> None:
    assert JSON.can_splice(value)
    assert JSON.splice(value, b"[]", b"{}") == spliced


@pytest.mark.parametrize("value", [b'["a"]', b"}", b"{", b'{"a"}', DEEP[:-1]])
def test_nothing_is_spliced_into_anything_else(value: bytes) -> None:
    assert not JSON.can_splice(value)
