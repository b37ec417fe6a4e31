from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from lsh import Parameters, candidate_chance
from lsh.containment import jaccard_of_containment
from tests.oracle.hashing import derived


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threshold", 0),
        ("threshold", 1.01),
        ("threshold", float("nan")),
        ("threshold", "0.8"),
        ("threshold", True),
        ("shingle", "byte"),
        ("shingle_size", 0),
        ("shingle_size", 65),
        ("shingle_size", 5.0),
        ("slots", 0),
        ("slots", 4097),
        ("slots", True),
        ("bands", 0),
        ("rows", -1),
        ("rows", 0),
        ("bands", 4097),
        ("boilerplate", "a text"),
        ("boilerplate", None),
        ("nfkc", 1),
        ("casefold", "yes"),
        ("collapse_whitespace", None),
        ("drop_invisible", 1),
        ("join_letters", "no"),
        ("containment", 0),
        ("containment", 1.5),
        ("containment", "0.9"),
        ("containment", True),
        ("seed", b""),
        ("seed", "text"),
    ],
)
def test_a_bad_value_is_refused_in_one_line_that_names_the_field(field: str, value: object) -> None:
    given: dict[str, Any] = {field: value}
    with pytest.raises(ValueError, match=field) as raised:
        Parameters(**given)
    message = str(raised.value)
    assert "got" in message
    assert "takes" in message
    assert "\n" not in message


def test_a_refused_seed_is_not_repeated() -> None:
    given: dict[str, Any] = {"seed": "hunter2"}
    with pytest.raises(ValueError, match="seed") as raised:
        Parameters(**given)
    assert "hunter2" not in str(raised.value)


def test_bands_and_rows_follow_the_threshold() -> None:
    chosen = Parameters.for_threshold(0.5, slots=256, shingle="word", shingle_size=3)
    assert (chosen.threshold, chosen.slots, chosen.shingle) == (0.5, 256, "word")
    assert (chosen.bands, chosen.rows) == (64, 4)
    assert Parameters.for_threshold(0.8) == Parameters()


def test_with_a_containment_bands_find_excerpts_of_texts_that_are_longer() -> None:
    plain = Parameters.for_threshold(0.8)
    for ratio in (1.0, 1.5, 2.0, 4.0):
        found = Parameters.for_threshold(0.8, containment=0.9, containment_ratio=ratio)
        least = min(0.8, float(jaccard_of_containment(0.9, ratio)))
        assert candidate_chance(least, found.bands, found.rows) >= 0.98
        assert (found.threshold, found.containment) == (0.8, 0.9)
    assert Parameters.for_threshold(0.8, containment=0.99, containment_ratio=1.0).bands == 18
    assert (plain.bands, plain.containment) == (18, None)
    with pytest.raises(ValueError, match=r"containment_ratio: got 0\.9, takes a number of at"):
        Parameters.for_threshold(0.8, containment=0.9, containment_ratio=0.9)


def test_a_containment_is_described_if_there_is_one() -> None:
    described = Parameters().describe()
    assert "containment" not in described
    with_it = replace(Parameters(), containment=0.9)
    assert with_it.describe() == {**described, "containment": 0.9}


def test_an_unreachable_recall_is_refused() -> None:
    with pytest.raises(ValueError, match="recall"):
        Parameters.for_threshold(0.01, slots=16)


def test_each_field_shows_in_the_description() -> None:
    usual = Parameters().describe()
    changes: dict[str, Any] = {
        "threshold": 0.7,
        "shingle": "word",
        "shingle_size": 6,
        "slots": 200,
        "bands": 17,
        "rows": 6,
        "nfkc": False,
        "casefold": False,
        "collapse_whitespace": False,
        "drop_invisible": False,
        "drop_overlays": False,
        "fold_confusables": True,
        "fold_digits": True,
        "fold_accents": True,
        "fold_turkish_i": True,
        "drop_symbols": True,
        "join_letters": True,
        "seed": b"other",
    }
    for field, value in changes.items():
        changed: dict[str, Any] = {field: value}
        assert Parameters(**changed).describe() != usual, field
    assert usual == Parameters().describe()


def test_words_need_white_space() -> None:
    with pytest.raises(ValueError, match="join_letters"):
        Parameters(shingle="word", join_letters=True)


def test_the_description_hides_the_seed() -> None:
    described = Parameters(seed=b"a secret of ours").describe()
    assert "a secret of ours" not in repr(described)
    assert b"a secret of ours".hex() not in repr(described)


def test_a_guess_of_the_seed_takes_scrypt_to_test() -> None:
    expected = derived(b"a secret of ours", b"neardup header", 16).hex()
    assert Parameters(seed=b"a secret of ours").describe()["seed_digest"] == expected


def test_parameters_stay_as_they_are() -> None:
    with pytest.raises(FrozenInstanceError):
        Parameters().slots = 5  # type: ignore[misc]


def test_the_seed_stays_out_of_the_representation() -> None:
    assert "a secret of ours" not in repr(Parameters(seed=b"a secret of ours"))


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ({}, (128, 18, 7)),
        ({"threshold": 0.5}, (256, 64, 4)),
        ({"threshold": 0.9}, (128, 11, 11)),
        ({"containment": 0.9}, (256, 64, 4)),
        ({"threshold": 0.5, "slots": 128}, (128, 42, 3)),
        ({"slots": 256}, (256, 28, 9)),
        ({"bands": 20, "rows": 6}, (128, 20, 6)),
        ({"bands": 64, "rows": 4}, (256, 64, 4)),
        ({"threshold": 0.5, "bands": 18, "rows": 7}, (256, 18, 7)),
        ({"bands": 9}, (128, 9, 4)),
        ({"rows": 4}, (128, 32, 4)),
        ({"slots": 16, "bands": 4, "rows": 4}, (16, 4, 4)),
        ({"slots": None, "bands": None, "rows": None}, (128, 18, 7)),
    ],
)
def test_what_is_not_given_follows_from_what_is(
    given: dict[str, Any], shape: tuple[int, int, int]
) -> None:
    found = Parameters(**given)
    assert (found.slots, found.bands, found.rows) == shape
    assert hash(found) == hash(Parameters(**given))
    kept = replace(found, threshold=0.95)
    assert (kept.slots, kept.bands, kept.rows) == shape


@pytest.mark.parametrize("threshold", [0.4, 0.5, 0.6, 0.7, 0.9])
def test_a_threshold_alone_is_as_good_as_for_threshold(threshold: float) -> None:
    assert Parameters(threshold=threshold) == Parameters.for_threshold(threshold)


@pytest.mark.parametrize("given", [{"bands": 1}, {"rows": 200}, {"slots": 1}])
def test_what_can_not_find_pairs_at_the_threshold_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"recall: got 0\.98, takes at most"):
        Parameters(**given)


def test_for_threshold_takes_no_bands_and_rows_that_it_would_not_keep() -> None:
    with pytest.raises(ValueError, match="bands and rows: for_threshold chooses them"):
        Parameters.for_threshold(0.5, bands=5, rows=3)


def test_numbers_of_numpy_are_those_of_python() -> None:
    found = Parameters(threshold=np.float32(0.5), slots=np.int64(64), shingle_size=np.uint8(3))  # type: ignore[arg-type]
    assert found == Parameters(threshold=0.5, slots=64, shingle_size=3)
    assert found.describe() == Parameters(threshold=0.5, slots=64, shingle_size=3).describe()


def test_lines_may_come_in_any_collection() -> None:
    lines = ["Share this", "All rights reserved."]
    assert Parameters(boilerplate=lines) == Parameters(boilerplate=frozenset(lines))  # type: ignore[arg-type]
