"""A place that can't be resolved is named without its secrets."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest

from worker.index.snapshots.storage import Storage
from worker.settings.errors import ConfigurationError


def test_a_place_of_an_unknown_kind_is_named_without_its_credentials() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Storage.at("nosuch://me:hush@host/x", {"key": "hush", "client": {"secret": "hush"}})
    assert str(caught.value).startswith("index.snapshots.url: nosuch://****@host/x: ")
    assert "hush" not in str(caught.value)


def test_what_a_file_system_says_shows_no_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, **options: Any) -> None:  # noqa: ANN401 -- as fsspec takes them
        raise ValueError(f"can't open {url}\nwith {options}")

    monkeypatch.setattr(fsspec, "url_to_fs", refuse)
    with pytest.raises(ConfigurationError) as caught:
        Storage.at("s3://me:hush1@b", {"key": "hush2", "client": {"secrets": ["hush3"]}, "n": "1"})
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)
