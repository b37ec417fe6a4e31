"""The README's commands for Kafka work as written, all on one machine."""

import re
import shlex
from pathlib import Path

import pytest

import worker.cli.run
import worker.cli.serve
from tests.support.command_line import ROOT, neardup
from worker.cli.files_commands import DEFAULT_SERVER
from worker.settings import Settings


def commands() -> list[list[str]]:
    """Return the commands of the README's block about Kafka, with their arguments."""
    block = (ROOT / "README.md").read_text().partition("On Kafka:\n\n")[2].partition("\n\n")[0]
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [line[1:] for line in lines if line[:1] == ["neardup"]]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Return the settings with which workers and servers begin, in their order; none runs."""
    settings: list[Settings] = []
    monkeypatch.setattr(worker.cli.run, "run", settings.append)
    monkeypatch.setattr(worker.cli.serve, "serve", settings.append)
    return settings


def test_processes_share_no_directory_and_no_port(begun: list[Settings], tmp_path: Path) -> None:
    lasting = [line for line in commands() if line[0] in {"run", "serve"}]
    assert [line[0] for line in lasting] == ["run", "run", "serve"]
    for line in lasting:
        done = neardup(*line, "--bootstrap", "127.0.0.1:1", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert len({one.worker.state_dir for one in begun}) == 3
    ports = [one.worker.http_port for one in begun if one.worker.http_port]
    ports.append(begun[-1].serve.port)
    assert len(ports) == len(set(ports)) == 3
    assert f"http://localhost:{ports[-1]}" == DEFAULT_SERVER


def test_every_command_exists() -> None:
    for line in commands():
        words = line[: 2 if line[0] == "topics" else 1]
        done = neardup(*words, "--help")
        assert done.returncode == 0
        for option in (word for word in line if word.startswith("--")):
            assert re.search(rf"{option}\b", done.stdout.decode()), line


def test_a_setting_takes_precedence_over_a_servers_defaults(
    begun: list[Settings], tmp_path: Path
) -> None:
    config = tmp_path / "neardup.toml"
    config.write_text('[kafka]\nbootstrap = "127.0.0.1:1"\n[worker]\nhttp_port = 7\n')
    assert neardup("serve", "--config", config).returncode == 0
    (settings,) = begun
    assert settings.worker.http_port == 7
    assert settings.worker.state_dir == Path("neardup-serve")
