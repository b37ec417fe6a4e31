"""`neardup reindex --from-documents` at a steady load: what is lost, doubled, wrong, or late.

A feeder process sends a steady stream, and stamps each document when it sends it. Two workers judge
it. After some minutes the command has them make all fingerprints anew, by other parameters. A
`read_committed` consumer in this process notes when each verdict arrives, until half a minute after
the hand-over.

Then all documents are judged twice without Kafka, by one shard and in the order of the published
sequence numbers: by the earlier parameters and by the later ones. What was published has the
earlier log's numbers or the later one's, and so tells which of the two it must be equal to.

    python -m bench.reindex BOOTSTRAP RATE    (the feeder alone, until it is ended)
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.cluster import (
    PARTITIONS,
    application,
    broker,
    feed_steadily,
    numbered,
)
from bench.cluster import worker as run_worker
from bench.corpus import source, texts
from bench.processes import Program
from bench.report import Target, console
from bench.verdicts import Reader, Verdict
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned
from worker.offline.filter import Line, OfflineFilter, offline_settings
from worker.wire.frame import POSITION_BITS

RATE: Final = 2_000
WAIT_SECONDS: Final = 10.0
SHARDS: Final = 2
LATER: Final[Mapping[str, str]] = {
    "similarity.shingle_size": "4",
    "similarity.slots": "192",
    "similarity.fold_digits": "true",
}
_AFTER_SECONDS: Final = 30.0
_AT_ONCE: Final = 2_000
_ENDLESS: Final = 1 << 40


class Timing(NamedTuple):
    """When the command began, when the first verdict of the new index came, and when it ended."""

    began: float
    first: float
    ended: float


class Plain(NamedTuple):
    """The matches of all documents by the earlier parameters, and by the later ones."""

    earlier: Sequence[bytes]
    later: Sequence[bytes]


def run(*, quick: bool = False, rate: int = RATE) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    before = 20.0 if quick else 180.0
    with (
        broker(lasting=True) as kafka,
        application(kafka, "reindex", SHARDS) as (settings, environment),
        run_worker(environment, "w0") as one,
        run_worker(environment, "w1") as other,
        Reader(kafka, settings) as reader,
        Program(["bench.reindex", kafka.bootstrap, str(rate)]) as feeder,
    ):
        programs = (one, other, feeder)
        reader.listen(before, programs)
        began = time.time()
        command = ["worker.cli", "reindex", "--from-documents"]
        with Program(command, {**environment, **_environment(LATER)}) as reindex:
            reader.until(reindex, programs)
            ended = time.time()
            console.print(reindex.said().strip(), style="dim", markup=False)
        reader.listen(_AFTER_SECONDS, programs)
        feeder.stop()
        written = reader.drain((one, other))
        plan = planned(Cluster(settings.kafka_options()), settings)
    if plan is None or not plan.current.log:
        raise SystemExit("the new fingerprints aren't in use")
    verdicts = sorted(reader.verdicts, key=lambda one: one.sequence)
    handed_over = plan.current.numbered_from << POSITION_BITS
    earlier = [one for one in verdicts if one.sequence < handed_over]
    later = verdicts[len(earlier) :]
    if not earlier or not later:
        raise SystemExit("one of the two indexes has judged nothing")
    timing = Timing(began, min(one.read for one in later), ended)
    plain = Plain(_plainly({}, verdicts), _plainly(LATER, verdicts))
    return _report(
        rate=rate,
        written=written,
        seen=reader.seen,
        verdicts=verdicts,
        earlier=len(earlier),
        timing=timing,
        plain=plain,
    )


def _environment(chosen: Mapping[str, str]) -> dict[str, str]:
    return {"NEARDUP_" + key.upper().replace(".", "__"): value for key, value in chosen.items()}


def _plainly(chosen: Mapping[str, str], order: Sequence[Verdict]) -> list[bytes]:
    """Return the matches of documents in their order, judged by one shard and without Kafka."""
    values = list(numbered(texts(max(one.number for one in order) + 1)))
    found: list[bytes] = []
    with (
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
        OfflineFilter(offline_settings(None, chosen), Path(folder)) as plain,
    ):
        for first in range(0, len(order), _AT_ONCE):
            some = [values[one.number] for one in order[first : first + _AT_ONCE]]
            verdicts = plain.judge([Line(b"", value, len(value)) for value in some])
            found += [verdict.matches for verdict in verdicts]
    return found


def _report(  # noqa: PLR0913 -- all that was found
    *,
    rate: int,
    written: set[bytes],
    seen: Mapping[bytes, int],
    verdicts: Sequence[Verdict],
    earlier: int,
    timing: Timing,
    plain: Plain,
) -> list[Target]:
    seconds = timing.ended - timing.began
    came = sum(timing.began <= one.sent < timing.ended for one in verdicts) / seconds
    found = sum(bool(one.matches) for one in verdicts)
    console.print(
        f"{len(written):,} documents ({source()}), {found:,} of them duplicates, N = {PARTITIONS},"
        f" P = {SHARDS}, two workers; {earlier:,} judged by the earlier index. The first verdict of"
        f" the new one came {timing.first - timing.began:.0f} s after the command, which ended"
        f" after {seconds:.0f} s"
    )
    for name, waits in _waits(verdicts, timing):
        console.print(f"Longest wait {name}: {max(waits, default=0.0):.2f} s")
    console.print(f"The other parameters find other matches for {_different(*plain):,} documents")
    published = [one.matches for one in verdicts]
    targets = [
        ("documents/s that came while it ran", came, 0.99 * rate, True, ",.0f"),
        ("lost", len(written - seen.keys()), 0, False, ",.0f"),
        ("doubled", sum(seen.values()) - len(seen), 0, False, ",.0f"),
        ("judged otherwise before the hand-over",
         _different(published[:earlier], plain.earlier[:earlier]), 0, False, ",.0f"),
        ("judged otherwise after it",
         _different(published[earlier:], plain.later[earlier:]), 0, False, ",.0f"),
        ("longest wait, s", max(one.wait for one in verdicts if one.sent >= timing.began),
         WAIT_SECONDS, False, ".2f"),
    ]  # fmt: skip
    return [
        Target(f"reindex from documents: {what}", value, limit, at_least=at_least, form=form)
        for what, value, limit, at_least, form in targets
    ]


def _different(some: Sequence[bytes], others: Sequence[bytes]) -> int:
    return sum(one != other for one, other in zip(some, others, strict=True))


def _waits(verdicts: Sequence[Verdict], timing: Timing) -> Iterator[tuple[str, list[float]]]:
    """Yield the waits of documents by when they were sent."""
    bounds = [timing.began - 60, timing.began, timing.first - WAIT_SECONDS, timing.ended, 2e10]
    names = ("in the minute before", "while it was built", "from 10 s before the hand-over on",
             "after the command")  # fmt: skip
    for number, name in enumerate(names):
        low, high = bounds[number : number + 2]
        yield name, [one.wait for one in verdicts if low <= one.sent < high]


if __name__ == "__main__":
    feed_steadily(sys.argv[1], numbered(texts(_ENDLESS)), float(sys.argv[2]))
