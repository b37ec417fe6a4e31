"""Secrets come from files, and show up nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.settings.errors import ConfigurationError
from worker.settings.loading import advice, load
from worker.settings.secrets import without_credentials

SEED = "0123456789abcdef"


def toml(tmp_path: Path, text: str, name: str = "neardup.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        'kafka = "hush"',
        '[kafka]\ncommon = "hush"',
        '[kafka]\nproducer = ["hush"]',
        '[kafka.common]\n"sasl.password" = ["hush"]',
        '[kafka.consumer]\n"sasl.password" = { a = "hush" }',
        '[kafka]\nbootstrap = "SASL_SSL://me:hush@kafka:9092"',
        '[kafka]\nbootstrap = "hush secret"',
        '[kafka]\nsession_timeout_ms = "hush"',
        '[kafka]\ngroup_protocol = "hush"',
        '[kafka]\noauth = ["hush"]',
        '[kafka.common]\n"sasl.password_file" = "hush"\n"sasl.password" = "hush"',
        '[index]\nsnapshots = "hush"',
        '[index.snapshots]\noptions = "hush"',
        '[index.snapshots]\nurl = ["s3://hush@b"]',
        "[index.snapshots]\noptions = { key = 1979-05-27 }",
        '[similarity]\nseed = ["hush"]',
        '[similarity]\nseed = "hush"',
        '[similarity]\nseed_file = "hush"',
        'similarity = "hush"',
    ],
)
def test_no_error_shows_what_may_be_a_secret(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(toml(tmp_path, text))
    said = str(caught.value)
    assert "hush" not in said
    assert "1979" not in said
    assert "\n" not in said


def test_only_what_is_known_to_be_harmless_is_shown(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        """
        [kafka.common]
        "security.protocol" = "SASL_SSL"
        "sasl.username" = "me"
        "sasl.password_file" = "/run/secrets/password"
        "sasl.kerberos.kinit.cmd" = "kinit -w hush"
        "sasl.oauthbearer.config" = "hush"
        "sasl.oauthbearer.client.secret" = "hush"
        "sasl.oauthbearer.token.endpoint.url" = "https://me:hush@id.example"
        "ssl.key.pem" = "hush"
        "a.key.of.tomorrow" = "hush"
        [index.snapshots]
        url = "sftp://me:hush@host/snapshots?token=hush"
        options = { key = "hush", more = { secret = "hush" }, secret_file = "/run/secrets/s3" }
        """,
    )
    settings = load(path, {"similarity.seed": "hush-0123456789abcdef"})
    shown = settings.redacted()
    assert "hush" not in str(shown)
    assert "hush" not in repr(settings)
    common = shown["kafka"]["common"]
    assert common["security.protocol"] == "SASL_SSL"
    assert common["sasl.username"] == "me"
    assert common["sasl.password_file"] == "/run/secrets/password"
    assert {value for key, value in common.items() if "oauth" in key} == {"****"}
    assert shown["index"]["snapshots"]["url"] == "sftp://****@host/snapshots?****"
    assert shown["index"]["snapshots"]["options"] == {
        "key": "****",
        "more": "****",
        "secret_file": "/run/secrets/s3",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3://key:secret@bucket", "s3://****@bucket"),
        ("simplecache::sftp://me:secret@host:22/x", "simplecache::sftp://****@host:22/x"),
        ("https://host/x?sig=secret#part", "https://host/x?****#part"),
        ("/var/lib/snapshots@home", "/var/lib/snapshots@home"),
    ],
)
def test_the_credentials_in_a_url_are_masked(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[similarity]\nseed = "****"', "similarity.seed"),
        ('[similarity]\nseed = "********************"', "similarity.seed"),
        ('[kafka.common]\n"sasl.password" = "****"', "kafka.common.sasl.password"),
        ('[index.snapshots]\noptions = { a = { b = "***" } }', "index.snapshots.options.a.b"),
        ('[documents]\ntext_fields = ["****"]', "documents.text_fields"),
    ],
)
def test_what_stands_for_a_secret_is_never_taken_for_one(
    text: str, name: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: got asterisks"):
        load(toml(tmp_path, text))


def test_a_secret_comes_from_a_file_without_its_last_newline(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(" two\nlines \n")
    (tmp_path / "key").write_text("id\r\n")
    path = toml(
        tmp_path,
        f"""
        [kafka.common]
        "sasl.password_file" = "{tmp_path / "password"}"
        [kafka.producer]
        "ssl.key.password_file" = "{tmp_path / "key"}"
        [index.snapshots]
        options = {{ key_file = "{tmp_path / "key"}", client_kwargs = {{ a = 1 }} }}
        """,
    )
    settings = load(path)
    options = settings.kafka_options()
    assert options.common == {"sasl.password": " two\nlines "}
    assert options.producer == {"ssl.key.password": "id"}
    assert settings.snapshot_options() == {"key": "id", "client_kwargs": {"a": 1}}
    assert "lines" not in repr(options)
    assert "lines" not in str(settings.redacted())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "the file can't be read: No such file or directory"),
        (b"\n", "the file is empty"),
        (b"\xff", "must be the path of a text file"),
        (b"****\n", "got asterisks"),
    ],
)
def test_a_file_without_a_secret_is_one_line(
    content: bytes | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "hush").write_bytes(content)
    settings = load(overrides={"kafka.common": {"sasl.password_file": str(tmp_path / "hush")}})
    with pytest.raises(ConfigurationError) as caught:
        settings.kafka_options()
    assert str(caught.value).startswith(f"kafka.common: sasl.password_file: {said}")
    assert "hush" not in str(caught.value)


def test_a_key_in_a_file_is_protected_as_any_other() -> None:
    with pytest.raises(ConfigurationError, match=r"transactional\.id can't be overridden"):
        load(overrides={"kafka.producer": {"transactional.id_file": "x"}})


def test_a_seed_of_your_own_has_sixteen_bytes(tmp_path: Path) -> None:
    assert load(overrides={"similarity.seed": SEED}).parameters().seed == SEED.encode()
    assert load().parameters().seed == b"neardup"
    (tmp_path / "seed").write_text(SEED[1:] + "\n")
    with pytest.raises(ConfigurationError, match=r"similarity\.seed_file: .* at least 16"):
        load(overrides={"similarity.seed_file": tmp_path / "seed"})
    with pytest.raises(ConfigurationError, match=r"similarity\.seed: .* at least 16"):
        load(overrides={"similarity.seed": SEED[1:]})


def test_the_public_seed_is_worth_a_warning() -> None:
    (warning,) = advice(load())
    assert warning.startswith("similarity.seed is the default, which is public")
    assert "\n" not in warning
    assert advice(load(overrides={"similarity.seed": SEED})) == []


def test_a_later_file_wins_key_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = toml(
        tmp_path,
        'app = "base"\n[kafka.common]\n"client.rack" = "a"\n"socket.timeout.ms" = 500\n',
        "base.toml",
    )
    site = toml(tmp_path, '[kafka.common]\n"client.rack" = "b"\n[index]\nshards = 3\n', "site.toml")
    settings = load([base, site])
    assert settings.app == "base"
    assert settings.index.shards == 3
    assert settings.kafka.common == {"client.rack": "b", "socket.timeout.ms": 500}
    monkeypatch.setenv("NEARDUP_CONFIG", f"{site}:{base}")
    assert load().kafka.common["client.rack"] == "a"
    with pytest.raises(ConfigurationError, match=r"none\.toml is not a file"):
        load([base, tmp_path / "none.toml"])
