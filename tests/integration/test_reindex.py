"""The index of running workers is replaced while documents stream."""

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.checker import Source, Verdict, check, differences, verdicts
from tests.support.corpus import corpus, scaled
from tests.support.proof import book_of
from tests.support.replay import replay
from worker.admin import Cluster
from worker.admin.reindex.in_use import planned
from worker.wire import POSITION_BITS

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.exhaustive]

SLICE = 200


class Feeder:
    """Feeds slices of a corpus, one every tenth of a second, until told to stop."""

    def __init__(self, application: ApplicationUnderTest, count: int, seed: int) -> None:
        """Begin at once."""
        self._application = application
        self._texts = corpus(count, seed)
        self._stopping = threading.Event()
        self.fed = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.1) and self.fed < len(self._texts):
            some = self._texts[self.fed : self.fed + SLICE]
            self._application.feed(self._application.documents(some, self.fed))
            self.fed += len(some)

    def stop(self) -> None:
        """Feed no more."""
        self._stopping.set()
        self._thread.join()


def started(application: ApplicationUnderTest, *arguments: str) -> subprocess.Popen[str]:
    """Start ``neardup reindex``."""
    line = [sys.executable, "-m", "worker.cli", "reindex", "--config", str(application.config)]
    return subprocess.Popen(
        [*line, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def expected(application: ApplicationUnderTest, directory: Path) -> Mapping[Source, Verdict]:
    """Give the verdicts of the earlier generation before the hand-over, of the next one after."""
    settings = application.settings
    plan = planned(Cluster(settings.kafka_options()), settings)
    assert plan is not None
    base = application.topology
    frames, numbers = application.fingerprints(), application.hand_overs()
    found: dict[Source, Verdict] = {}
    for generation in (plan.base, plan.current):
        since = numbers[generation.number] if generation.number else 0
        replayed = replay(
            frames, generation.settings(settings), generation.topology(base), 1,
            directory / str(generation.number),
        )  # fmt: skip
        found |= {at: one for at, one in replayed.items() if one.sequence >> POSITION_BITS >= since}
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_shards_and_rules_change_while_documents_stream(
    launch: Launch,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    protocol: str,
) -> None:
    application = launch(settings={"index": {"shards": 2}, "kafka": {"group_protocol": protocol}})
    application.seat("alpha", "beta")
    feeder = Feeder(application, scaled(60_000, 300_000), 31)
    application.audit.reach(2_000)
    with started(application, "--shards", "4", "--threshold", "0.9") as command:
        application.audit.until(lambda: command.poll() is not None, 240, "the command")
        said, _ = command.communicate()
    assert command.returncode == 0, said
    application.audit.reach(feeder.fed)
    feeder.stop()
    application.audit.finish()
    book = book_of(application)
    assert check(book.history) == []
    assert differences(verdicts(book.history), expected(application, tmp_path)) == []
    longest = max(arrival.wait for arrival in application.audit.arrivals)
    record_property("longest_wait_seconds", round(longest, 2))
    print(f"{feeder.fed} documents, longest wait {longest:.2f} s")  # noqa: T201 -- a figure
