"""Documents read from files, as ``dedupe`` and ``feed`` read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from worker.cli.inputs import Inputs
from worker.offline import Line
from worker.settings.sections import DocumentsSection

__all__ = ["documents_of", "lines_of"]


def lines_of(*files: Path, most: int = 1_000_000, **documents: object) -> list[Line]:
    return _read(files, most, documents)


def _read(files: Sequence[Path], most: int, documents: Mapping[str, object]) -> list[Line]:
    section = DocumentsSection.model_validate(documents)
    with Inputs(files, section) as inputs:
        return [line for chunk in inputs.chunks(most) for line in chunk]


def documents_of(*files: Path, **documents: object) -> list[tuple[str, str]]:
    """Return the key and the payload of each document, or its fault."""
    return [
        (line.key.decode(), line.fault or line.value.decode())
        for line in _read(files, 1_000_000, documents)
    ]
