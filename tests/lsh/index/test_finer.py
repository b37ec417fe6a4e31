"""The keys of finer buckets."""

from __future__ import annotations

import numpy as np

from lsh.index.finer import LEVELS, finer_keys

SKETCHES = np.stack([np.arange(128, dtype=np.uint8) * factor for factor in (3, 3, 3, 5)])
COLUMNS = np.array([0, 3, 18, 3], np.uint8)
HASHES = np.array([0, 2**64 - 1, 12_345, 2**64 - 1], np.uint64)


def test_keys_are_what_stores_were_written_with() -> None:
    found = {level: finer_keys(COLUMNS, HASHES, level, SKETCHES) for level in range(1, LEVELS + 1)}
    assert int(found[1][0]) == 0x84F6E4C810F46A7E
    assert int(found[2][1]) == 0xE328B1FA6030E04A
    assert int(found[5][2]) == 0xAB73A64593D9C277


def test_each_is_that_of_its_own_column_key_level_and_sketch() -> None:
    whole = [finer_keys(COLUMNS, HASHES, level, SKETCHES).tolist() for level in (1, 2, 3, 4, 5)]
    each = [
        [
            int(finer_keys(COLUMNS[at : at + 1], HASHES[at : at + 1], level, SKETCHES[at][None])[0])
            for at in range(4)
        ]
        for level in (1, 2, 3, 4, 5)
    ]
    assert whole == each
    assert len({key for keys in whole for key in keys}) == 20
    short = SKETCHES[:, :16]
    assert (finer_keys(COLUMNS, HASHES, 4, short) != finer_keys(COLUMNS, HASHES, 5, short)).all()
    none = finer_keys(COLUMNS[:0], HASHES[:0], 1, SKETCHES[:0])
    assert none.tolist() == []
