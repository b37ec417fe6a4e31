"""The list of runs: what a merge replaces, and what is read back."""

from __future__ import annotations

import pytest

from worker.index.run_list import Merging, Run, RunList


def a_list() -> RunList:
    later = [Run(number, 0, 70 + 10 * number, 80 + 10 * number, 100) for number in range(1, 5)]
    runs = [Run(0, 1, 0, 80, 800), *later]
    return RunList(10, [2, 5], 5, runs)


def test_a_merge_puts_one_run_in_place_of_those_it_read() -> None:
    listed = a_list()
    merging = Merging(0, [1, 2, 3], listed.new_number(), cells=300)
    listed.merging.append(merging)
    assert listed.end == 120
    listed.replace(merging)
    assert listed.runs == [Run(0, 1, 0, 80, 800), Run(5, 1, 80, 110, 300), Run(4, 0, 110, 120, 100)]
    assert listed.merging == []
    assert (listed.end, listed.next) == (120, 6)
    assert [run.number for run in listed.of_tier(1)] == [0, 5]


def test_a_list_is_read_as_it_was_written() -> None:
    listed = a_list()
    listed.merging.append(Merging(0, [1, 2], listed.new_number(), done=7, cells=33))
    assert RunList.unpack(listed.pack(), 99) == listed
    assert RunList.unpack(None, 99) == RunList(99)
    assert RunList(99).end == 0


@pytest.mark.parametrize("packed", [b"", b"5", b"{}", b'{"runs": [[1]]}', b"\xff"])
def test_what_is_no_list_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="its list of runs can't be read"):
        RunList.unpack(packed, 1)


@pytest.mark.parametrize(
    "run",
    [
        Run(9, 0, 119, 140, 1),
        Run(9, 1, 120, 127, 1),
        Run(9, 0, 120, 120, 1),
        Run(9, 0, 120, 1 << 32, 1),
    ],
)
def test_a_run_that_cannot_be_is_refused(run: Run) -> None:
    listed = a_list()
    listed.runs.append(run)
    with pytest.raises(ValueError, match=r"run 9 of tier \d has documents"):
        RunList.unpack(listed.pack(), 1)


def test_a_run_that_would_take_all_memory_is_refused() -> None:
    listed = a_list()
    listed.runs.append(Run(9, 99, 120, 1_000, 1))
    with pytest.raises(ValueError, match="its list of runs can't be read"):
        RunList.unpack(listed.pack(), 1)
