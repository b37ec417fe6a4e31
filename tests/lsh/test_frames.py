"""`lsh.dedupe` says of the rows of a frame what an index says of their texts."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

import lsh
from lsh import Index, Parameters
from tests.support.texts import near_copies

pytestmark = pytest.mark.needs("narwhals", "pandas", "polars")

TEXTS = [text for _, text in near_copies(600, 1)]
WORDS = [f"d{number}" for number in range(600)]
NUMBERS = [2**62 + 7 * number for number in range(600)]
"""Ids that a float can't hold."""
KINDS = ["pandas", "polars", "pyarrow"]


def frame(kind: str, **columns: list[Any]) -> Any:  # noqa: ANN401 -- a frame of some library
    library = importlib.import_module(kind)
    return library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)


def columns(made: Any, kind: str) -> dict[str, list[Any]]:  # noqa: ANN401 -- a frame of some library
    """Return the columns as lists, with None for nulls."""
    if kind == "pyarrow":
        return dict(made.to_pydict())
    if kind == "polars":
        return dict(made.to_dict(as_series=False))
    pandas = importlib.import_module("pandas")
    return {name: [None if pandas.isna(value) else value for value in made[name]] for name in made}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", [None, WORDS, NUMBERS])
@pytest.mark.parametrize("parameters", [None, Parameters(threshold=0.5)])
def test_the_verdicts_are_those_of_an_index(
    kind: str, ids: list[Any] | None, parameters: Parameters | None
) -> None:
    given = {"text": TEXTS} if ids is None else {"id": ids, "text": TEXTS}
    found = columns(
        lsh.dedupe(frame(kind, **given), id=None if ids is None else "id", parameters=parameters),
        kind,
    )
    names = list(range(600)) if ids is None else ids
    index = Index(parameters)
    hits = index.add_many(zip(names, TEXTS, strict=True))
    assert found["text"] == TEXTS
    assert found["verdict"] == ["duplicate" if name in hits else "unique" for name in names]
    best = [hits[name][0] if name in hits else None for name in names]
    assert found["duplicate_of"] == [None if hit is None else hit.id for hit in best]
    assert found["similarity"] == [None if hit is None else hit.similarity for hit in best]
    groups = {member: one.representative for one in index.groups() for member in one.members}
    assert found["group"] == [groups.get(name, name) for name in names]
    assert 100 < len(hits) < 500


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_text_are_rejected(kind: str) -> None:
    made = lsh.dedupe(frame(kind, body=["a text", None, "a text"]), "body")
    found = columns(made, kind)
    assert found["verdict"] == ["unique", "rejected", "duplicate"]
    assert found["duplicate_of"] == [None, None, 0]
    assert found["group"] == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_without_rows_has_the_columns(kind: str) -> None:
    some = frame(kind, text=["a text"])
    found = columns(lsh.dedupe(some[:0] if kind != "pyarrow" else some.slice(0, 0)), kind)
    assert {name: list(values) for name, values in found.items()} == {
        "text": [], "verdict": [], "duplicate_of": [], "similarity": [], "group": []
    }  # fmt: skip


def test_the_labels_of_rows_stay() -> None:
    pandas = importlib.import_module("pandas")
    given = pandas.DataFrame({"text": ["a text", "A text", "another one"]}, index=["x", "x", "y"])
    made = lsh.dedupe(given)
    assert list(made.index) == ["x", "x", "y"]
    assert list(made["verdict"]) == ["unique", "duplicate", "unique"]
    assert list(given.columns) == ["text"]
    assert str(made["duplicate_of"].dtype) == str(made["group"].dtype) == "Int64"


@pytest.mark.parametrize(
    ("given", "options", "error", "said"),
    [
        ({"a": ["x"]}, {}, ValueError, "frame: has no column 'text', but a"),
        ({"text": ["x"]}, {"id": "id"}, ValueError, "frame: has no column 'id', but text"),
        ({"text": ["x"], "group": [1]}, {}, ValueError, "frame: has a column 'group' already"),
        ({"text": ["x", 1]}, {}, TypeError, "text: row 1: got 1 of type int, takes str"),
    ],
)
def test_what_is_wrong_is_said(
    given: dict[str, list[Any]], options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        lsh.dedupe(frame("pandas", **given), **options)


def test_other_frames_are_refused() -> None:
    polars = importlib.import_module("polars")
    for other in (polars.LazyFrame({"text": ["x"]}), {"text": ["x"]}, "text"):
        with pytest.raises(TypeError):
            lsh.dedupe(other)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"pip install 'neardup\[frames\]'"):
        lsh.dedupe(frame("pandas", text=["x"]))
