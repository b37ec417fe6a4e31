"""When a worker is alive, and when it is ready."""

from __future__ import annotations

import pytest

from worker.http.health import Health


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
