"""What every run ends with: all invariants hold, and a replay comes to the same verdicts."""

from collections.abc import Iterable

from tests.integration.audit import Audit, read_all
from tests.integration.checker import History, check, differences, verdicts
from tests.integration.harness import ApplicationUnderTest
from tests.integration.replay import replay
from worker.bus.port import TopicPartition

__all__ = ["history_of", "prove"]


def history_of(application: ApplicationUnderTest) -> History:
    """Give all that went in and came out so far."""
    audit: Audit = application.audit
    return History(application.inputs, audit.unique, audit.duplicate, audit.rejected)


def prove(
    application: ApplicationUnderTest,
    shards: Iterable[int] = (1,),
    *,
    seconds: float = 120.0,
    may_end: bool = False,
) -> History:
    """Read to the end; fail with what is wrong."""
    application.audit.finish(seconds, may_end=may_end)
    history = history_of(application)
    problems = check(history)
    assert not problems, "\n".join(problems)
    published = verdicts(history)
    frames = read_all(
        application.kafka.bootstrap, TopicPartition(application.topology.fingerprints, 0)
    )
    for count in shards:
        expected = replay(
            frames, application.settings, application.topology, count, application.directory
        )
        different = differences(published, expected)
        assert not different, "\n".join([f"replayed with {count} shards:", *different])
    return history
