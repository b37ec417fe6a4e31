"""The keys of a frame's documents, by the oracle."""

from __future__ import annotations

from functools import lru_cache

from lsh import Parameters
from tests.oracle.fingerprint import band_keys
from worker.wire.fingerprints import FingerprintFrame


def keys_of(frame: FingerprintFrame, parameters: Parameters) -> list[tuple[int, ...]]:
    """Give the keys of each document: those of its bands, then that of the exact text."""
    sketches = [sketch.tobytes() for sketch in frame.sketches]
    return [
        (*_of_bands(sketch, parameters.bands, parameters.rows), text)
        for sketch, text in zip(sketches, frame.texts.tolist(), strict=True)
    ]


# Every shard, every replay and every copy asks for the same ones.
@lru_cache(maxsize=1 << 16)
def _of_bands(sketch: bytes, bands: int, rows: int) -> tuple[int, ...]:
    return tuple(band_keys(sketch, bands, rows))
