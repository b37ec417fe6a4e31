"""The law of ends: what a cell does not expect breaks it, and the table counts all."""

from chaos.cell import Ending, Outcome
from chaos.matrix import CELLS
from chaos.nemesis import EVERYWHERE, FAULTS
from chaos.report import markdown
from chaos.soak import REINDEXING
from chaos.supervisor import Restart

FULL = Restart(1.0, "alpha", 1, "neardup: the index can't be written: No space left on device")
GAP = Restart(2.0, "beta", 1, "neardup: frame 27 of partition 3 was lost or doubled")


def test_a_cell_expects_only_the_ends_that_it_names() -> None:
    assert CELLS["disk-full"].unexpected([FULL, GAP]) == [GAP]
    assert CELLS["worker-kill"].unexpected([FULL, GAP]) == [FULL, GAP]
    assert not Ending(2, "No space").fits(FULL)


def test_ends_of_one_kind_differ_in_numbers_only() -> None:
    other = Restart(3.0, "gamma", 1, "neardup: frame 9 of partition 0 was lost or doubled")
    assert GAP.kind == other.kind != FULL.kind


def test_the_table_shows_how_often_and_how_workers_ended() -> None:
    quiet = Outcome("zombie", "classic")
    full = Outcome("disk-full", "classic", restarts=[FULL, FULL])
    mixed = Outcome("time", "consumer", restarts=[FULL, Restart(4.0, "alpha", 2, "")])
    lines = markdown([quiet, full, mixed]).splitlines()[2:]
    assert [line.split(" | ")[4] for line in lines] == ["0", "2 (status 1)", "2 (1: 1, 2: 1)"]


def test_a_fault_that_needs_its_own_cell_has_one_and_strikes_nowhere_else() -> None:
    own = FAULTS.keys() - set(EVERYWHERE)
    cells = [*CELLS.values(), REINDEXING]
    assert own <= {name for cell in cells for name in cell.faults}
    assert not own & set(CELLS["everything"].faults)
