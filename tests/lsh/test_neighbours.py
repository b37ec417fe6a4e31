"""The tables of what depends on its neighbours, compared with all of Unicode."""

from __future__ import annotations

import sys
from unicodedata import combining, decomposition, normalize

import numpy as np
import pytest

from lsh.neighbours import (
    AFRESH,
    IOTA,
    JOINS,
    WITH_IOTA,
    classes,
    compositions,
    kind_of,
    kinds,
    second_starters,
    seconds,
)

EVERY = range(sys.maxunicode + 1)


@pytest.mark.parametrize(
    ("char", "kind"),
    [
        ("a", AFRESH),
        ("\u00e9", AFRESH),
        ("\uac00", AFRESH),
        ("\u0301", JOINS),
        ("\u0344", JOINS),
        ("\u0f73", JOINS),
        ("\u09be", JOINS),
        ("\u1161", JOINS),
        ("\uffc2", JOINS),
        ("\uff9e", JOINS),
        ("\u0345", IOTA),
        ("\u1fb3", WITH_IOTA),
        ("\U0001f600", AFRESH),
    ],
)
def test_kinds(char: str, kind: int) -> None:
    assert kind_of(char) == kind
    assert kinds()[ord(char)] == kind


@pytest.mark.exhaustive
def test_the_tables_hold_every_code_point() -> None:
    for point in EVERY:
        assert kinds()[point] == kind_of(chr(point))
        assert classes()[point] == combining(chr(point))


@pytest.mark.exhaustive
def test_no_second_of_a_composition_is_overlooked() -> None:
    pairs = [decomposition(chr(point)).split() for point in EVERY]
    table = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"}
    syllables = normalize("NFD", "".join(map(chr, range(0xAC00, 0xD7A4))))
    assert seconds() == table | {part for part in syllables if part >= "\u1161"}


def test_pairs_compose_to_what_normalisation_makes_of_them() -> None:
    found = compositions()
    seconds = np.flatnonzero(found.seconds).astype(np.uint32)
    wholes = set()
    for first in np.flatnonzero(found.firsts).tolist():
        made = found.wholes(np.full_like(seconds, first), seconds)
        for second, whole in zip(seconds[made > 0].tolist(), made[made > 0].tolist(), strict=True):
            assert normalize("NFC", chr(first) + chr(second)) == chr(whole)
            wholes.add(whole)
    composed = (point for point in EVERY if len(normalize("NFD", chr(point))) > 1)
    assert wholes == {point for point in composed if normalize("NFC", chr(point)) == chr(point)}


def test_what_begins_no_composition_composes_with_nothing() -> None:
    seconds = np.flatnonzero(compositions().seconds).astype(np.uint32)
    assert not compositions().wholes(np.full_like(seconds, ord("\u30eb")), seconds).any()


def test_compositions_of_starters_do_not_overlap() -> None:
    assert not np.any(second_starters() & (compositions().firsts > 0))
