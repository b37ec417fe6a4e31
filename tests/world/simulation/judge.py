"""How every world ends, and what is wrong with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lsh.index import NO_TIME
from tests.oracle.clock import NaiveClock
from tests.support.checker import check, differences
from tests.support.checker.history import History, Source, frame_ranges, reason, source, verdicts
from tests.support.checker.index import dump, index_differences, rebuilt
from tests.support.replay import replay
from tests.world.clock import HOUR
from tests.world.simulation.timed import TimedWorld
from worker.app import Application
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.matches import MatchFrame

SHOWN: Final = 5
ATTEMPTS: Final = 3
"""How often a worker is started that ends by itself."""
LAST: Final = "last"
"""Begins the ids of the documents that are written at the end."""


def problems(world: TimedWorld, directory: Path) -> list[str]:
    """Let the application come to its end, and say what is wrong with that.

    All workers that ever ran are started again, a document is written to every partition,
    and all go on until nobody has anything to do. Then

    - no document is published twice, or otherwise than a replay of the run's own order says;
    - if the application runs: every document is published, or it was deleted after it had
      been judged, and is on *rejected* for that, unless shard 0's answer, which names it, was
      deleted as well; and without a window, each shard equals one rebuilt from its log;
    - if it doesn't: something was lost that it can't go on without.
    """
    runs = _runs_at_last(world)
    with tempfile.TemporaryDirectory(dir=directory) as place:
        found = [*_published(world, Path(place), complete=runs)]
        if runs and world.settings.index.window_ms is None:
            found += _indexes(world, Path(place))
    found += [
        f"nothing was lost, and yet {ending.worker} ended: {ending.what}"
        for ending in world.endings
        if not ending.excused
    ][:SHOWN]
    if not runs and not world.endings:
        found.append("the application stands still, and nobody says why")
    return found


def _runs_at_last(world: TimedWorld) -> bool:
    """Start all, twice, and feed them; tell whether they run, and have nothing to do."""
    for name in world.lives:
        world.wake(name)
    names = sorted(world.known)
    everywhere = range(world.topology.layout.partitions)
    for turn in range(2):
        if not _up(world, names):
            return False
        texts = [(f"{LAST}-{turn}-{number}", f"{LAST} {turn} {number}") for number in everywhere]
        world.writer.write(texts, everywhere)
        if not _up(world, names):
            return False
        if turn == 0:
            for name in names:
                world.stop(name)
    return True


def _up(world: TimedWorld, names: list[str]) -> bool:
    """Start whoever doesn't run, until all do and nobody has anything to do; or give up."""
    for _ in range(ATTEMPTS):
        for name in names:
            world.start(name)
        if world.quiet() and set(names) == world.lives.keys():
            return True
    return False


def _published(world: TimedWorld, directory: Path, *, complete: bool) -> Iterator[str]:
    topology, archive = world.topology, world.archive
    gone = {
        source(record): record
        for record in archive.of(topology.rejected)
        if reason(record) == "payload-gone"
    }
    for at in sorted(gone.keys() - world.losses.unpublished):
        yield f"document {at} is said to be gone, and is not"
    published = {
        source(r)
        for topic in (topology.unique, topology.duplicate, topology.rejected)
        for r in archive.of(topic)
    }
    unnamed = {
        loss.place.partition
        for loss in world.losses.fatal
        if loss.place.topic == topology.matches(0)
    }
    excused = {at for at in world.losses.unpublished if at[0] in unnamed} - published
    inputs = [
        record
        for record in world.writer.written
        if (at := (record.partition, record.offset)) not in excused | gone.keys()
        and (complete or at in published)
    ]
    frames = archive.of(topology.fingerprints)
    history = History(
        inputs,
        archive.of(topology.unique),
        archive.of(topology.duplicate),
        [record for record in archive.of(topology.rejected) if source(record) not in gone],
        frames=frame_ranges(frames, topology.layout.id),
        parameters=topology.layout.parameters,
    )
    yield from check(history, partial=not complete or bool(gone or world.losses.fatal))
    late = _late(world)
    own = {at: verdict for at, verdict in verdicts(history).items() if at not in late}
    expected = replay(frames, world.settings, topology, 1, directory)
    yield from differences(own, {at: verdict for at, verdict in expected.items() if at in own})


def _late(world: TimedWorld) -> set[Source]:
    """Return the documents that were judged when frames may have been deleted that still count.

    What they match may be on no disk by then, and nowhere in the log.
    """
    kept, window = world.measures.keep.fingerprints, world.settings.index.window_ms
    if kept is None or window is None or not world.bus.start_offset(*world.topology.order):
        return set()
    margin = kept * HOUR - window
    nows = _nows(world)
    late = set()
    for shard in range(world.topology.layout.shards):
        for record in world.archive.of(world.topology.matches(shard)):
            frame = decode(MatchFrame, record.value, world.topology.layout.id)
            for offset in range(frame.start, frame.end):
                at = frame.partition, offset
                now = nows.get(at)
                if now is None or record.timestamp - now > margin:
                    late.add(at)
    return late


def _nows(world: TimedWorld) -> dict[Source, int | None]:
    """Return what was now when each document came."""
    allowance = world.settings.index.future_allowance_ms
    naive, nows = NaiveClock(world.settings.rules()), dict[Source, int | None]()
    for record in world.archive.of(world.topology.fingerprints):
        frame = decode(FingerprintFrame, record.value, world.topology.layout.id)
        for offset, time in zip(frame.offsets.tolist(), frame.times.tolist(), strict=True):
            own = None if time == NO_TIME else min(time, record.timestamp + allowance)
            nows[frame.partition, frame.start + offset] = naive.come(own).now
    return nows


def _indexes(world: TimedWorld, directory: Path) -> Iterator[str]:
    """Compare every shard with one that is rebuilt from all that its log ever held."""
    topology = world.topology
    stores = {s: store for life in world.lives.values() for s, store in life.index.stores().items()}
    application = Application(world.settings, topology, world.bus, directory)
    for shard in range(topology.layout.shards):
        if shard not in stores:
            yield f"shard {shard} has no owner"
            continue
        frames = world.archive.of(topology.fingerprints)
        fresh = rebuilt(frames, topology, application.settings.rules(), shard, directory)
        yield from list(index_differences(dump(stores[shard]), fresh))[:SHOWN]
