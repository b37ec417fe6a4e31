"""Variables that Kubernetes sets are no settings; misspelt settings are errors."""

from __future__ import annotations

import pytest

from worker.settings.errors import ConfigurationError
from worker.settings.loading import advice, check_environment, load, service_links

LINKS = {
    "NEARDUP_SERVICE_HOST": "10.96.14.2",
    "NEARDUP_SERVICE_PORT": "9464",
    "NEARDUP_SERVICE_PORT_METRICS": "9464",
    "NEARDUP_PORT": "tcp://10.96.14.2:9464",
    "NEARDUP_PORT_9464_TCP": "tcp://10.96.14.2:9464",
    "NEARDUP_PORT_9464_TCP_PROTO": "tcp",
    "NEARDUP_PORT_9464_TCP_PORT": "9464",
    "NEARDUP_PORT_9464_TCP_ADDR": "10.96.14.2",
    "NEARDUP_KAFKA_BOOTSTRAP_SERVICE_HOST": "fd00::14",
    "NEARDUP_WORKER_PORT_53_UDP": "udp://10.96.14.3:53",
}


def test_the_links_of_services_are_ignored_with_one_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in LINKS.items():
        monkeypatch.setenv(name, value)
    assert service_links() == sorted(LINKS)
    settings = load(overrides={"similarity.seed": "0123456789abcdef"})
    (warning,) = advice(settings)
    assert "NEARDUP_KAFKA_BOOTSTRAP_SERVICE_HOST" in warning
    assert "and 7 more" in warning
    assert "enableServiceLinks: false" in warning


@pytest.mark.parametrize(
    ("name", "value", "near"),
    [
        ("NEARDUP_KAFKA__BOOTSRAP", "kafka:9092", "NEARDUP_KAFKA__BOOTSTRAP"),
        ("NEARDUP_WORKER_HTTP_PORT", "9464", "NEARDUP_WORKER__HTTP_PORT"),
        ("NEARDUP_WORKER__HTTP__PORT", "tcp://10.96.14.2:9464", "NEARDUP_WORKER__HTTP_PORT"),
        ("NEARDUP_WORKER_HTTP_HOST", "10.96.14.2", "NEARDUP_WORKER__HTTP_HOST"),
        ("NEARDUP_APPP", "news", "NEARDUP_APP"),
    ],
)
def test_a_misspelt_setting_is_an_error(name: str, value: str, near: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: no such setting; did you mean {near}"):
        check_environment({name: value})


@pytest.mark.parametrize("what", ["ACCURACY_DATA", "BENCH_DATA", "REQUIRE_KAFKA", "TEST_DATA"])
def test_variables_of_benchmarks_and_tests_are_no_settings(what: str) -> None:
    check_environment({f"NEARDUP_{what}": "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEARDUP_SERVICE_HOST", "kafka.example"),
        ("NEARDUP_SERVICE_PORT", "http"),
        ("NEARDUP_PORT_9464_TCP_PROTO", "http"),
        ("NEARDUP_PORT", "9464"),
    ],
)
def test_a_link_has_the_value_of_one(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: no such setting"):
        check_environment({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEARDUP_KAFKA", "hush"),
        ("NEARDUP_KAFKA__COMMON", '{"sasl.password": "hush"'),
        ("NEARDUP_INDEX__SNAPSHOTS__OPTIONS", "{'key': 'hush'}"),
    ],
)
def test_a_table_that_is_not_json_is_named_and_not_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert str(caught.value) == f"{name}: must be JSON"
