"""How a worker logs: a line of text, or of JSON, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

__all__ = ["set_up"]


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "stage": record.threadName,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _Sparing(logging.Filter):
    """Lets the same kind of line of librdkafka pass every ten seconds only.

    While brokers are away, it tells of every attempt to reach them, many times a second.
    """

    _SECONDS = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != "librdkafka":
            return True
        kind = record.getMessage().partition(" ")[0]
        last = self._seen.get(kind)
        if last is not None and record.created - last < self._SECONDS:
            return False
        self._seen[kind] = record.created
        return True


def set_up(level: str, kind: Literal["text", "json"]) -> None:
    """Send everything from ``level`` on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    if kind == "json":
        handler.setFormatter(_Json())
    else:
        text = "%(asctime)s %(levelname)-7s %(threadName)-11s %(message)s"
        handler.setFormatter(logging.Formatter(text))
    handler.addFilter(_Sparing())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
