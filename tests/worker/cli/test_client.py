"""Commands ask the server that the settings name, and say and show nothing to or of any other."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.command_line import neardup
from tests.worker.cli.strangers import listening
from worker.cli.client import Client
from worker.cli.errors import CommandError
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load

TOKEN = "t" * 32
LIST = b'{"corrections": [], "count": 0, "allowances": 0, "most_allowances": 1000, "next": null}'
TEXT = "a text that nobody else shall read"
COMMANDS = (
    ["campaigns"],
    ["campaigns", "--members", "7"],
    ["query", TEXT],
    ["allow", "--list"],
    ["forget", "--group", "7", "--yes"],
    ["forget", "--text", TEXT, "--yes"],
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    path = tmp_path / "neardup.toml"
    path.write_text(f'app = "ours"\nserve.token_file = "{token}"\n')
    return path


def made(folder: Path) -> dict[str, Path]:
    """Make a certificate for another name than that of this machine."""
    folder.mkdir()
    files = {"cert": folder / "cert.pem", "key": folder / "key.pem"}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=neardup.example", "-keyout", str(files["key"]),
         "-out", str(files["cert"])],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return files


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("theirs", "is the server of the application theirs, not of ours. Name another server"),
        (None, "not an answer of neardup serve: status 200"),
    ],
)
def test_a_stranger_gets_no_token_and_no_text_and_nothing_of_it_is_shown(
    config: Path, command: list[str], name: str | None, said: str
) -> None:
    with listening(name) as one:
        done = neardup(*command, "--config", config, "--server", f"127.0.0.1:{one.port}")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(f"neardup: 127.0.0.1:{one.port}: {said}")
    assert done.stderr.count(b"\n") == 1
    assert one.asked == [("GET /v1/session", None, b"")]


def test_a_token_goes_to_the_server_of_the_application(config: Path) -> None:
    with listening("ours", body=LIST) as one:
        done = neardup("allow", "--list", "--config", config, "--server", f"localhost:{one.port}")
        assert (done.returncode, done.stdout) == (0, b"nothing is corrected\n")
        other = neardup("query", TEXT, "--config", config, "--app", "theirs",
                        "--server", f"localhost:{one.port}")  # fmt: skip
    assert b"is the server of the application ours, not of theirs" in other.stderr
    first, second, last = one.asked
    assert first == last == ("GET /v1/session", None, b"")
    assert second[1] == f"Bearer {TOKEN}"


def test_an_answer_that_comes_from_another_one_after_all_is_not_shown(config: Path) -> None:
    with listening("ours", "theirs") as one:
        done = neardup("campaigns", "--config", config, "--server", f"127.0.0.1:{one.port}")
    assert (done.returncode, done.stdout, len(one.asked)) == (1, b"", 2)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_server_of_the_settings_is_asked(config: Path, command: list[str]) -> None:
    with listening("ours", body=b'{"error": "warming up"}', status=503) as one:
        config.write_text(f"{config.read_text()}serve.port = {one.port}\n")
        done = neardup(*command, "--config", config)
    expected = f"neardup: http://127.0.0.1:{one.port}: warming up\n"
    assert (done.returncode, done.stderr.decode()) == (1, expected)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "http://127.0.0.1:9465"),
        ({"port": 7, "host": "0.0.0.0"}, "http://127.0.0.1:7"),  # noqa: S104 -- a setting
        ({"port": 7, "host": "::"}, "http://[::1]:7"),
        ({"port": 7, "host": "10.1.2.3", "tls_in_front": True}, "http://10.1.2.3:7"),
        ({"port": 7, "host": "news.example", "tls_cert_file": "c"}, "https://news.example:7"),
    ],
)
def test_the_address_is_where_the_settings_have_it_listen(
    given: Mapping[str, object], url: str
) -> None:
    settings = load(None, {f"serve.{name}": value for name, value in given.items()})
    assert Client.of(settings, None).url == url


def test_any_port_is_no_address() -> None:
    with pytest.raises(ConfigurationError, match=r"serve\.port: got 0, .* \(--server URL\)"):
        Client.of(load(None, {"serve.port": 0}), None)


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a:b", "http://[", "x:99999", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match="must be like http://host:9465"):
        Client(url, "ours")


@pytest.mark.parametrize("url", ["http://" + "a" * 70, "127.0.0.1:1/a b", "127.0.0.1:1/ü"])
def test_where_nobody_can_be_asked_is_an_error_of_ours(url: str) -> None:
    with pytest.raises(CommandError) as caught:
        Client(url, "ours").get("/v1/groups", {}, list[int])
    assert str(caught.value).startswith(f"{url}: ")


@pytest.mark.parametrize("body", [b"", b"[" * 100_000, b'{"id": 7}', b"\xff", b"null"])
def test_an_answer_of_another_form_is_an_error(body: bytes) -> None:
    with listening("ours", body=body) as one:
        asked = Client(f"127.0.0.1:{one.port}", "ours")
        with pytest.raises(CommandError, match="not an answer of neardup serve"):
            asked.get("/v1/groups", {}, list[int])


def test_with_tls_only_the_certificate_of_the_settings_is_trusted(tmp_path: Path) -> None:
    ours, theirs = made(tmp_path / "ours"), made(tmp_path / "theirs")
    with listening("ours", body=b"[1]", certificate=ours) as one:
        url = f"https://127.0.0.1:{one.port}"
        asked = Client(url, "ours", TOKEN.encode(), ours["cert"])
        assert asked.get("/v1/groups", {}, list[int]) == [1]
        count = len(one.asked)
        with pytest.raises(CommandError, match=r"has another certificate than serve\.tls_cert"):
            Client(url, "ours", TOKEN.encode(), theirs["cert"]).get("/", {}, list[int])
        with pytest.raises(CommandError, match=r"certificate|CERTIFICATE"):
            Client(url, "ours", TOKEN.encode()).get("/", {}, list[int])
        with pytest.raises(ConfigurationError, match="has no certificate in PEM"):
            Client(url, "ours", TOKEN.encode(), ours["key"]).get("/", {}, list[int])
        assert len(one.asked) == count
