import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from worker.cli import config
from worker.settings.loading import load


def test_what_is_shown_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = load(
        overrides={
            "app": "news",
            "kafka.common": {"client.rack": 'a "b"', "socket.timeout.ms": 5},
            "documents.text_fields": ["title", "body"],
        }
    )
    config.print_settings(settings, as_json=False)
    path = tmp_path / "shown.toml"
    path.write_text(capsys.readouterr().out)
    again = load(path)
    config.print_settings(again, as_json=True)
    config.print_settings(settings, as_json=True)
    first, second = capsys.readouterr().out.split("}\n{")
    assert first + "}\n" == "{" + second
    assert tomllib.loads(path.read_text())["topics"]["rejected"] == "news.rejected"
    assert again.redacted()["kafka"] == settings.redacted()["kafka"]


def test_what_is_shown_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    wild = "a\x1b[2J\x7f\x9b\u202e\u2028\U000e0041é"
    settings = load(overrides={"kafka.common": {"client.rack": wild}})
    config.print_settings(settings, as_json=False)
    text = capsys.readouterr().out
    assert tomllib.loads(text)["kafka"]["common"]["client.rack"] == wild
    config.print_settings(settings, as_json=True)
    lines = capsys.readouterr().out
    assert json.loads(lines)["kafka"]["common"]["client.rack"] == wild
    assert (text + lines).replace("\n", "").isprintable()


def test_secrets_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    secrets = {"sasl.password": "hush1", "ssl.key.password": "hush2"}
    settings = load(overrides={"kafka.common": secrets, "similarity.seed": "hush3-hush3-hush3"})
    config.print_settings(settings, as_json=False)
    config.print_settings(settings, as_json=True)
    assert "hush" not in capsys.readouterr().out


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_check_says_ok_or_one_line() -> None:
    assert run("config", "check").stdout == "ok\n"
    wrong = run("config", "check", NEARDUP_SIMILARITY__TRESHOLD="1")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert "did you mean NEARDUP_SIMILARITY__THRESHOLD?" in wrong.stderr


@pytest.mark.slow
def test_check_finds_what_librdkafka_refuses_and_a_run_says_the_same(tmp_path: Path) -> None:
    options = json.dumps({"sasl.passwrd": "hush"})
    for command in (["config", "check"], ["run", "--state-dir", str(tmp_path)], ["watch"]):
        wrong = run(*command, NEARDUP_KAFKA__COMMON=options)
        assert wrong.returncode == 2
        last = wrong.stderr.splitlines()[-1]
        assert last.startswith("neardup: kafka.common: sasl.passwrd: librdkafka has no such")
        assert "Traceback" not in wrong.stderr
        assert "hush" not in wrong.stderr


@pytest.mark.slow
def test_check_warns_of_what_it_ignores_and_of_the_public_seed() -> None:
    done = run("config", "check", NEARDUP_SERVICE_HOST="10.0.0.1")
    assert done.stdout == "ok\n"
    first, second = done.stderr.splitlines()
    assert first.startswith("warning: ignoring NEARDUP_SERVICE_HOST:")
    assert second.startswith("warning: similarity.seed is the default, which is public")


@pytest.mark.slow
def test_without_a_broker_there_is_one_line() -> None:
    commands = ["topics verify", "topics create", "init", "watch", "redrive", "feed -", "forget a"]
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", "worker.cli", *command.split(), "--bootstrap", "127.0.0.1:1"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    for process in begun:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1
        assert said.count("\n") == 1
        assert "no broker of 127.0.0.1:1 answers" in said


def test_slots_bands_and_rows_are_shown_as_they_follow(capsys: pytest.CaptureFixture[str]) -> None:
    config.print_settings(load(overrides={"similarity.threshold": 0.5}), as_json=False)
    shown = capsys.readouterr().out
    for line in ("slots = 256", "bands = 64", "rows = 4"):
        assert line in shown
    assert shown.count("# follows from") == 3
    config.print_settings(load(overrides={"similarity.slots": 200}), as_json=False)
    assert capsys.readouterr().out.count("# follows from") == 2
