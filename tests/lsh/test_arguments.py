"""What nobody should pass is refused in one line that says where it is, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lsh import (
    ContainmentIndex,
    Fingerprinter,
    Forest,
    Index,
    NearestIndex,
    Parameters,
    Shingler,
    agreement,
    band_keys,
    choose,
    compact,
    compare,
    exact_jaccard,
    fingerprint_counts,
    fingerprint_tokens,
    fingerprint_weights,
    normalise,
    pairwise_similarity,
    parse_lines,
    repeated_lines,
    s_curve,
    shared_bands,
    shingle_set,
    signatures,
    similarity,
    sized,
    standard_error,
    steepest,
    text_keys,
)

PARAMETERS = Parameters()
FINGERPRINTER = Fingerprinter(PARAMETERS)
TEXT = "A text that is long enough to have some shingles."
PRINTS = FINGERPRINTER.fingerprint([TEXT, TEXT[3:]])
INDEXES: list[Callable[[], Any]] = [
    Index,
    lambda: NearestIndex(PARAMETERS),
    lambda: ContainmentIndex(PARAMETERS),
    lambda: ContainmentIndex(PARAMETERS, exact=True),
]
WRONG = [None, float("nan"), b"bytes", 7, ["a"], pytest.param(object(), id="object")]

COLUMNS: dict[str, Callable[[Any], object]] = {
    "fingerprint": FINGERPRINTER.fingerprint,
    "shingles": FINGERPRINTER.shingles,
    "sizes": FINGERPRINTER.sizes,
    "forms": FINGERPRINTER.forms,
    "sized": lambda texts: sized(FINGERPRINTER, texts),
    "query_many": lambda texts: Index().query_many(texts),
    "repeated_lines": lambda texts: repeated_lines(texts, PARAMETERS),
}
TEXTS: dict[str, Callable[[Any], object]] = {
    "normalise": lambda text: normalise(text, PARAMETERS),
    "Fingerprinter.normalise": FINGERPRINTER.normalise,
    "shingle_set": shingle_set,
    "compare": lambda text: compare(FINGERPRINTER, TEXT, text),
    "parse_lines": parse_lines,
    "Index.query": lambda text: Index().query(text),
    "Index.is_duplicate": lambda text: Index().is_duplicate(text),
    "Index.remove_text": lambda text: Index().remove_text(text),
    "Index.nearest": lambda text: Index().nearest(text, 1),
    "Index.query, containment": lambda text: Index().query(text, containment=0.5),
    "Index.add": lambda text: Index().add("a", text),
    "NearestIndex.nearest": lambda text: NearestIndex(PARAMETERS).nearest(text, 1),
    "NearestIndex.add": lambda text: NearestIndex(PARAMETERS).add("a", text),
    "ContainmentIndex.query": lambda text: ContainmentIndex(PARAMETERS).query(text),
    "ContainmentIndex.add": lambda text: ContainmentIndex(PARAMETERS).add("a", text),
}


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("what", COLUMNS)
def test_a_value_that_is_no_text_is_named_by_its_row(what: str, wrong: object) -> None:
    with pytest.raises(TypeError, match=r"^texts: row 2 has .*, takes str; .*fill missing values"):
        COLUMNS[what]([TEXT, TEXT, wrong])


@pytest.mark.parametrize(
    "column",
    [
        *(TEXT, b"bytes", None, 7, {TEXT: TEXT}, {TEXT}, np.array(TEXT), np.array([[TEXT]])),
        *(np.array([b"a"]), pa.array([None]), pa.table({"text": [TEXT]}), memoryview(b"a")),
    ],
    ids=lambda column: type(column).__name__,
)
@pytest.mark.parametrize("what", COLUMNS)
def test_what_is_no_column_of_texts_is_refused(what: str, column: object) -> None:
    with pytest.raises(TypeError, match=r"^texts: ") as refused:
        COLUMNS[what](column)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("what", TEXTS)
def test_what_is_no_text_is_refused(what: str, wrong: object) -> None:
    with pytest.raises(TypeError, match=r"got|row") as refused:
        TEXTS[what](wrong)
    assert "takes str" in str(refused.value)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(TypeError) as refused:
        FINGERPRINTER.fingerprint([b"x" * 1_000_000])  # type: ignore[list-item]
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("make", INDEXES)
@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([("a", TEXT), None], "row 1 has None"),
        ([("a", TEXT), ("b",)], "row 1 has"),
        ([("a", TEXT), ("b", TEXT, TEXT)], "row 1 has"),
        ([("a", TEXT), "ab"], "row 1 has 'ab'"),
        ([("a", TEXT), ("b", None)], "row 1, text: got None"),
        ([("a", TEXT), (None, TEXT)], "row 1, id: got None"),
        ([("a", TEXT), (1.0, TEXT)], "row 1, id: got 1.0"),
        ([("a", TEXT), (True, TEXT)], "row 1, id: got True"),
        ([("a", TEXT), (float("nan"), TEXT)], "row 1, id: got nan"),
        ([("a", TEXT), (["b"], TEXT)], "row 1, id: got"),
        ({"ab": TEXT}, "see dict.items"),
        ("abcd", "takes pairs"),
        (None, "takes pairs"),
    ],
)
def test_documents_are_added_all_or_none(
    make: Callable[[], Any], documents: object, message: str
) -> None:
    index = make()
    index.add("kept", TEXT)
    with pytest.raises(TypeError, match=message):
        index.add_many(documents)
    with pytest.raises(ValueError, match="'a'"):
        index.add_many([("a", TEXT), ("a", TEXT)])
    assert len(index) == 1
    assert "a" not in index
    index.add("a", TEXT)


def test_a_generator_that_fails_leaves_an_index_as_it_was() -> None:
    def documents() -> Iterator[tuple[str, str]]:
        yield from ((f"new {number}", f"{TEXT} {number}") for number in range(9_000))
        raise OSError("the file is gone")

    index, same = Index(keep_texts=True), Index(keep_texts=True)
    for one in (index, same):
        one.add_many([("a", TEXT), ("b", TEXT[3:]), ("c", "  ")])
    index.nearest(TEXT, 1)
    with pytest.raises(OSError, match="gone"):
        index.add_many(documents())
    assert list(index) == ["a", "b", "c"]
    assert index.query(f"{TEXT} 7") == same.query(f"{TEXT} 7")
    assert index.nearest(TEXT, 9) == same.nearest(TEXT, 9)
    assert list(index.pairs(exact=True)) == list(same.pairs(exact=True))
    assert index.add("new 1", f"{TEXT} 1") == same.add("new 1", f"{TEXT} 1")


@pytest.mark.parametrize("make", INDEXES)
def test_numbers_and_texts_of_numpy_are_ids_as_those_of_python(make: Callable[[], Any]) -> None:
    index = make()
    index.add_many([(np.int64(5), TEXT), (np.str_("5"), TEXT), (-(10**30), TEXT)])
    assert [5 in index, "5" in index, np.int64(5) in index, -(10**30) in index] == [True] * 4
    assert [True in index, 5.0 in index, None in index, [] in index] == [False] * 4
    with pytest.raises(ValueError, match="5"):
        index.add(5, TEXT)
    index.remove(np.int64(5))
    index.add(5, TEXT)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda: fingerprint_tokens([["a"], None], PARAMETERS), "got None in row 1"),  # type: ignore[list-item]
        (lambda: fingerprint_tokens([["a"], "b"], PARAMETERS), "single text in row 1"),
        (lambda: fingerprint_tokens([["a"], ["b", 1]], PARAMETERS), "got 1 of type int in row 1"),  # type: ignore[list-item]
        (lambda: fingerprint_tokens(None, PARAMETERS), "got None"),  # type: ignore[arg-type]
        (lambda: fingerprint_counts([{"a": 1}, ["a"]], PARAMETERS), "row 1 has"),  # type: ignore[list-item]
        (lambda: fingerprint_counts({"a": 1}, PARAMETERS), "takes a sequence"),  # type: ignore[dict-item]
        (lambda: fingerprint_weights([{"a": 1}, None], PARAMETERS), "row 1 has None"),  # type: ignore[list-item]
        (lambda: exact_jaccard(None, TEXT), "got None"),  # type: ignore[arg-type]
        (lambda: text_keys([b"a", TEXT], b"s"), "row 1 has"),  # type: ignore[list-item]
        (lambda: text_keys(b"a", b"s"), "single text"),  # type: ignore[arg-type]
        (lambda: text_keys([b"a"], "s"), "seed: got"),  # type: ignore[arg-type]
        (lambda: Fingerprinter(0.8), "parameters: got 0.8"),  # type: ignore[arg-type]
        (lambda: Index(0.8), "parameters: got 0.8"),  # type: ignore[arg-type]
        (lambda: NearestIndex(None), "parameters: got None"),  # type: ignore[arg-type]
        (lambda: Index(keep_texts="no"), "keep_texts: got 'no'"),  # type: ignore[arg-type]
        (lambda: Index().merge(None), "other: got None"),  # type: ignore[arg-type]
        (lambda: Index().query_fingerprints(None), "fingerprints: got None"),  # type: ignore[arg-type]
        (lambda: Index().add_fingerprints(None, PRINTS), "ids: got None"),  # type: ignore[arg-type]
        (lambda: Index().add_fingerprints(["a", 1.5], PRINTS), "ids: row 1: got 1.5"),  # type: ignore[list-item]
    ],
)
def test_a_thing_of_another_kind_is_refused(what: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        what()


HASHES = np.arange(5, dtype=np.uint64)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda: signatures(HASHES, np.array([0, 9]), 16), "starts: .* the number of hashes, 5"),
        (lambda: signatures(HASHES, np.array([0, 4]), 16), "starts"),
        (lambda: signatures(HASHES, np.array([1, 5]), 16), "starts"),
        (lambda: signatures(HASHES, np.array([0, 4, 2, 5]), 16), "starts"),
        (lambda: signatures(HASHES, np.array([0.0, 5.0]), 16), "starts"),
        (lambda: signatures([1, 2], np.array([0, 2]), 16), "hashes"),  # type: ignore[arg-type]
        (lambda: signatures(HASHES, np.array([0, 5]), 0), "slots: got 0"),
        (lambda: similarity(PRINTS.sketches[0], PRINTS.sketches[:, :9]), r"takes uint8\[n, 128\]"),
        (lambda: similarity(PRINTS.sketches, PRINTS.sketches), "sketches"),
        (lambda: similarity(PRINTS.sketches[0].astype(np.uint64), PRINTS.sketches), "uint64"),
        (lambda: pairwise_similarity(PRINTS.sketches, PRINTS.sketches[:, :9]), "n, 128"),
        (lambda: compact(PRINTS.sketches), "signatures: takes uint64"),  # type: ignore[arg-type]
        (lambda: band_keys(PRINTS.sketches, 0, 5), "bands, rows: got 0 and 5"),
        (lambda: band_keys(PRINTS.sketches[0], 5, 5), "sketches"),
        (lambda: band_keys(PRINTS.sketches, 5, 5, [9]), "columns: takes numbers from 0 to 4"),
        (lambda: shared_bands(PRINTS.sketches[0], PRINTS.sketches[0][:9], 18, 7), "a, b: got 128"),
        (lambda: Forest(16).add(PRINTS.sketches), r"takes uint8\[n, 16\]"),
        (lambda: Forest(0), "slots: got 0"),
        (lambda: Shingler("letters", 5, b"s"), "kind: got 'letters'"),  # type: ignore[arg-type]
        (lambda: Shingler("char", 0, b"s"), "size: got 0"),
        (lambda: choose("high"), "threshold: got 'high'"),
        (lambda: choose(0.8, 12.5), "slots: got 12.5"),
        (lambda: steepest(0, 0), "bands: got 0"),
        (lambda: s_curve(0.5, -1, 7), "bands: got -1"),
        (lambda: standard_error(0.5, 0), "slots: got 0"),
        (lambda: Index(absorb="x"), "absorb: got 'x'"),  # type: ignore[arg-type]
        (lambda: Index().nearest(TEXT, -1), "k: got -1"),
        (lambda: Index().nearest(TEXT, 1.5), "k: got 1.5"),  # type: ignore[arg-type]
        (lambda: Index().nearest(TEXT, 1, recall=2), "recall: got 2"),
        (lambda: Index().query(TEXT, containment=float("nan")), "containment: got nan"),
        (lambda: Index().query(TEXT, containment=0.5, of="all"), "of: got 'all'"),  # type: ignore[call-overload]
        (lambda: Index().query(TEXT, containment=0.5, slack=float("nan")), "slack: got nan"),
        (lambda: Index().groups("x"), "min_similarity: got 'x'"),  # type: ignore[arg-type]
        (lambda: Index().add_fingerprints(["a"], PRINTS), "got arrays of"),
        (lambda: Index().add_fingerprints(["a", "b"], PRINTS, [1, -1]), "sizes: takes 2"),  # type: ignore[arg-type]
        (lambda: Index().add_fingerprints(["a", "b"], PRINTS, [1.5, 2]), "sizes: takes 2"),  # type: ignore[arg-type]
        (lambda: ContainmentIndex(PARAMETERS, recall=0), "recall: got 0"),
    ],
)
def test_a_number_or_an_array_that_does_not_fit_is_refused(
    what: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        what()


@pytest.mark.parametrize("make", INDEXES[1:3])
def test_arrays_that_do_not_fit_add_nothing(make: Callable[[], Any]) -> None:
    index = make()
    more = () if isinstance(index, NearestIndex) else (np.array([5, 5]),)
    for sketches in (PRINTS.sketches[:, :9], PRINTS.sketches.astype(np.int64)):
        with pytest.raises(ValueError, match="sketches"):
            index.add_sketches(["a", "b"], sketches, *more)
    wrong = np.array([1]) if more else np.array([True])
    with pytest.raises(ValueError, match=r"blank|sizes"):
        index.add_sketches(["a", "b"], PRINTS.sketches, wrong)
    assert len(index) == 0
    index.add_sketches(["a", "b"], PRINTS.sketches, *more)


def test_nothing_is_asked_of_nothing() -> None:
    empty = FINGERPRINTER.fingerprint([])
    assert empty.sketches.shape == (0, 128)
    assert Index().add_many([]) == {}
    assert Index().query_many([]) == []
    assert similarity(PRINTS.sketches[0], empty.sketches).shape == (0,)
    assert agreement([]).shape == (0,)
