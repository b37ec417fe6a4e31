"""A log from which brokers delete what is older than the window: a shard comes back without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.embedded import Run, Verdicts, by_id
from worker.bus import Outgoing, TopicPartition
from worker.stages.base import StageError

SHARDS = 2
FIRST = [(f"old{n}", f"the {n} of an age that nobody remembers, told at length, {n}" * 3)
         for n in range(20)]  # fmt: skip
THEN = [(f"new{n}", f"what came {n} days later, and was written down in full, {n}" * 3)
        for n in range(20)]  # fmt: skip


def copies(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(f"{ident}-again", text) for ident, text in texts]


def run_to(directory: Path, window: str) -> Run:
    """Feed the first texts, trim what tells of them, and feed the others."""
    run = Run(directory, partitions=1, shards=SHARDS, batch=7, window=window)
    run.feed(FIRST)
    run.finish()
    trim(run)
    run.feed(THEN)
    run.finish()
    return run


def trim(run: Run) -> None:
    """Delete all frames, with the marker behind the last one."""
    order = run.topology.order
    run.bus.trim(*order, run.bus.end_offset(*order))


def lose(run: Run) -> None:
    """Come back with empty disks."""
    path = run.embedded.application.directories.path(0).parent
    run.embedded.close()
    shutil.rmtree(path)
    run.embedded = run._open()


def judged(run: Run, texts: list[tuple[str, str]]) -> Verdicts:
    run.feed(texts)
    verdicts = by_id(run.finish())
    return {ident: verdicts[ident] for ident, _ in texts}


def of(verdicts: Verdicts) -> set[str]:
    """Return the ids that were matched."""
    return {ident for matches in verdicts.values() for ident, _ in matches}


def test_a_lost_shard_is_rebuilt_from_what_the_log_has(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = run_to(tmp_path, "30d")
    start = run.bus.start_offset(*run.topology.order)
    lose(run)
    assert judged(run, copies(FIRST)) == {ident: () for ident, _ in copies(FIRST)}
    assert of(judged(run, copies(THEN))) == {ident for ident, _ in THEN}
    said = [r.getMessage() for r in caplog.records if "where its log begins" in r.getMessage()]
    assert sorted(line.split(".")[0] for line in said) == [
        f"shard {shard}: it is rebuilt from offset {start}, where its log begins"
        for shard in range(SHARDS)
    ]
    run.embedded.close()


def test_without_a_window_it_is_not(tmp_path: Path) -> None:
    run = run_to(tmp_path, "none")
    lose(run)
    with pytest.raises(StageError, match=r"begins at .* no good snapshot"):
        run.finish()


def test_what_is_rebuilt_goes_on_after_restarts_and_is_sound(tmp_path: Path) -> None:
    run = run_to(tmp_path, "30d")
    lose(run)
    run.finish()
    run.restart()
    assert of(judged(run, copies(THEN))) == {ident for ident, _ in THEN}
    run.crash()
    assert of(judged(run, [(f"{i}-more", t) for i, t in THEN[:3]])) >= {i for i, _ in THEN[:3]}
    run.embedded.close()


@pytest.mark.parametrize("markers", [1, 2, 5])
def test_a_log_that_was_emptied_while_nothing_came_costs_no_shard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, markers: int
) -> None:
    """Several markers follow the last frame if workers wrote in turns, or aborted."""
    run = Run(tmp_path, partitions=1, shards=SHARDS, batch=7, window="30d")
    run.feed(FIRST)
    run.finish()
    order = run.topology.order
    for number in range(markers - 1):
        empty = run.bus.begin(f"worker-{number}")
        empty.append_many([Outgoing(*order, None, b"")])
        empty.abort()
    trim(run)
    low = run.bus.start_offset(*order)
    assert low == run.bus.end_offset(*order)
    seats = [TopicPartition(run.topology.seats, shard) for shard in range(SHARDS)]
    committed = run.bus.committed(run.topology.group("index"), seats)
    assert committed == dict.fromkeys(seats, low - 1 - 2 * (markers - 1))
    run.restart()
    assert of(judged(run, copies(FIRST))) == {ident for ident, _ in FIRST}
    assert not [r for r in caplog.records if "aside" in r.getMessage()]
    run.embedded.close()


def test_a_shard_that_is_lost_with_its_log_begins_anew(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, shards=SHARDS, batch=7, window="30d")
    run.feed(FIRST)
    run.finish()
    trim(run)
    lose(run)
    assert judged(run, copies(FIRST)) == {ident: () for ident, _ in copies(FIRST)}
    assert of(judged(run, copies(copies(FIRST)))) == {ident for ident, _ in copies(FIRST)}
    run.embedded.close()
