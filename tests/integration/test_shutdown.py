"""A worker that has no time to finish."""

import signal

import pytest

from tests.integration.conftest import Launch
from tests.support.corpus import corpus
from tests.support.proof import prove

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300), pytest.mark.slow]


def test_a_worker_whose_stages_are_late_says_so_and_ends_and_is_none_the_worse(
    launch: Launch,
) -> None:
    application = launch()
    worker = application.worker("alpha")
    worker.config = application.write_config("hasty.toml", {"worker": {"shutdown_seconds": 1e-6}})
    application.seat("alpha")
    application.feed(application.documents(corpus(2_000, 21)))
    application.audit.reach(200)
    worker.signal(signal.SIGTERM)
    assert worker.wait(seconds=10) == 1
    late = "fingerprint, index, route did not finish within worker.shutdown_seconds (1e-06)"
    assert worker.current().splitlines()[-1] == f"neardup: {late}"
    assert "stopped cleanly" not in worker.current()
    worker.config = application.config
    application.seat("alpha")
    prove(application)
