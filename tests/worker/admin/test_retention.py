import pytest

from tests.worker.admin.fake import FakeCluster
from worker.admin.checks import inspect
from worker.admin.plan import DEFAULT_MAX_BYTES, FINGERPRINTS, MATCHES, plan
from worker.settings.loading import load
from worker.settings.model import Settings

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@pytest.fixture
def settings() -> Settings:
    return load(overrides={"app": "a"})


@pytest.mark.parametrize(
    ("topic", "retention_ms", "severity"),
    [
        ("a.fingerprints", -1, None),
        ("a.fingerprints", 365 * DAY_MS, "error"),
        ("a.matches-0", 7 * DAY_MS, None),
        ("a.matches-0", DAY_MS - 1, "warning"),
        ("a.matches-0", 0, "error"),
        ("a.matches-0", HOUR_MS + 1, "warning"),
        ("a.matches-0", HOUR_MS, "error"),
        ("a.shards", HOUR_MS, None),
        ("a.documents", -1, None),
        ("a.documents", DAY_MS, None),
        ("a.documents", HOUR_MS, "warning"),
        ("a.unique", HOUR_MS, None),
        ("a.rejected", HOUR_MS, None),
    ],
)
def test_what_a_log_must_keep(
    settings: Settings, topic: str, retention_ms: int, severity: str | None
) -> None:
    cluster = FakeCluster(settings)
    cluster.change(topic, retention_ms=str(retention_ms))
    found = inspect(cluster.as_cluster(), settings).problems
    assert [(p.subject, p.what, p.severity) for p in found] == (
        [(topic, "retention.ms", severity)] if severity else []
    )


@pytest.mark.parametrize(
    ("retention_ms", "severity"),
    [
        (-1, None),
        (30 * DAY_MS + 60_000 + 7 * DAY_MS, None),
        (30 * DAY_MS + 60_000 + DAY_MS, None),
        (30 * DAY_MS + 60_000 + DAY_MS - 1, "warning"),
        (30 * DAY_MS + 60_000 + HOUR_MS + 1, "warning"),
        (30 * DAY_MS + 60_000 + HOUR_MS, "error"),
        (7 * DAY_MS, "error"),
    ],
)
def test_with_a_window_the_log_may_forget_what_is_older(
    retention_ms: int, severity: str | None
) -> None:
    settings = load(overrides={"app": "a", "index.window": "30d"})
    cluster = FakeCluster(settings)
    assert inspect(cluster.as_cluster(), settings).problems == []
    cluster.change("a.fingerprints", retention_ms=str(retention_ms))
    found = inspect(cluster.as_cluster(), settings).problems
    assert [(p.subject, p.what, p.severity) for p in found] == (
        [("a.fingerprints", "retention.ms", severity)] if severity else []
    )


def test_what_the_log_must_keep_for_a_window_is_said_in_units_of_time() -> None:
    settings = load(overrides={"app": "a", "index.window": "30d"})
    cluster = FakeCluster(settings)
    cluster.change("a.fingerprints", retention_ms=str(7 * DAY_MS))
    [problem] = inspect(cluster.as_cluster(), settings).problems
    assert problem.takes == "more than 2595660000 (30d1h1m)"
    assert problem.fix.endswith("--add-config retention.ms=3196860000")


def test_a_log_that_neardup_trims_is_kept_for_ever_by_brokers() -> None:
    settings = load(
        overrides={
            "app": "a",
            "index.window": "30d",
            "index.snapshots.url": "/kept",
            "index.snapshots.trim_log": True,
        }
    )
    cluster = FakeCluster(settings)
    cluster.change("a.fingerprints", retention_ms=str(365 * DAY_MS))
    [problem] = inspect(cluster.as_cluster(), settings).problems
    assert (problem.subject, problem.what, problem.takes) == (
        "a.fingerprints",
        "retention.ms",
        "-1 (no limit)",
    )


@pytest.mark.parametrize("topic", ["a.fingerprints", "a.matches-1"])
def test_what_is_between_the_stages_has_no_bound_by_size(settings: Settings, topic: str) -> None:
    cluster = FakeCluster(settings)
    cluster.change(topic, retention_bytes="1000000000")
    [problem] = inspect(cluster.as_cluster(), settings).problems
    assert (problem.subject, problem.what, problem.severity) == (topic, "retention.bytes", "error")


def test_a_progress_that_may_be_forgotten_is_a_warning(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    cluster.change("a.redrive", cleanup_policy="compact,delete")
    [problem] = inspect(cluster.as_cluster(), settings).problems
    assert (problem.subject, problem.severity) == ("a.redrive", "warning")


def test_new_topics_keep_what_the_table_says(settings: Settings) -> None:
    plans = plan(settings, settings.topology(2), DEFAULT_MAX_BYTES)
    new = {one.name: one.settings().get("retention.ms") for one in plans}
    assert new == {
        "a.documents": None,
        "a.unique": None,
        "a.duplicate": None,
        "a.rejected": None,
        "a.layout": None,
        "a.fingerprints": str(FINGERPRINTS.new_ms),
        "a.shards": None,
        "a.matches-0": str(MATCHES.new_ms),
        "a.matches-1": str(MATCHES.new_ms),
        "a.redrive": None,
    }
