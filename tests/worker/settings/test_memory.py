"""A worker's memory is divided: nothing is given away twice, and what is set stays as it is set."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.memory import LEAST_MEMORY, Machine, MemoryShares, Wishes, automatic, divided

MIB, GIB = 1 << 20, 1 << 30
STAGES = ("fingerprint", "index", "route")

some_wishes = st.builds(
    Wishes,
    stages=st.sets(st.sampled_from(STAGES), min_size=1).map(tuple),
    shards=st.integers(1, 16),
    standby=st.booleans(),
    groups=st.booleans(),
)
totals = st.integers(LEAST_MEMORY, 64 * GIB)


def parts(shares: MemoryShares) -> int:
    return (
        shares.process
        + shares.bursts
        + shares.lanes
        + shares.clients
        + shares.groups
        + shares.index
    )


@given(totals, some_wishes)
def test_the_parts_are_the_whole(total: int, wishes: Wishes) -> None:
    shares = divided(total, wishes)
    assert parts(shares) == total
    assert shares.fits
    assert shares.most_cache == min(16 * MIB, shares.index - shares.write_buffers)
    assert min(shares.lanes, shares.clients, shares.batch) >= 0
    assert shares.groups == (24 * MIB if wishes.groups else 0)
    assert sum(shares.fetched) == shares.client
    assert 2 * shares.write_buffer <= shares.write_buffers


@given(totals, some_wishes)
def test_readers_of_the_log_share_a_clients_part(total: int, wishes: Wishes) -> None:
    """Each shard may need its own."""
    shares = divided(total, wishes)
    least = 3 * MIB
    assert shares.log_reader == max(least, shares.client // wishes.shards)


@given(totals, some_wishes)
def test_more_memory_makes_no_part_smaller(total: int, wishes: Wishes) -> None:
    less, more = divided(total, wishes), divided(total + 7 * MIB, wishes)
    for name in ("batch", "lanes", "client", "index", "write_buffers", "write_buffer"):
        assert getattr(less, name) <= getattr(more, name)


@given(totals, some_wishes)
def test_what_gains_nothing_from_more_gets_no_more(total: int, wishes: Wishes) -> None:
    shares = divided(total, wishes)
    assert shares.batch <= 16 * MIB
    assert shares.lanes <= 64 * MIB
    assert shares.client <= 48 * MIB
    assert shares.write_buffers <= 128 * MIB
    assert shares.write_buffer <= 32 * MIB


@given(totals, some_wishes)
def test_what_is_set_stays(total: int, wishes: Wishes) -> None:
    wishes = dataclasses.replace(wishes, cache=3, write_buffer=5 * MIB, lanes=7 * MIB, batch=MIB)
    shares = divided(total, wishes)
    assert (shares.cache, shares.write_buffer, shares.batch) == (3, 5 * MIB, MIB)
    assert shares.lanes == (7 * MIB if "route" in wishes.stages else 0)
    assert shares.write_buffers == 5 * MIB * wishes.shards


@pytest.mark.parametrize(
    ("found", "share"),
    [
        (Machine(64 * GIB, 8 * GIB), 6 * GIB),
        (Machine(64 * GIB, 64 * MIB), LEAST_MEMORY),
        (Machine(64 * GIB, None), GIB),
        (Machine(2 * GIB, None), GIB // 2),
        (Machine(GIB // 2, None), LEAST_MEMORY),
    ],
)
def test_a_limit_is_for_the_worker_and_a_machine_is_shared(found: Machine, share: int) -> None:
    assert automatic(found) == share


def test_what_is_set_must_fit_if_the_memory_is_set() -> None:
    large = {"index.cache_bytes": 400 * MIB}
    assert load(overrides=large).memory().cache == 400 * MIB
    assert load(overrides={**large, "worker.memory": "1GiB"}).memory().fits
    with pytest.raises(ConfigurationError) as raised:
        load(overrides={**large, "worker.memory": "512MiB"})
    assert str(raised.value) == (
        "worker.memory: got 512MiB, which can't hold index.cache_bytes, index.write_buffer_bytes,"
        " worker.buffer_bytes and worker.batch_bytes as they are set; raise it, or leave some of"
        " these out"
    )


@pytest.mark.parametrize("text", ["255MiB", "1 GiB", "lots", "", "1073741824"])
def test_a_size_that_is_none_or_too_small_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(overrides={"worker.memory": text})
    assert str(raised.value) == (
        f"worker.memory: got {text!r}, must be auto, or a size of at least 256MiB, such as 1GiB or"
        " 800MiB"
    )


def test_the_memory_is_what_is_set() -> None:
    assert load(overrides={"worker.memory": "0.75GiB"}).memory().total == 768 * MIB
    assert load().memory().total >= LEAST_MEMORY
