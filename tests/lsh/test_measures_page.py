from __future__ import annotations

import doctest
from pathlib import Path

import lsh

PAGE = Path(lsh.__file__).parents[1] / "docs" / "reference" / "measures.md"


def test_the_examples_of_the_page_give_what_it_shows() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted > 10
