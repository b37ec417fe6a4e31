"""Parameters keep their order and values, whichever of them are broad."""

from __future__ import annotations

import pytest

from tests.support.breadth import broad, mostly_broad, thinned


def test_all_but_those_that_are_named_are_broad() -> None:
    assert mostly_broad("abc", "b") == [broad("a"), "b", broad("c")]


def test_a_name_that_is_none_of_the_values_is_refused() -> None:
    with pytest.raises(ValueError, match="not among the values: \\['d'\\]"):
        mostly_broad("abc", "b", "d")


def test_the_first_of_each_three_is_not_broad() -> None:
    assert thinned(range(5)) == [0, broad(1), broad(2), 3, broad(4)]
