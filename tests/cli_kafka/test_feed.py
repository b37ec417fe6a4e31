import pytest

from worker.cli.feed import key_reader


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b'{"id": "a\xc3\xa4", "text": "t"}', "aä".encode()),
        (b'{"text": "t", "id": 7}', b"7"),
        (b'{"text": "t"}', None),
        (b'{"id": null}', None),
        (b'{"id": [1]}', None),
        (b'["id"]', None),
        (b"not json", None),
        (b'{"id": "\xff"}', None),
        (b"", None),
    ],
)
def test_the_key_is_the_field_if_it_can_be_one(value: bytes, key: bytes | None) -> None:
    assert key_reader("id")(value) == key


def test_a_field_may_be_named_anything() -> None:
    assert key_reader("doc.id/é")('{"doc.id/é": "x"}'.encode()) == b"x"
