"""Hostile bytes: a reader returns, or raises its own error, in bounded time and memory."""

from __future__ import annotations

from itertools import count
from random import Random
from time import monotonic
from typing import Final

import pytest

from tests.readers.hostile import hostile
from tests.readers.reader import Reader
from tests.readers.readers import READERS
from tests.support.corpus import FULL, examples

_FULL_SECONDS: Final = 1_200.0
"""How long all readers take together at the full scale."""


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_sound_bytes_are_read(reader: Reader) -> None:
    for seed in reader.seeds:
        reader.read(seed)


@pytest.mark.timeout(_FULL_SECONDS)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_hostile_bytes_end_in_its_own_error(reader: Reader) -> None:
    until = monotonic() + _FULL_SECONDS / len(READERS) if FULL else None
    for number in count():
        if number >= examples(100) and (until is None or monotonic() > until):
            break
        seed = f"{reader.name}-{number}"
        reader.show(hostile(Random(seed), reader.seeds, reader.form), seed)
