"""Listens for events that librdkafka reports only in its log."""

from __future__ import annotations

import logging
from collections.abc import Callable

_METADATA = "METADATA"
_TROUBLE = frozenset({"FAIL", "REQTMOUT", "SESSTMOUT"})
"""Facilities of librdkafka's log: a connection is lost; a request was not answered in time; the
group's coordinator has answered no request for a whole session timeout."""


class LogListener:
    """Replaces the logger of a client, and detects lost connections and answers.

    After these librdkafka repeats requests, including EndTxn and JoinGroup, without a call of the
    error callback. The client needs `log.connection.close` and a `log_level` of at least 6. The
    lines arrive during its polls, on the polling thread.
    """

    def __init__(
        self,
        log: logging.Logger,
        *,
        troubled: Callable[[str], None] = lambda _what: None,
        informed: Callable[[str], None] = lambda _what: None,
    ) -> None:
        """Pass all lines on to ``log``, and the texts of some to callbacks.

        ``troubled`` receives trouble with connections; ``informed`` receives what the brokers
        report about topics, if ``debug`` includes ``metadata``.
        """
        self._troubled = troubled
        self._informed = informed
        self._log = log

    def log(self, level: int, message: str, *values: object) -> None:
        """Log a line; ``values`` are its facility, the client, and the text."""
        if values and values[0] in _TROUBLE:
            self._troubled(str(values[-1]))
            if level <= logging.INFO:  # Useless to an operator: the consequences are logged.
                level = logging.DEBUG
        elif values and values[0] == _METADATA:
            self._informed(str(values[-1]))
        self._log.log(level, message, *values)
