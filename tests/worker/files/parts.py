"""Documents read from files, as ``dedupe`` and ``feed`` read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from worker.files.inputs import Inputs
from worker.files.named_files import Argument
from worker.files.reading import Reading
from worker.offline.filter import Line
from worker.settings.documents import DocumentsSection

_BY_NAME = Reading()
LINES = Reading("lines")
TEXTS = Reading("text")


def lines_of(*files: Argument, most: int = 1_000_000, **documents: object) -> list[Line]:
    return _read(files, most, documents)


def _read(files: Sequence[Argument], most: int, documents: dict[str, object]) -> list[Line]:
    reading = documents.pop("reading", _BY_NAME)
    assert isinstance(reading, Reading)
    section = DocumentsSection.model_validate(documents)
    with Inputs(files, section, reading) as inputs:
        return [line for chunk in inputs.chunks(most) for line in chunk]


def documents_of(*files: Argument, **documents: object) -> list[tuple[str, str]]:
    """Return the key and the payload of each document, or its fault."""
    return [
        (line.key.decode(), line.fault or line.value.decode())
        for line in _read(files, 1_000_000, documents)
    ]


def members(*files: Argument, **documents: object) -> list[dict[str, Any]]:
    """Return the members of each document, which is JSON."""
    return [json.loads(value) for _, value in documents_of(*files, **documents)]
