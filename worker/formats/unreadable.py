"""The error of a document that can't be read, and what each reason tells about the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

__all__ = ["CAUSES", "Cause", "Unreadable"]

Cause = Literal["configuration", "content"]
"""``configuration``: the documents have another format, other fields, or fields of other types than
the settings say. ``content``: whoever writes a web page can bring it about, or a single odd record;
so any number of these tells nothing about the settings."""

CAUSES: Final[Mapping[str, Cause]] = {
    "not-json": "configuration",
    "not-an-object": "configuration",
    "schema-registry": "configuration",
    "no-text": "configuration",
    "no-id": "configuration",
    "text-wrong-type": "configuration",
    "id-wrong-type": "configuration",
    "time-wrong-type": "configuration",
    "bad-headers": "content",
    "bad-id": "content",
    "bad-time": "content",
    "empty-text": "content",
    "invalid-utf8": "content",
    "text-too-long": "content",
    "too-deep": "content",
    "too-large": "content",
}
"""Every code."""


class Unreadable(Exception):
    """A document can't be read: a short code, and what was found."""

    def __init__(self, code: str, detail: str) -> None:
        """Keep the code in an attribute: it is the label of a metric."""
        self.code = code
        self.detail = detail
        super().__init__(f"{code}: {detail}")
