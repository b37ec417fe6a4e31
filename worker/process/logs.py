"""The log of a worker: lines of text or JSON on standard error."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from worker.topology import STAGES
from worker.visible import json_text, visible

_FACTS = ("topic", "partition", "offset", "per_second", "behind")
"""The facts that a line may have: a call passes them as ``extra``."""


class LogFields:
    """The facts that all lines of a worker have, from when they are known."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self.app: str | None = None
        self.instance: str | None = None


class _Text(logging.Formatter):
    """One line a record. What follows an exception or a hanging call is indented below it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(threadName)-11s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's
        details = "".join(f"\n    {visible(line)}" for line in _details(record))
        return visible(super().formatMessage(record)) + details

    def formatException(self, ei: Any) -> str:  # noqa: ANN401, N802 -- logging's
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"    {visible(line)}" for line in lines)


class _Json(logging.Formatter):
    def __init__(self, fields: LogFields) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "app": self._fields.app,
            "instance": self._fields.instance,
            "stage": _stage(record),
            "thread": record.threadName,
            "logger": record.name,
            "message": record.getMessage(),
            "details": _details(record) or None,
        }
        line |= {name: getattr(record, name, None) for name in _FACTS}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json_text({name: value for name, value in line.items() if value is not None})


def _stage(record: logging.LogRecord) -> str | None:
    """Return the stage that a line is from; shards also have threads beside the stage's own."""
    if record.threadName in STAGES:
        return record.threadName
    return "index" if record.name.startswith("worker.index.") else None


def _details(record: logging.LogRecord) -> list[str]:
    return list(getattr(record, "details", ()))


class _LibrdkafkaLimit(logging.Filter):
    """Passes a line of librdkafka only if none of its kind came in the last ten seconds.

    While brokers are down, librdkafka logs every attempt to reach them, many times a second.
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


def set_up(level: str, kind: Literal["text", "json"]) -> LogFields:
    """Log everything at or above ``level`` to standard error; return the lines' common fields."""
    fields = LogFields()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(fields) if kind == "json" else _Text())
    handler.addFilter(_LibrdkafkaLimit())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return fields
