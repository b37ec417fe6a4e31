"""OAuth tokens for Kafka, from a function that another package provides.

    [project.entry-points."neardup.oauth"]
    msk = "our_tokens:provide"

The function is called with the value of ``sasl.oauthbearer.config``, whenever a client needs a
token, and returns the token and the time at which it expires, in seconds since 1970: what
confluent-kafka calls ``oauth_cb``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import entry_points
from time import time
from typing import Any

from worker.settings.errors import ConfigurationError

_log = logging.getLogger(__name__)

GROUP = "neardup.oauth"
_LEAST = 2
_MOST = 4
"""confluent-kafka also takes a principal, and SASL extensions."""
_MARGIN_SECONDS = 10.0


class TokenProvider:
    """Calls the function; what goes wrong in it is one line of the log.

    The last token is used again while it is valid, because a client that gets none can't be made.
    librdkafka asks again after ten seconds. It would not report the exception.
    """

    def __init__(
        self, name: str, provide: Callable[[str], Any], clock: Callable[[], float] = time
    ) -> None:
        """Take the entry point's name, what it loads, and a clock in seconds since 1970."""
        self._name = name
        self._provide = provide
        self._clock = clock
        self._last: dict[str, tuple[Any, ...]] = {}

    def __call__(self, config: str) -> tuple[Any, ...]:
        """Return a token, its expiry, and what else was returned.

        Raises:
            Exception: whatever the function raises; or a TypeError, if it returns something else.
        """
        try:
            found = self._last[config] = self._checked(self._provide(config))
        except Exception as error:
            # The text of the exception may contain the token or what it was made from.
            _log.error(
                "kafka.oauth: %s gave no token: %s",
                self._name,
                error if isinstance(error, _NoToken) else type(error).__name__,
            )
            last = self._last.get(config)
            if last is None or last[1] < self._clock() + _MARGIN_SECONDS:
                raise
            return last
        return found

    def _checked(self, found: object) -> tuple[Any, ...]:
        if not isinstance(found, tuple) or not _LEAST <= len(found) <= _MOST:
            raise _NoToken("it must return (token, expiry)")
        token, expiry, *_ = found
        if not isinstance(token, str) or not token:
            raise _NoToken("the token must be text")
        if isinstance(expiry, bool) or not isinstance(expiry, int | float):
            raise _NoToken("the expiry must be a number, in seconds since 1970")
        if expiry <= self._clock():
            raise _NoToken("the token has expired already")
        return (token, float(expiry), *found[2:])


class _NoToken(TypeError):
    """The function returned something else than a token with its expiry."""


def token_provider(name: str) -> TokenProvider:
    """Return the installed provider with this name.

    Raises:
        ConfigurationError: there is none, or it can't be loaded.
    """
    found = entry_points(group=GROUP)
    matching = [point for point in found if point.name == name]
    if not matching:
        installed = ", ".join(sorted(found.names)) or "none"
        raise ConfigurationError(
            f"kafka.oauth: no installed package has an entry point of this name in the group"
            f" {GROUP}; there are: {installed}"
        )
    try:
        provide = matching[0].load()
    except Exception as error:  # noqa: BLE001 -- another package's code runs on import
        first = (str(error).splitlines() or [""])[0]
        raise ConfigurationError(
            f"kafka.oauth: {matching[0].value} can't be loaded: {type(error).__name__}: {first}"
        ) from None
    if not callable(provide):
        raise ConfigurationError(f"kafka.oauth: {matching[0].value} must be a function")
    return TokenProvider(name, provide)
