"""The registry's settings: what is refused at once, and what stays secret."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import neardup
from worker.formats.choice import document_format, line_format
from worker.formats.json import JsonFormat
from worker.formats.registry.documents import RegistryFormat
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings

URL = "http://127.0.0.1:1"


def settings(**registry: object) -> Settings:
    given = {f"registry.{name}": value for name, value in registry.items()}
    return load(None, {"documents.format": "registry", "registry.url": URL, **given})


def test_the_format_follows() -> None:
    assert isinstance(document_format(settings()), RegistryFormat)
    assert type(line_format(settings())) is JsonFormat


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"documents.format": "registry"}, "documents.format: registry needs registry.url"),
        (
            {"documents.key": "registry"},
            "documents.key: got registry, which needs documents.format registry; it is json",
        ),
    ],
)
def test_settings_belong_together(given: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(None, given)
    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("url", "registry:8081", "registry.url: must begin with http:// or https:// and a host"),
        ("url", "http://u:secret@host", "registry.url: must have no user or password"),
        ("ca_file", "/does/not/exist", "registry.ca_file: /does/not/exist: No such file"),
        ("ca_file", __file__, f"registry.ca_file: {__file__}: "),
        ("timeout_seconds", 0, "registry.timeout_seconds: got 0, must be greater than 0"),
        ("id_bytes", 5, "registry.id_bytes: got 5, must be 4 or 8"),
        ("key_file", "/key", "registry.key_file: needs registry.certificate_file"),
        ("certificate_file", "/no", "registry.certificate_file: No such file"),
        ("certificate_file", __file__, "registry.certificate_file: not a certificate and its key"),
        ("token_url", "issuer/token", "registry.token_url: must begin with http:// or https://"),
        ("token_url", "http://u:secret@host", "registry.token_url: must have no user or password"),
        ("token_url", "http://issuer/", "registry.token_url: needs registry.credentials_file"),
        ("token_scope", "a", "registry.token_scope: needs registry.token_url"),
        ("logical_cluster", "a", "registry.logical_cluster: needs registry.token_url"),
        ("identity_pool", "a", "registry.identity_pool: needs registry.token_url"),
    ],
)
def test_what_cannot_be_is_refused(name: str, value: object, why: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        settings(**{name: value})
    assert str(raised.value).startswith(why)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("bytes_", [4, "8"])
def test_ids_have_four_bytes_or_eight(bytes_: object) -> None:
    assert settings(id_bytes=bytes_).registry.id_bytes == int(str(bytes_))


def test_nobody_is_asked_for_the_password_of_a_key(tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-passout", "pass:secret", "-subj", "/CN=client", "-keyout", str(both),
         "-out", str(tmp_path / "certificate.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    both.write_bytes(both.read_bytes() + (tmp_path / "certificate.pem").read_bytes())
    with pytest.raises(ConfigurationError, match=r"^registry\.certificate_file: .*is encrypted"):
        settings(certificate_file=str(both))


def test_credentials_are_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("user:secret\n")
    made = settings(credentials_file=str(file))
    assert made.registry.credentials() == "user:secret"
    assert "secret" not in str(made.redacted())
    file.write_text("secret")
    with pytest.raises(ConfigurationError) as raised:
        document_format(made)
    assert str(raised.value) == "registry.credentials_file: must have user:password"
    file.unlink()
    with pytest.raises(ConfigurationError, match="registry: credentials_file: the file can't be"):
        document_format(made)


def test_config_check_reads_the_credentials(tmp_path: Path) -> None:
    config = tmp_path / "neardup.toml"
    given = f'[documents]\nformat = "registry"\n[registry]\nurl = "{URL}"\n'
    config.write_text(given)
    checked = neardup("config", "check", "--config", config)
    assert (checked.returncode, checked.stdout) == (0, b"ok\n")
    config.write_text(f'{given}credentials_file = "{tmp_path}/none"\n')
    checked = neardup("config", "check", "--config", config)
    assert checked.returncode == 2
    assert checked.stderr.startswith(b"neardup: registry: credentials_file: the file can't be read")


def test_feed_cannot_write_such_documents(tmp_path: Path) -> None:
    config = tmp_path / "neardup.toml"
    config.write_text(f'[documents]\nformat = "registry"\n[registry]\nurl = "{URL}"\n')
    refused = neardup("feed", "--config", config, tmp_path / "a.jsonl")
    assert refused.returncode == 2
    assert refused.stderr.decode().startswith("neardup: documents.format: got registry, whose")
