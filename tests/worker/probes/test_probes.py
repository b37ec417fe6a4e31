"""What a worker answers to probes and scrapes, and when it is alive and ready."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.probes.probes import Health, Pages


def ask(pages: Pages, request: str) -> tuple[int, dict[str, str], str]:
    """Return the status, the headers and the body of the answer to a request."""
    head, _, body = pages.answer(f"{request}\r\nHost: x\r\n\r\n".encode()).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body.decode()


def test_health_and_metrics() -> None:
    metrics = Metrics("news")
    metrics.add(table.DOCUMENTS, 3, "unique")
    metrics.observe(table.LATENCY_SECONDS, [0.1])
    health = Health()
    pages = Pages(metrics, lambda: health)
    assert ask(pages, "GET /healthz HTTP/1.1")[0] == 200
    assert ask(pages, "GET /readyz?verbose HTTP/1.0")[0] == 200
    health = replace(health, restoring=["index"])
    assert ask(pages, "GET /healthz HTTP/1.1")[0] == 200
    status, headers, body = ask(pages, "GET /readyz HTTP/1.1")
    assert (status, headers["Content-Type"]) == (503, "application/json")
    assert json.loads(body)["restoring"] == ["index"]
    health = Health(failed="index")
    assert ask(pages, "GET /healthz HTTP/1.1")[0] == 503
    _, headers, body = ask(pages, "GET /metrics HTTP/1.1")
    assert 'neardup_documents_total{app="news",verdict="unique"} 3.0' in body
    assert 'neardup_latency_seconds_bucket{app="news",le="0.1"} 1.0' in body
    assert headers["Content-Length"] == str(len(body.encode()))
    assert ask(pages, "GET /nothing HTTP/1.1")[0] == 404


def test_a_scrape_says_what_readyz_would_say_now() -> None:
    metrics = Metrics("news")
    health = Health()
    pages = Pages(metrics, lambda: health)
    assert 'neardup_ready{app="news"} 1.0' in ask(pages, "GET /metrics HTTP/1.1")[2]
    health = Health(unanswered=True)
    assert 'neardup_ready{app="news"} 0.0' in ask(pages, "GET /metrics HTTP/1.1")[2]


def test_head_is_answered_without_a_body() -> None:
    pages = Pages(Metrics(), Health)
    status, headers, body = ask(pages, "GET /healthz HTTP/1.1")
    bare, same, nothing = ask(pages, "HEAD /healthz HTTP/1.1")
    assert (bare, same["Content-Length"], nothing) == (status, headers["Content-Length"], "")
    assert body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
def test_other_methods_are_refused(method: str) -> None:
    status, headers, _ = ask(Pages(Metrics(), Health), f"{method} /metrics HTTP/1.1")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "request_line",
    [
        "",
        "GET",
        "GET /metrics",
        "get /metrics HTTP/1.1",
        "GET http://x/ HTTP/1.1",
        "GET / HTTP/2.0",
    ],
)
def test_what_is_no_request_is_refused_without_a_reason(request_line: str) -> None:
    status, _, body = ask(Pages(Metrics(), Health), request_line)
    assert (status, body) == (400, "Bad Request\n")


def test_no_answer_names_the_software() -> None:
    pages = Pages(Metrics(), Health)
    for request in ("GET /healthz HTTP/1.1", "GET /none HTTP/1.1", "POST / HTTP/1.1", "x"):
        _, headers, body = ask(pages, request)
        assert "Server" not in headers
        assert "python" not in body.lower()


@pytest.mark.parametrize(
    ("health", "alive", "ready"),
    [
        (Health(), True, True),
        (Health(waiting=["route"]), True, False),
        (Health(catching_up=["route"]), True, False),
        (Health(stopping=True), True, False),
        (Health(unanswered=True), True, False),
        (Health(stalled=["route"]), False, False),
        (Health(failed="route"), False, False),
    ],
)
def test_alive_and_ready(health: Health, alive: object, ready: object) -> None:
    assert (health.alive, health.ready) == (alive, ready)
