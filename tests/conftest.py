"""Fixtures for tests on a real Kafka, and what a run says about them at its end.

Any test that asks for `kafka` or `kafka_cluster` gets the marker ``kafka``. Without a
broker these tests are skipped, and one loud line at the end says so; with
``NEARDUP_REQUIRE_KAFKA=1`` the run fails instead, so that CI can't pass without them.
``NEARDUP_TEST_KAFKA=host:port`` uses a broker that runs already; tests that need to
break a cluster are then skipped.
"""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import settings

from localkafka.broker import Config, Kafka, KafkaCluster
from localkafka.jars import KafkaUnavailable, jars, java, kafka_version
from localkafka.prepared import prepared
from tests.support.clusters import EXTERNAL, ClusterFactory
from tests.support.corpus import SCALE, SCALES, examples
from tests.support.needed import Needed
from tests.support.order import longest_first

REQUIRED = os.environ.get("NEARDUP_REQUIRE_KAFKA") == "1"
KAFKA_FIXTURES = {"kafka", "kafka_cluster"}
ON_BROKER = "on a real broker"
RUN_ID = uuid.uuid4().hex[:8]


@dataclass
class _RealKafka:
    """What this run knows about its broker."""

    unavailable: str | None = None
    ran: int = 0
    skipped: set[str] = field(default_factory=set)


STATE = pytest.StashKey[_RealKafka]()


class _Counter:
    """Counts the tests whose body ran on a real broker, and why others didn't.

    By their reports: where tests run side by side, these are all that the summary's process sees.
    A report's keywords don't tell markers from folders, and there are folders called ``kafka``.
    """

    def __init__(self, state: _RealKafka) -> None:
        self._state = state

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if ON_BROKER not in dict(report.user_properties):
            return
        if report.skipped and isinstance(report.longrepr, tuple):
            self._state.skipped.add(str(report.longrepr[2]).removeprefix("Skipped: "))
        elif report.when == "call" and not report.skipped:
            self._state.ran += 1


def pytest_configure(config: pytest.Config) -> None:
    """Keep the run's state on its config: the hooks below get no fixtures."""
    if SCALE not in SCALES:
        raise pytest.UsageError(
            f"NEARDUP_TEST_SCALE: got {SCALE!r}, must be double, full, or not set"
        )
    # Without a deadline of its own: pytest-timeout ends what hangs.
    settings.register_profile("any machine", deadline=None, max_examples=examples(50, 200))
    settings.load_profile("any machine")
    state = config.stash[STATE] = _RealKafka()
    config.pluginmanager.register(_Counter(state))
    config.pluginmanager.register(Needed())


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fetch and prepare Kafka once, before several processes want it at the same time."""
    ours = not hasattr(session.config, "workerinput")
    if ours and session.config.getoption("numprocesses", None) and not EXTERNAL:
        _look_for_broker(session.config)


@pytest.hookimpl(tryfirst=True)  # Before `-m kafka` selects by the marker.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test that reaches a real broker, so that no file has to remember."""
    for item in items:
        if isinstance(item, pytest.Function) and KAFKA_FIXTURES & set(item.fixturenames):
            item.add_marker("kafka")
        if item.get_closest_marker("kafka"):
            item.user_properties.append((ON_BROKER, True))
    if hasattr(config, "workerinput"):
        _sort_by_files(items)


def _sort_by_files(items: list[pytest.Item]) -> None:
    """Sort for processes that run files side by side: each takes the next one."""

    def file(item: pytest.Item) -> str:
        return item.nodeid.partition("::")[0]

    on_broker = {file(item) for item in items if item.get_closest_marker("kafka")}
    files = longest_first(dict.fromkeys(map(file, items)), on_broker)
    turns = {name: turn for turn, name in enumerate(files)}
    items.sort(key=lambda item: turns[file(item)])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for a broker once, and outside any test's timeout: it may be a download."""
    if session.config.option.collectonly or EXTERNAL:
        return
    if not any(item.get_closest_marker("kafka") for item in session.items):
        return
    _look_for_broker(session.config)


def _look_for_broker(config: pytest.Config) -> None:
    try:
        prepared(java(), jars())
    except KafkaUnavailable as why:
        config.stash[STATE].unavailable = str(why)
        if REQUIRED:
            pytest.exit(f"REAL-KAFKA TESTS REQUIRED BUT: {why}", returncode=1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip before any fixture starts."""
    why = item.config.stash[STATE].unavailable
    if why is not None and item.get_closest_marker("kafka"):
        pytest.skip(why)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what ran on a real broker, in a line that CI can look for."""
    state = config.stash[STATE]
    if state.ran:
        broker = f"the broker at {EXTERNAL}" if EXTERNAL else f"Apache Kafka {kafka_version()}"
        terminalreporter.write_line(f"real Kafka: {broker}, {state.ran} tests")
    for why in sorted(state.skipped):
        terminalreporter.write_line(f"REAL-KAFKA TESTS SKIPPED: {why}", red=True, bold=True)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """Yield a broker that all tests of the run share; keep apart by `app_id`."""
    if EXTERNAL:
        broker = Kafka(EXTERNAL)
        yield broker
        _delete_topics(broker)
    else:
        with KafkaCluster() as cluster:
            yield cluster


@pytest.fixture
def kafka_cluster() -> Iterator[ClusterFactory]:
    """Yield a factory of clusters that a test may break: 3 nodes unless told otherwise."""
    if EXTERNAL:
        pytest.skip("needs a cluster to break, and NEARDUP_TEST_KAFKA names one to leave alone")
    with ExitStack() as clusters:

        def start(nodes: int = 3, config: Config | None = None) -> KafkaCluster:
            return clusters.enter_context(KafkaCluster(nodes, config))

        yield start


@pytest.fixture
def app_id(request: pytest.FixtureRequest) -> str:
    """Return a prefix for topics and groups that no other test or run uses."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:60]
    return f"neardup-test-{RUN_ID}-{name}-{uuid.uuid4().hex[:6]}"


def _delete_topics(broker: Kafka) -> None:
    admin = broker.admin()
    prefix = f"neardup-test-{RUN_ID}-"
    ours = [name for name in admin.list_topics(timeout=30).topics if name.startswith(prefix)]
    if ours:
        for deleted in admin.delete_topics(ours).values():
            deleted.result(timeout=60)
