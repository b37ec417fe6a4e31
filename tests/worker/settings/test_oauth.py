"""Tokens come from a function of another package; what goes wrong in it is one line."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from worker.settings import oauth
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.oauth import TokenProvider, token_provider

OPTIONS = {
    "kafka.oauth": "ours",
    "kafka.common": {"sasl.mechanisms": "OAUTHBEARER", "security.protocol": "SASL_PLAINTEXT"},
}


def provide(config: str) -> tuple[str, float]:
    return f"token of {config}", FAR


NOT_A_FUNCTION = 5
FAR = 1e10


def install(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    found = EntryPoints([EntryPoint("ours", value, oauth.GROUP)])
    monkeypatch.setattr(oauth, "entry_points", found.select)


def test_the_function_of_an_installed_package_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, f"{__name__}:provide")
    options = load(overrides=OPTIONS).kafka_options()
    given = options.client_config("admin")["oauth_cb"]
    assert given("scope=kafka") == ("token of scope=kafka", FAR)
    assert options.member_config("g", "i")["oauth_cb"] == given
    assert options.producer_config("t")["oauth_cb"] == given


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no_such_package:provide", "kafka.oauth: no_such_package:provide can't be loaded"),
        (f"{__name__}:NOT_A_FUNCTION", "must be a function"),
    ],
)
def test_what_cannot_be_called_is_one_line(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, value)
    with pytest.raises(ConfigurationError, match=said) as caught:
        load(overrides=OPTIONS).kafka_options()
    assert "\n" not in str(caught.value)


def test_a_name_that_is_not_installed_lists_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, "a:b")
    with pytest.raises(ConfigurationError, match=r"group neardup\.oauth; there are: ours"):
        token_provider("theirs")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("token", "it must return (token, expiry)"),
        (("token",), "it must return (token, expiry)"),
        ((b"token", 5), "the token must be text"),
        (("token", "soon"), "the expiry must be a number, in seconds since 1970"),
        (("token", 5), "the token has expired already"),
    ],
)
def test_what_is_no_token_is_one_line(
    returned: object, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(TypeError):
        TokenProvider("ours", lambda _config: returned)("")
    assert caplog.messages == [f"kafka.oauth: ours gave no token: {said}"]


def test_the_last_token_stands_in_while_it_is_valid(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    results = iter([("token", 200.0)])
    provider = TokenProvider("ours", lambda _config: next(results), lambda: now)
    assert provider("") == ("token", 200.0)
    now = 189.0
    assert provider("") == ("token", 200.0)
    with pytest.raises(StopIteration):
        provider("scope=other")
    now = 191.0
    with pytest.raises(StopIteration):
        provider("")
    assert caplog.messages == 3 * ["kafka.oauth: ours gave no token: StopIteration"]


def test_an_exception_is_one_line_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_config: str) -> Any:  # noqa: ANN401 -- never returns
        raise RuntimeError("hush\nhush")

    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError):
        TokenProvider("ours", fail)("")
    assert caplog.messages == ["kafka.oauth: ours gave no token: RuntimeError"]
