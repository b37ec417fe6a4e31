"""`neardup forget` with workers on Kafka: it returns when every shard is past the tombstone."""

import json
from typing import Final

import pytest

from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.command_line import on_kafka
from tests.support.index_proof import EndedRun
from tests.support.proof import prove
from worker.bus import Record
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

UNKNOWN: Final = "never-seen"
TEXT: Final = "a text that says nothing much, but is long enough to be told from others"


def forget(application: ApplicationUnderTest, ident: str) -> Record:
    """Forget a document, and return the tombstone."""
    done = on_kafka("forget", "--json", "--config", application.config, ident)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["ids"], said["judged"], said["unknown"]) == ([ident], True, [])
    (sent,) = said["tombstones"]
    return Record(sent["topic"], sent["partition"], sent["offset"], 0, ident.encode(), None)


def frame_of(application: ApplicationUnderTest, tombstone: Record) -> int:
    """Return the number of the frame that has a tombstone."""
    for record in application.fingerprints():
        frame = decode(FingerprintFrame, record.value, application.topology.layout.id)
        found = zip(frame.tombstones.offsets.tolist(), frame.tombstones.ids.unpack(), strict=True)
        if frame.partition == tombstone.partition and (
            tombstone.offset - frame.start,
            tombstone.key,
        ) in set(found):
            return record.offset
    raise AssertionError(f"no frame has the tombstone {tombstone}")


def test_forget_returns_when_every_shard_is_past_the_tombstone(launch: Launch) -> None:
    application = launch(partitions=2)
    application.start("alpha", "beta")
    application.feed(application.documents([(f"d{n}", f"{TEXT} {n * 997}") for n in range(20)]))
    application.audit.reach(20)  # Else a tombstone of another partition may be judged first.
    refused = on_kafka("forget", "--config", application.config, UNKNOWN)
    assert refused.returncode == 1
    assert "nothing was sent" in refused.stderr
    for ident in ("d3", "d4"):
        tombstone = forget(application, ident)
        reached = EndedRun.committed(application.settings, application.topology)
        assert min(reached.values()) > frame_of(application, tombstone)
        application.inputs.append(tombstone)
    prove(application)
    assert sum(record.value is None for record in application.audit.duplicate) == 2
