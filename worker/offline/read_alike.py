"""How the documents of a kept index were read, and what a run must do alike."""

from __future__ import annotations

from collections.abc import Mapping

from worker.settings.documents import DocumentsSection

_WITHOUT_EFFECT = ("require_id", "skip_deleted", "splice")
"""Settings of documents that change no text, id or time. Those that are new are compared."""
_FORMATS = {"json": "json", "text": "lines"}


def described(documents: DocumentsSection) -> dict[str, object]:
    """Return all settings that decide which text, id or time a document has.

    Tables and lines of JSON with the same fields are read alike; lines of text have none.
    """
    settings = documents.model_dump(mode="json", exclude=set(_WITHOUT_EFFECT))
    return {**settings, "format": _FORMATS[documents.format]}


def section_of(recorded: Mapping[str, object]) -> dict[str, object]:
    """Return what `described` has as settings of the section ``documents``."""
    formats = {name: setting for setting, name in _FORMATS.items()}
    return {**recorded, "format": formats.get(str(recorded.get("format")))}


def differences(recorded: Mapping[str, object], here: Mapping[str, object]) -> list[str]:
    """Return where two ways to read documents differ; what isn't recorded had its default."""
    before = {**described(DocumentsSection()), **recorded}
    return [
        f"documents.{name}: it has {_shown(had)}, the settings say {_shown(here.get(name))}"
        for name, had in before.items()
        if had != here.get(name)
    ]


def _shown(value: object) -> str:
    return "none" if value is None else ",".join(value) if isinstance(value, list) else str(value)
