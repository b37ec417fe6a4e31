"""Schedules: drawn from a seed alone, and the same again from what was printed."""

from itertools import pairwise

import pytest

from chaos.nemesis import FAULTS, parse, plan, printed

VICTIMS = ("alpha", "beta")


def test_a_seed_gives_one_schedule_and_another_seed_another() -> None:
    faults = tuple(FAULTS)
    one = plan(faults, VICTIMS, 7, 40, (5, 20))
    assert one == plan(faults, VICTIMS, 7, 40, (5, 20))
    assert one != plan(faults, VICTIMS, 8, 40, (5, 20))
    assert {strike.fault for strike in one} == set(faults)
    for earlier, later in pairwise(one):
        assert 4.8 < later.at - earlier.at < 20.2


def test_targets_and_holds_are_those_of_the_fault_and_take_turns() -> None:
    for name, fault in FAULTS.items():
        targets = fault.targets(VICTIMS)
        strikes = plan((name,), VICTIMS, 3, 2 * len(targets), (1, 2))
        assert {strike.target for strike in strikes} == set(targets)
        assert {strike.hold for strike in strikes} <= set(fault.holds)


def test_what_is_printed_can_be_replayed() -> None:
    schedule = plan(tuple(FAULTS), VICTIMS, 7, 20, (5, 20))
    assert parse(printed(schedule) + "\n") == schedule
    with pytest.raises(ValueError, match="no fault 'flood'"):
        parse('{"at": 1, "fault": "flood", "target": "", "hold": 1}')
