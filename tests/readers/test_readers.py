"""Hostile bytes: a reader returns, or raises its own error, in bounded time and memory."""

from __future__ import annotations

import resource
from itertools import count
from random import Random
from time import monotonic, process_time
from typing import Final

import pytest

from tests.readers.hostile import hostile
from tests.readers.readers import READERS, Reader
from tests.support.corpus import FULL, examples

_FULL_SECONDS: Final = 1_200.0
"""How long all readers take together at the full scale."""
_MOST_SECONDS: Final = 10.0
"""Far above what any reader takes for the largest of these, on any machine."""
_MOST_KB: Final = 128 << 10
"""Beside some multiple of what was given, which is the reader's to build."""


def show(reader: Reader, data: bytes, seed: str) -> None:
    """Show one reader some bytes.

    Raises AssertionError, with what it takes to repeat it, for what breaks the rule.
    """
    peak, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
    said = f"{reader.name}, seed {seed}: {data[:80]!r} ({len(data)} bytes)"
    try:
        reader.read(data)
    except reader.own:
        pass
    except BaseException as error:
        raise AssertionError(f"{said}: {type(error).__name__}: {str(error)[:200]}") from error
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert process_time() - began < _MOST_SECONDS, said
    assert grown < _MOST_KB + len(data) // 10, f"{said}: took {grown} kB"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_sound_bytes_are_read(reader: Reader) -> None:
    for seed in reader.seeds:
        reader.read(seed)


@pytest.mark.timeout(_FULL_SECONDS)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_hostile_bytes_end_in_its_own_error(reader: Reader) -> None:
    until = monotonic() + _FULL_SECONDS / len(READERS) if FULL else None
    for number in count():
        if number >= examples(200) and (until is None or monotonic() > until):
            break
        seed = f"{reader.name}-{number}"
        show(reader, hostile(Random(seed), reader.seeds, reader.form), seed)
