"""What a worker tells over HTTP."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from worker.health import Health, serving
from worker.metrics import Metrics
from worker.settings import ConfigurationError
from worker.stages import RouteCounts


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_health_and_metrics_are_served() -> None:
    metrics = Metrics(clock=lambda: 10.0)
    metrics.routed(RouteCounts(unique=3, duplicate=2, timestamps=[9_900]))
    health = Health()
    with serving("127.0.0.1", 0, metrics.registry, lambda: health) as port:
        assert get(port, "/healthz")[0] == get(port, "/readyz")[0] == 200
        health = replace(health, restoring=["index"])
        assert get(port, "/healthz")[0] == 200
        status, body = get(port, "/readyz")
        assert status == 503
        assert json.loads(body)["restoring"] == ["index"]
        health = Health(failed="why")
        assert get(port, "/healthz")[0] == 503
        _, exported = get(port, "/metrics")
        assert 'neardup_documents_total{verdict="unique"} 3.0' in exported
        assert 'neardup_latency_seconds_bucket{le="0.1"} 1.0' in exported
        assert get(port, "/nothing")[0] == 404
    with pytest.raises(urllib.error.URLError):
        get(port, "/healthz")


def test_an_address_in_use_is_a_wrong_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        serve = serving("127.0.0.1", port, Metrics().registry, Health)
        with pytest.raises(ConfigurationError, match=rf"can't listen on 127\.0\.0\.1:{port}"):
            serve.__enter__()


@pytest.mark.parametrize(
    ("health", "alive", "ready"),
    [
        (Health(), True, True),
        (Health(waiting=["route"]), True, False),
        (Health(catching_up=["route"]), True, False),
        (Health(stopping=True), True, False),
        (Health(stalled=["route"]), False, False),
        (Health(failed="x"), False, False),
    ],
)
def test_alive_and_ready(health: Health, alive: object, ready: object) -> None:
    assert (health.alive, health.ready) == (alive, ready)
