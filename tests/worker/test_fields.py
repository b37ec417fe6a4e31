"""The syntax of paths; what they lead to, the tests of JSON documents show."""

from __future__ import annotations

import pytest

from worker.fields import parse, single


@pytest.mark.parametrize(
    ("name", "head", "steps"),
    [
        ("text", "text", ()),
        ("a.b", "a", ("b",)),
        ("a[]", "a", (None,)),
        ("a[].b[0].c", "a", (None, "b", 0, "c")),
        ("a[][12]", "a", (None, 12)),
        ("Mr.", "Mr", ("",)),
        ("größe", "größe", ()),
    ],
)
def test_a_path_is_taken_apart(name: str, head: str, steps: tuple[object, ...]) -> None:
    assert parse(name) == (name, head, steps)


@pytest.mark.parametrize(
    "name", ["a[", "a]", "a[x]", "[]", "[0]", "a.[]", "a[-1]", "a[*]", "a[]b", "a[0", "a[٣]"]
)
def test_wrong_brackets_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"must be a name, or a path such as a\.b, a\[\]\.b"):
        parse(name)


def test_a_path_to_several_values_is_refused_where_one_is_needed() -> None:
    assert single("a[0].b") == "a[0].b"
    with pytest.raises(ValueError, match=r"^got 'a\[\].b', must lead to one value"):
        single("a[].b")
