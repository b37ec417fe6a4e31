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


def set_up(level: str, kind: Literal["text", "json"]) -> None:
    """Send everything from ``level`` on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    if kind == "json":
        handler.setFormatter(_Json())
    else:
        text = "%(asctime)s %(levelname)-7s %(threadName)-11s %(message)s"
        handler.setFormatter(logging.Formatter(text))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
