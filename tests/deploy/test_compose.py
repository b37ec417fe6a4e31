"""What docker-compose.yml and the image promise, checked without a Docker engine."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kafka.jars import kafka_version
from worker import __version__
from worker.settings import load

ROOT = Path(__file__).parents[2]
STATE_DIRECTORY = "/var/lib/neardup"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    found: dict[str, Any] = compose["services"]
    return found


@pytest.fixture(scope="module")
def image() -> dict[str, list[str]]:
    """Return the image's instructions: name to arguments, of all stages, in order."""
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    instructions: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, arguments = line.strip().partition(" ")
        if name.isupper():
            instructions.setdefault(name, []).append(arguments.strip())
    return instructions


def assert_accepted_by_the_command_line(arguments: list[str]) -> None:
    """Check that the subcommand and every option exist: ``--help`` runs nothing."""
    program = "import sys; from worker.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_kafka_is_the_version_that_the_tests_run_on(services: dict[str, Any]) -> None:
    assert services["kafka"]["image"] == f"apache/kafka:{kafka_version()}"


@pytest.mark.parametrize("service", ["topics", "worker"])
def test_the_image_carries_the_version_of_the_project(
    services: dict[str, Any], service: str
) -> None:
    assert services[service]["image"] == f"neardup:{__version__}"
    build = services[service]["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()


@pytest.mark.parametrize("service", ["topics", "worker"])
def test_commands_exist(services: dict[str, Any], service: str) -> None:
    assert_accepted_by_the_command_line(services[service]["command"])


def test_the_image_runs_a_command_that_exists(image: dict[str, list[str]]) -> None:
    assert json.loads(image["ENTRYPOINT"][-1]) == ["neardup"]
    assert_accepted_by_the_command_line(json.loads(image["CMD"][-1]))


@pytest.mark.parametrize("service", ["topics", "worker"])
def test_settings_in_the_environment_are_accepted(
    services: dict[str, Any],
    image: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    service: str,
) -> None:
    for name in [name for name in os.environ if name.startswith("NEARDUP_")]:
        monkeypatch.delenv(name)
    in_image = dict(pair.split("=", 1) for line in image["ENV"] for pair in shlex.split(line))
    for name, value in (in_image | services[service]["environment"]).items():
        if name.startswith("NEARDUP_"):
            monkeypatch.setenv(name, value)

    settings = load()
    assert settings.kafka.bootstrap == "kafka:19092"
    assert settings.worker.state_dir == Path(STATE_DIRECTORY)
    assert settings.worker.http_host == "0.0.0.0"  # noqa: S104  or nobody outside gets metrics
    assert image["EXPOSE"] == [str(settings.worker.http_port)]


def test_each_worker_has_a_volume_of_its_own(
    services: dict[str, Any], image: dict[str, list[str]]
) -> None:
    # Only a path, so anonymous: with a source it would be one volume for all replicas.
    assert services["worker"]["volumes"] == [STATE_DIRECTORY]
    assert image["VOLUME"] == [STATE_DIRECTORY]
    assert "container_name" not in services["worker"], "a fixed name forbids --scale"
    assert "ports" not in services["worker"], "a fixed port forbids --scale"


def test_workers_wait_for_kafka_and_the_topics(services: dict[str, Any]) -> None:
    assert services["worker"]["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "topics": {"condition": "service_completed_successfully"},
    }
    assert services["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}


def test_health_checks_ask_the_port_that_the_image_exposes(
    services: dict[str, Any], image: dict[str, list[str]]
) -> None:
    (port,) = image["EXPOSE"]
    assert f"http://127.0.0.1:{port}/healthz" in image["HEALTHCHECK"][0]
    assert f"http://127.0.0.1:{port}/readyz" in services["worker"]["healthcheck"]["test"][-1]
    assert "kafka:19092" in services["kafka"]["healthcheck"]["test"]


def test_clients_find_kafka_where_it_listens(services: dict[str, Any]) -> None:
    kafka = services["kafka"]["environment"]
    listeners = dict(entry.split("://") for entry in kafka["KAFKA_ADVERTISED_LISTENERS"].split(","))
    assert listeners == {"PLAINTEXT_HOST": "localhost:9092", "PLAINTEXT": "kafka:19092"}
    for service in ("topics", "worker"):
        assert listeners["PLAINTEXT"] in services[service]["environment"].values()


def test_the_image_is_locked_and_not_run_as_root(image: dict[str, list[str]]) -> None:
    installs = [run for run in image["RUN"] if " -r requirements/" in run]
    assert installs
    assert all("--require-hashes" in run for run in installs)
    assert int(image["USER"][-1]) > 0
