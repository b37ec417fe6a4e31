"""The README's commands for an existing topic work as written, all on one machine."""

import re
import shlex
from pathlib import Path

import pytest

import worker.cli.run
import worker.cli.serve
from tests.support.command_line import ROOT, neardup
from worker.cli.client import Client
from worker.settings.model import Settings


def commands() -> list[list[str]]:
    """Return the README's commands for an existing topic, with their arguments."""
    part = (ROOT / "README.md").read_text().partition("## Put it on your existing topic\n")[2]
    blocks = re.findall(r"```sh\n(.*?)```", part.partition("\n## ")[0], re.DOTALL)
    lines = re.findall(r"^neardup (.*?)(?: 2> .*)?&?$", "".join(blocks), re.MULTILINE)
    return [*map(shlex.split, lines), ["serve"]]


def settings_file() -> str:
    """Return the settings that the README writes before these commands."""
    return (ROOT / "README.md").read_text().partition("<<'END'\n")[2].partition("END\n")[0]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Return the settings with which workers and servers begin, in their order; none runs."""
    settings: list[Settings] = []
    monkeypatch.setattr(worker.cli.run, "run_worker", settings.append)
    monkeypatch.setattr(worker.cli.serve, "run_server", settings.append)
    return settings


def test_processes_share_no_directory_and_no_port(begun: list[Settings], tmp_path: Path) -> None:
    lasting = [line for line in commands() if line[0] in {"run", "serve"}]
    assert [line[0] for line in lasting] == ["run", "run", "serve"]
    config = tmp_path / "neardup.toml"
    config.write_text(settings_file().replace("localhost:9092", "127.0.0.1:1"))
    (tmp_path / "seed").write_text("f" * 64)
    for line in lasting:
        done = neardup(*line, "--config", config, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert {one.topics.documents for one in begun} == {"articles"}
    assert len({one.worker.state_dir for one in begun}) == 3
    ports = [one.worker.http_port for one in begun if one.worker.http_port]
    ports.append(begun[-1].serve.port)
    assert len(ports) == len(set(ports)) == 3
    assert Client.of(begun[-1], None).url == f"http://127.0.0.1:{ports[-1]}"


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
