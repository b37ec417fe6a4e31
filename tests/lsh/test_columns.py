from __future__ import annotations

from collections import UserList
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lsh import Fingerprinter, Parameters
from lsh.columns import values_of

TEXTS = ["one text", "\u00e9tude", "", "one more of them"]


class Column:
    """Has what pandas' Series has: values by label, and a list of them in order."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __getitem__(self, label: int) -> Any:  # noqa: ANN401 -- a value
        return self._values[::-1][label]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def tolist(self) -> list[Any]:
        return self._values


@pytest.mark.parametrize(
    "column",
    [
        tuple(TEXTS),
        UserList(TEXTS),
        (text for text in TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS, dtype=np.dtypes.StringDType()),
        Column(TEXTS),
        pa.array(TEXTS),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:1], TEXTS[1:]], type=pa.large_string()),
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_column_has_the_fingerprints_of_the_list_of_its_texts(column: Any) -> None:  # noqa: ANN401 -- of any kind
    fingerprinter = Fingerprinter(Parameters())
    expected, found = fingerprinter.fingerprint(TEXTS), fingerprinter.fingerprint(column)
    np.testing.assert_array_equal(expected.keys, found.keys)
    assert found.blank.tolist() == [False, False, True, False]


def test_a_list_is_not_copied() -> None:
    assert values_of(TEXTS) is TEXTS


@pytest.mark.parametrize("missing", [None, float("nan"), b"bytes"])
def test_a_missing_value_is_named(missing: object) -> None:
    with pytest.raises(TypeError, match=r"row 1 has .*fill"):
        values_of(Column(["a", missing]))


def test_a_missing_value_of_arrow_is_named() -> None:
    with pytest.raises(TypeError, match="row 0 has None"):
        Fingerprinter(Parameters()).shingles(pa.array([None, "a"]))


@pytest.mark.parametrize("single", ["a text", b"bytes"])
def test_a_single_text_is_no_column(single: Any) -> None:  # noqa: ANN401 -- of the wrong type
    with pytest.raises(TypeError, match="single text"):
        values_of(single)


def test_an_array_without_a_dimension_is_no_column() -> None:
    with pytest.raises(TypeError, match="one dimension"):
        values_of(np.array("a text"))
