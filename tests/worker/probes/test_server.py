"""The addresses that servers listen on."""

from __future__ import annotations

import socket

import pytest

from worker.probes.server import listening, url
from worker.settings.errors import ConfigurationError


def test_an_address_in_use_is_a_wrong_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"on 127\.0\.0\.1:{port}: Address already"):
            listening("127.0.0.1", port, "serve.port", "--listen")


@pytest.mark.parametrize("host", ["::1%no-such-link", "a..b", "192.0.2.1"])
def test_an_address_that_is_none_of_ours_is_a_wrong_setting(host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^serve\.host: can't listen on .* \(--listen "):
        listening(host, 0, "serve.host", "--listen")


def test_an_address_is_shown_as_clients_write_it() -> None:
    assert url("127.0.0.1", 1) == "http://127.0.0.1:1"
    assert url("::", 1) == "http://[::]:1"
