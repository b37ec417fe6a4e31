"""What a process says that can't start."""

from __future__ import annotations

import threading

import pytest

from worker.admin.problem import Problem
from worker.cli import starting
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings


@pytest.mark.parametrize(
    ("fix", "said"),
    [
        ("neardup topics create", "; fix it: neardup topics create; `neardup topics verify`"),
        ("", "must be there (and 1 more); `neardup topics verify` shows all"),
    ],
)
def test_the_first_error_is_said_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, fix: str, said: str
) -> None:
    missing = Problem("error", "app.unique", "the topic", "missing", "there", fix=fix)
    late = Problem("warning", "app.redrive", "the topic", "missing", "there")
    monkeypatch.setattr(starting, "verify", lambda *_: (4, [late, missing, missing]))
    settings = Settings.model_validate({"kafka": {"bootstrap": "localhost:9"}})
    with pytest.raises(ConfigurationError) as error:
        starting.checked_partitions(settings, threading.Event())
    assert str(error.value).startswith("app.unique: the topic is missing, must be there (and 1")
    assert said in str(error.value)
