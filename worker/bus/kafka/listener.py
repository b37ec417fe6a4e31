"""What librdkafka tells its log, and nobody else."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["LogListener"]

_METADATA = "METADATA"
_TROUBLE = frozenset({"FAIL", "REQTMOUT", "SESSTMOUT"})
"""Facilities of librdkafka's log: a connection is lost; a request was not answered in time; nor
was any to the group's coordinator for as long as a session lasts."""


class LogListener:
    """Stands in for the log of a client, and hears of lost connections and answers.

    After these librdkafka sends a request again, EndTxn and JoinGroup included, and its error
    callback is not told. The client needs `log.connection.close` and a `log_level` of 6 at
    least; such lines come up in its polls, on the thread that polls.
    """

    def __init__(
        self,
        log: logging.Logger,
        *,
        troubled: Callable[[str], None] = lambda _what: None,
        informed: Callable[[str], None] = lambda _what: None,
    ) -> None:
        """Pass lines on to ``log``, and the texts of some to others, too.

        ``troubled`` hears of trouble; ``informed`` of what the brokers say about topics, if
        ``debug`` has ``metadata``.
        """
        self._troubled = troubled
        self._informed = informed
        self._log = log

    def log(self, level: int, message: str, *values: object) -> None:
        """Take a line; ``values`` are its facility, the client, and the text."""
        if values and values[0] in _TROUBLE:
            self._troubled(str(values[-1]))
            if level <= logging.INFO:  # An operator has no use for it: what follows is logged.
                level = logging.DEBUG
        elif values and values[0] == _METADATA:
            self._informed(str(values[-1]))
        self._log.log(level, message, *values)
