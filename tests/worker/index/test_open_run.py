"""The open run finds what was added to it, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.index.open_run import OpenRun, pack_open_cells, unpack_open_cells
from worker.index.run_layout import MARK, SortedCells

COLUMNS = 2
FIRST = 1_000
U64 = st.one_of(st.integers(0, 3), st.integers(2**64 - 3, 2**64 - 1), st.integers(0, 2**64 - 1))
batches = st.lists(
    st.lists(st.tuples(st.integers(0, COLUMNS - 1), U64, st.booleans()), max_size=30), max_size=30
)


def all_cells(run: OpenRun) -> SortedCells:
    return SortedCells(*map(np.concatenate, zip(*run.columns(), strict=True)))


@given(batches, batches.map(lambda some: [cell for batch in some for cell in batch]))
def test_it_is_a_dictionary(
    added: list[list[tuple[int, int, bool]]], asked: list[tuple[int, int, bool]]
) -> None:
    """Keys that begin with the same bits, at the end of a table as well, are kept apart."""
    run = OpenRun(COLUMNS, FIRST, bits=2)
    written: list[bytes] = []
    known: dict[tuple[int, int, bool], int] = {}
    for batch in added:
        new: dict[tuple[int, int, bool], int] = {}
        for cell in dict.fromkeys(batch):
            if cell not in known:
                new[cell] = FIRST + len(known) + len(new)
        run.add(packed(new))
        written.append(pack_open_cells(packed(new)))
        known |= new
    assert len(run) == len(known)
    every_kind = [(slot, key, mark) for slot, key, _ in [*known, *asked] for mark in (False, True)]
    slots = np.array([slot for slot, _, _ in every_kind], np.uint8)
    hashes = np.array([key for _, key, _ in every_kind], np.uint64)
    marks = np.array([mark for _, _, mark in every_kind], np.bool_)
    which, documents = run.find(slots, hashes, marks)
    assert dict(zip(which.tolist(), documents.tolist(), strict=True)) == {
        place: known[cell] for place, cell in enumerate(every_kind) if cell in known
    }
    cells = all_cells(run)
    read_back = OpenRun(COLUMNS, FIRST)
    read_back.add(unpack_open_cells(written))
    for one, other in zip(all_cells(run), all_cells(read_back), strict=True):
        assert sorted(np.asarray(one).tolist()) == sorted(np.asarray(other).tolist())
    every = packed(known)
    order = np.lexsort((every.documents, every.hashes, every.slots))
    again = np.lexsort((cells.documents, cells.hashes, cells.slots))
    assert cells.slots[again].tolist() == every.slots[order].tolist()
    assert cells.hashes[again].tolist() == every.hashes[order].tolist()
    assert cells.documents[again].tolist() == every.documents[order].tolist()
    assert (np.diff(cells.slots.astype(int)) >= 0).all()


def packed(cells: dict[tuple[int, int, bool], int]) -> SortedCells:
    return SortedCells(
        np.array([slot for slot, _, _ in cells], np.uint8),
        np.array([key for _, key, _ in cells], np.uint64),
        np.array([n | (MARK if mark else 0) for (_, _, mark), n in cells.items()], np.uint32),
    )


@pytest.mark.parametrize("bits", [2, 7])
def test_a_copy_with_new_cells_is_one_of_its_own(bits: int) -> None:
    known = {(slot, key, False): FIRST + key for slot in range(COLUMNS) for key in range(4)}
    run = OpenRun(COLUMNS, FIRST, bits=bits)
    run.add(packed(known))
    new = {(1, key + (1 << 60), key % 2 == 0): FIRST + key for key in range(4, 20)}
    again = {(0, 2, False): FIRST + 30, (0, 99, False): FIRST + 31}
    made = run.with_new(packed(new), packed(again))
    assert len(made) == len(known) + len(new) + 1
    assert cells_in(made) == known | new | again
    assert len(run) == len(known)
    assert cells_in(run) == known
    other = {(1, key, False): FIRST + key for key in range(4, 20)}
    run.add(packed(other))
    assert cells_in(run) == known | other
    assert cells_in(made) == known | new | again


def cells_in(run: OpenRun) -> dict[tuple[int, int, bool], int]:
    cells = all_cells(run)
    marks = (cells.documents & MARK) != 0
    documents = (cells.documents & (MARK - 1)).tolist()
    keys = zip(cells.slots.tolist(), cells.hashes.tolist(), marks.tolist(), strict=True)
    return dict(zip(keys, documents, strict=True))


def test_cells_that_are_not_whole_are_refused() -> None:
    with pytest.raises(ValueError, match="14 bytes are not whole cells"):
        unpack_open_cells([bytes(13), bytes(14)])
