"""The sections on documents: their format, and the registry with their schemas."""

from __future__ import annotations

from pathlib import Path
from ssl import SSLError, create_default_context
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from worker.fields import AUTO, check_time_format, parse, single
from worker.settings.errors import ConfigurationError
from worker.settings.secrets import resolved
from worker.settings.sections import Names, Section


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


class DocumentsSection(Section):
    """The format of payloads, and the fields with the id, the text and the time."""

    format: Literal["json", "text", "registry"] = Field(
        "json",
        description="json: an object with the fields below; text: the value is the text; registry:"
        " Avro, Protobuf or JSON with a schema in a registry, see registry.url",
    )
    id_field: str = Field(
        "id",
        min_length=1,
        description="field with the id; without it, the id follows from the record's key",
    )
    text_fields: Names = Field(
        ("text",),
        description="fields with the text, joined; a comma-separated list. In all fields, a.b is"
        " the field of that name, or else b in the object a; a[] is every element of a list,"
        " a[0] the first",
    )
    time_field: str | None = Field(
        None,
        description="field with the time, without which a document counts as of now; default: the"
        " record's timestamp",
    )
    time_format: str = Field(
        AUTO,
        description="what documents.time_field holds; auto: ISO 8601, RFC 822, or seconds,"
        " milliseconds, microseconds or nanoseconds since 1970 of the years 1990 to 2031; one of"
        " these units: any time in it; excel: days since 1900; or a pattern of strptime such as"
        " %Y%m%d",
    )
    require_id: bool = Field(
        default=False, description="reject documents without an id in the value or the key"
    )
    key: Literal["auto", "text", "bytes", "long", "int", "registry", "ignore"] = Field(
        "auto",
        description="what keys are, for documents without an id in the value and for tombstones:"
        " auto: text as it is, other bytes in hexadecimal; text; bytes: all in hexadecimal; long"
        " and int: big-endian numbers of 8 and 4 bytes; registry: with a schema, as the value;"
        " ignore: no ids. A key that isn't that is"
        " bad-id",
    )
    deletes: Literal["reject", "forget"] = Field(
        "reject",
        description="what a record is whose text is null, or in an object that is null, as in the"
        " deletes of change feeds: reject: set aside on *rejected*; forget: a tombstone for the id"
        " in id_field, else deleted_id_field, else the key, passed on to both outputs",
    )
    deleted_id_field: str | None = Field(
        None,
        min_length=1,
        description="field with the id in deletes, such as payload.before.id; needed with forget"
        " if id_field is set",
    )
    splice: bool = Field(
        default=True,
        description="add duplicate_of and duplicate_first to JSON objects on *duplicate*",
    )
    skip_deleted: bool = Field(
        default=False, description="start even if documents were deleted before they were read"
    )

    @field_validator("text_fields")
    @classmethod
    def _check_texts(cls, fields: tuple[str, ...]) -> tuple[str, ...]:
        for field in fields:
            parse(field)
        return fields

    @field_validator("id_field", "time_field", "deleted_id_field")
    @classmethod
    def _check_one(cls, field: str | None) -> str | None:
        return None if field is None else single(field)

    @field_validator("time_format")
    @classmethod
    def _check_time_format(cls, time_format: str) -> str:
        check_time_format(time_format)
        return time_format

    @model_validator(mode="after")
    def _check_deletes(self) -> DocumentsSection:
        if self.deletes == "reject":
            return self
        if self.format == "text":
            raise ValueError(
                "documents.deletes: got forget, must be reject with documents.format text: plain"
                " text has no fields that could be null; send tombstones"
            )
        if "id_field" in self.model_fields_set and self.deleted_id_field is None:
            raise ValueError(
                "documents.deletes: forget needs documents.deleted_id_field, the field with the id"
                f" in deletes, since documents.id_field is {self.id_field!r}: such as"
                " payload.before.id, or the same field if deletes have it"
            )
        return self


class RegistrySection(Section):
    """The schema registry, if documents.format is registry: Confluent's API, as others have it."""

    url: str | None = Field(
        None,
        description="address of the API, such as https://registry:8081 (Apicurio:"
        " http://HOST:8080/apis/ccompat/v7); several separated by commas",
    )
    credentials_file: Path | None = Field(
        None,
        description="file with user:password, with KEY:SECRET of Confluent Cloud, or with"
        " CLIENT:SECRET for token_url",
    )
    ca_file: Path | None = Field(
        None, description="certificates that sign the registry's, in PEM; default: those of certifi"
    )
    certificate_file: Path | None = Field(
        None, description="certificate of this client, in PEM, if the registry asks for one"
    )
    key_file: Path | None = Field(
        None,
        description="its private key, in PEM and not encrypted; default: that in certificate_file",
    )
    token_url: str | None = Field(
        None,
        description="OAuth: address of the issuer of tokens, which takes client credentials (RFC"
        " 6749, section 4.4); default: credentials_file is sent to the registry itself",
    )
    token_scope: str | None = Field(None, description="OAuth: scope to ask for")
    logical_cluster: str | None = Field(
        None, description="Confluent Cloud with OAuth: id of the registry, such as lsrc-abcde"
    )
    identity_pool: str | None = Field(
        None, description="Confluent Cloud with OAuth: id of the identity pool, such as pool-abcde"
    )
    id_bytes: Annotated[Literal[4, 8], BeforeValidator(_number)] = Field(
        4,
        description="length of the schema ids in values; 8: those of Apicurio's older serializers,"
        " see docs/how-to/registry.md",
    )
    timeout_seconds: float = Field(5, gt=0, le=15, description="time for an answer")

    @field_validator("url", "token_url")
    @classmethod
    def _check_url(cls, url: str | None, given: ValidationInfo) -> str | None:
        several = given.field_name == "url"
        for part in () if url is None else url.split(",") if several else (url,):
            found = urlsplit(part.strip())
            if "@" in found.netloc:
                raise ValueError("must have no user or password: registry.credentials_file has it")
            if found.scheme not in {"http", "https"} or not found.hostname:
                raise ValueError("must begin with http:// or https:// and a host")
        return url

    @field_validator("ca_file")
    @classmethod
    def _check_ca_file(cls, path: Path | None) -> Path | None:
        try:
            if path is not None:
                create_default_context(cafile=path)
        except OSError as error:  # An SSLError, too.
            raise ValueError(f"{path}: {error.strerror or 'not a certificate in PEM'}") from None
        return path

    @model_validator(mode="after")
    def _check_login(self) -> RegistrySection:
        if self.key_file is not None and self.certificate_file is None:
            raise ValueError("registry.key_file: needs registry.certificate_file")
        for name in ("token_scope", "logical_cluster", "identity_pool"):
            if getattr(self, name) is not None and self.token_url is None:
                raise ValueError(f"registry.{name}: needs registry.token_url")
        if self.token_url is not None and self.credentials_file is None:
            raise ValueError("registry.token_url: needs registry.credentials_file")
        if self.certificate_file is not None:
            where = "registry.certificate_file" + ("" if self.key_file is None else ", key_file")
            context = create_default_context()
            try:
                # With a password, even an empty one, nobody is asked for it.
                context.load_cert_chain(self.certificate_file, self.key_file, password="")
            except SSLError:
                msg = f"{where}: not a certificate and its key in PEM, or the key is encrypted"
                raise ValueError(msg) from None
            except OSError as error:
                raise ValueError(f"{where}: {error.strerror}") from None
        return self

    def credentials(self) -> str | None:
        """Return the user and the password. The file is read now.

        Raises:
            ConfigurationError: it can't be read, or has something else.
        """
        if self.credentials_file is None:
            return None
        table = {"credentials_file": str(self.credentials_file)}
        found = resolved("registry", table)["credentials"]
        if ":" not in found:
            raise ConfigurationError("registry.credentials_file: must have user:password")
        return found
