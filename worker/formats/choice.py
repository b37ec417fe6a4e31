"""The document format that the settings name, with their fields and limits; plain text."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace

from worker.fields import single
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.unreadable import utf8
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings


class TextFormat(DocumentFormat):
    """Plain text in UTF-8. It has no fields: the id and the time are those of the record."""

    def __init__(self, options: DocumentOptions) -> None:
        """Keep the limits."""
        super().__init__(replace(options, time_field=None))

    def excerpt(self, value: bytes) -> str:
        """See `DocumentFormat`."""
        return value.decode(errors="replace")

    def fields(self, value: bytes) -> Sequence[str] | None:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return None

    def having(self, value: bytes) -> Collection[str]:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return ()

    def can_splice(self, value: bytes) -> bool:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return False

    def splice(self, value: bytes, matches: bytes, first: bytes) -> bytes:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return value

    def _parse(self, value: bytes) -> tuple[object, str, int | None]:
        return None, utf8(value), None

    def _find_id(self, value: bytes) -> object:  # noqa: ARG002 -- text has no fields
        return None


_FORMATS: dict[str, type[DocumentFormat]] = {"json": JsonFormat, "text": TextFormat}
"""Documents that are no records are JSON where those on *documents* have a schema."""

_MATCH_RESERVE_BYTES = 2 * 2 * (6 * 1_024 + 64) + 512
"""The most bytes that an output record adds to its input: the best match, once more as the first
one, with an id of 1 kB of control characters (6 bytes each in JSON), in the headers and in the
value; and the other headers."""


def document_format(settings: Settings) -> DocumentFormat:
    """Return the format of an application's documents.

    Raises:
        ConfigurationError: the registry's settings can't be used, or packages are missing.
    """
    if settings.documents.format == "registry":
        return _with_registry(settings)
    return plain_format(settings)


def plain_format(settings: Settings) -> DocumentFormat:
    """Return the format of documents that are no records; those with a schema are JSON then."""
    return _plain(settings, _options(settings))


def key_format(settings: Settings, field: str | None) -> DocumentFormat:
    """Return the format whose ids ``neardup feed`` uses as record keys.

    ``field`` replaces the id field; text documents are then read as JSON, because plain text has
    no fields. A key may be longer than an id.

    Raises:
        ConfigurationError: ``field`` doesn't lead to one value.
    """
    options = replace(_options(settings), max_id_bytes=sys.maxsize)
    if field is None:
        return _plain(settings, options)
    try:
        return JsonFormat(replace(options, id_field=single(field)))
    except ValueError as error:
        raise ConfigurationError(f"--key-field: {error}") from None


def line_format(settings: Settings) -> DocumentFormat:
    """Return the format of an application's documents in files, where keys are names of lines."""
    return _plain(settings, replace(_options(settings), key="auto", require_id=False))


def text_format(settings: Settings) -> DocumentFormat:
    """Return the format of bare texts, with the limits of an application's documents."""
    return TextFormat(replace(_options(settings), require_id=False))


def watched_fields(settings: Settings) -> tuple[str, ...]:
    """Return the fields that documents should have: those with the text, and those that are set.

    The default of the id isn't among them: the record's key may be the id.
    """
    documents = settings.documents
    if documents.format == "text":
        return ()
    fields = [*documents.text_fields]
    if "id_field" in documents.model_fields_set:
        fields.append(documents.id_field)
    if documents.time_field is not None:
        fields.append(documents.time_field)
    return tuple(fields)


def _plain(settings: Settings, options: DocumentOptions) -> DocumentFormat:
    return _FORMATS.get(settings.documents.format, JsonFormat)(options)


def _with_registry(settings: Settings) -> DocumentFormat:
    given = settings.registry
    try:
        from worker.formats.registry.documents import RegistryFormat  # noqa: PLC0415 -- an extra
        from worker.formats.registry.exchange import RegistryOptions  # noqa: PLC0415

        return RegistryFormat(
            _options(settings),
            RegistryOptions(
                url=given.url or "",
                credentials=given.credentials(),
                ca_file=given.ca_file,
                certificate_file=given.certificate_file,
                key_file=given.key_file,
                token_url=given.token_url,
                token_scope=given.token_scope,
                logical_cluster=given.logical_cluster,
                identity_pool=given.identity_pool,
                timeout_seconds=given.timeout_seconds,
            ),
            id_bytes=given.id_bytes,
        )
    except ImportError as error:
        raise ConfigurationError(
            f"documents.format: registry takes more ({error.name}): pip install 'neardup[registry]'"
        ) from None


def _options(settings: Settings) -> DocumentOptions:
    documents, limits = settings.documents, settings.limits
    return DocumentOptions(
        id_field=documents.id_field,
        text_fields=documents.text_fields,
        time_field=documents.time_field,
        time_format=documents.time_format,
        require_id=documents.require_id,
        key=documents.key,
        deletes=documents.deletes,
        deleted_id_field=documents.deleted_id_field,
        max_text_characters=limits.text_characters,
        max_id_bytes=limits.id_bytes,
        max_record_bytes=limits.record_bytes - _MATCH_RESERVE_BYTES,
    )
