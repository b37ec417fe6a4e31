"""The face of the compiled core: what it refuses, and that threads share it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from lsh import _core
from lsh.shingles import signer

NORMALISER = _core.Normaliser()
SIGNER = signer(NORMALISER, "char", 5, b"seed", slots=16)
WORDS: list[str | bytes] = ["one", b"two", "one"]


def made(**changes: Any) -> _core.Signer:  # noqa: ANN401 -- of any type
    given = {"kind": "char", "size": 5, "seed": b"seed", "slots": 16, **changes}
    return signer(NORMALISER, **given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "line"}, r"shingle: got \"line\""),
        ({"size": 0}, "shingle_size: got 0, takes an integer from 1 to 64"),
        ({"size": 65}, "shingle_size: got 65"),
        ({"slots": 0}, "slots: got 0, takes an integer from 1 to 4096"),
        ({"slots": 4097}, "slots: got 4097"),
    ],
)
def test_a_scheme_that_there_is_not_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)


@pytest.mark.parametrize("wrong", [None, 1, b"text", float("nan")])
def test_a_value_that_is_no_text_is_named_by_its_row(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=r"texts: row 2 has a value of type .*, takes str"):
        SIGNER.sign(["a", "b", wrong])
    with pytest.raises(TypeError, match="texts: row 0"):
        SIGNER.shingles([wrong])


@pytest.mark.parametrize("wrong", ["text", b"text", 1, {"a": 1}])
def test_what_is_no_sequence_of_texts_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="texts: got a single"):
        SIGNER.sign(wrong)


def test_tokens_are_str_or_bytes_and_their_starts_lead_through_them() -> None:
    hashes, starts = SIGNER.word_shingles(WORDS, np.array([0, 1, 1, 3]))
    assert len(hashes) == 2
    assert starts.tolist() == [0, 1, 1, 2]
    with pytest.raises(TypeError, match="tokens: row 1 has a value of type int"):
        SIGNER.word_shingles(["a", 1], np.array([0, 2]))  # type: ignore[list-item]
    for wrong in ([0, 2], [1, 3], [0, 2, 1, 3], [], [0, -1, 3], [0, 4]):
        with pytest.raises(ValueError, match="starts: takes ascending numbers"):
            SIGNER.word_shingles(WORDS, np.array(wrong, dtype=np.int64))


def test_lone_surrogates_are_code_points_like_others() -> None:
    texts = ["\ud800 and more", "\udfff and more", "\ud800 and more"]
    keys = SIGNER.sign(texts).texts.tolist()
    assert keys[0] == keys[2] != keys[1]
    assert len(SIGNER.shingles(texts)[0]) == 3 * 6


def test_threads_that_share_a_signer_get_what_one_gets() -> None:
    texts = [
        f"{number} text \u4e2d of a batch {number % 7} " * (number % 50) for number in range(900)
    ]
    expected = SIGNER.sign(texts)
    parts = [texts[at : at + 100] for at in range(0, 900, 100)] * 4
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(SIGNER.sign, parts))
    for at, part in enumerate(found):
        low = 100 * (at % 9)
        for name in ("sketches", "texts", "shingles", "blank"):
            np.testing.assert_array_equal(
                getattr(part, name), getattr(expected, name)[low : low + 100]
            )


def test_a_list_that_changes_is_signed_as_it_was() -> None:
    texts = ["a text"] * 50_000
    with ThreadPoolExecutor(1) as pool:
        signed = pool.submit(SIGNER.sign, texts)
        texts.clear()
        keys = signed.result().texts
    assert len(set(keys.tolist())) <= 1


def test_arrays_of_other_shapes_are_refused() -> None:
    sketches = np.zeros((3, 16), dtype=np.uint8)
    with pytest.raises(ValueError, match=r"bands \* rows"):
        _core.band_keys(sketches, 2**40, 2**40)
    with pytest.raises(ValueError, match="columns: takes numbers from 0 to 3"):
        _core.band_keys(sketches, 4, 4, [4])
    with pytest.raises(ValueError, match="C order"):
        _core.band_keys(np.asfortranarray(sketches), 4, 4)
    with pytest.raises(ValueError, match="b: got 15 slots"):
        _core.equal_slots(sketches, sketches[:, :15].copy())
    with pytest.raises(ValueError, match="b: got 2 sketches"):
        _core.equal_slots(sketches, sketches[:2])
    assert _core.equal_slots(sketches, sketches[:1]).tolist() == [16, 16, 16]
    assert _core.equal_slots(sketches[:0], sketches[:1]).tolist() == []


def test_near_pairs_are_those_with_enough_equal_slots() -> None:
    chance = np.random.default_rng(5)
    a, b = (chance.integers(0, 3, (count, 70), np.uint8) for count in (9, 5))
    b[2] = a[4]
    equal = (a[:, None] == b[None]).sum(2)
    for least in (0, 20, 25, 70, 71):
        rows, others, counts = _core.near_pairs(a, b, least)
        expected = [(row, other) for row in range(9) for other in range(5)]
        expected = [pair for pair in expected if equal[pair] >= least]
        assert list(zip(rows.tolist(), others.tolist(), strict=True)) == expected
        assert counts.tolist() == [equal[pair] for pair in expected]
    assert [column.tolist() for column in _core.near_pairs(a[:0], b, 0)] == [[], [], []]
    with pytest.raises(ValueError, match="b: got 69 slots, takes as many as a, 70"):
        _core.near_pairs(a, b[:, :69].copy(), 0)

    with pytest.raises(ValueError, match="slots: got 5000"):
        _core.signatures(np.zeros(1, np.uint64), np.array([0, 1]), 5000)
