"""What docker-compose.yml and the image promise, checked without a Docker engine."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.datastructures import Headers

from localkafka.jars import jars, java, kafka_version
from tests.support.command_line import neardup
from tests.support.prometheus import program
from worker import __version__
from worker.serve.rights import Rights
from worker.settings.loading import load
from worker.settings.sections import ServeSection

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
STATE_DIRECTORY = "/var/lib/neardup"
SERVICES = ["kafka", "topics", "worker", "serve", "prometheus", "grafana"]

LOGGING = """
Configuration:
  Properties: {Property: []}
  Appenders: {Console: {name: STDOUT}}
  Loggers: {Root: {level: ERROR}, Logger: []}
"""


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


@pytest.fixture(scope="module")
def image() -> dict[str, list[str]]:
    """Return the image's instructions: name to arguments, of all stages, in order."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    instructions: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, arguments = line.strip().partition(" ")
        if name.isupper():
            instructions.setdefault(name, []).append(arguments.strip())
    return instructions


def read(path: str) -> Any:  # noqa: ANN401 -- YAML
    return yaml.safe_load((ROOT / path).read_text())


def assert_accepted_by_the_command_line(arguments: list[str]) -> None:
    """Check that the subcommand and every option exist: ``--help`` runs nothing."""
    done = neardup(*arguments, "--help")
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_kafka_is_the_version_that_the_tests_run_on(services: dict[str, Any]) -> None:
    name, _, _digest = services["kafka"]["image"].partition("@")
    assert name == f"apache/kafka:{kafka_version()}"


@pytest.mark.parametrize("service", ["topics", "worker", "serve"])
def test_the_image_carries_the_version_of_the_project(
    services: dict[str, Any], service: str
) -> None:
    assert services[service]["image"] == f"neardup:{__version__}"


def test_no_two_services_build_one_image(services: dict[str, Any]) -> None:
    """Compose builds all at once, and an image's name can be taken only once."""
    builds = [service for service in services.values() if "build" in service]
    images = [service["image"] for service in builds]
    assert len(images) == len(set(images)) > 0
    for build in (service["build"] for service in builds):
        assert (ROOT / build["context"] / build["dockerfile"]).is_file()
    for service in services.values():
        if service["image"] in images and "build" not in service:
            assert service["pull_policy"] == "never"  # Nobody else may have an image of that name.


@pytest.mark.parametrize("service", ["topics", "worker", "serve"])
def test_commands_exist(services: dict[str, Any], service: str) -> None:
    assert_accepted_by_the_command_line(services[service]["command"])


def test_the_image_runs_a_command_that_exists(image: dict[str, list[str]]) -> None:
    *init, program = json.loads(image["ENTRYPOINT"][-1])
    assert init == ["tini", "-s", "--"]
    assert program == "neardup"
    assert_accepted_by_the_command_line(json.loads(image["CMD"][-1]))


@pytest.mark.parametrize("service", ["topics", "worker", "serve"])
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
    assert settings.serve.host == "0.0.0.0"  # noqa: S104  the same for queries
    assert image["EXPOSE"] == [f"{settings.worker.http_port} {settings.serve.port}"]


def test_the_page_takes_a_token_and_is_open_on_this_machine_alone(
    compose: dict[str, Any], tmp_path: Path
) -> None:
    serve = compose["services"]["serve"]
    (secret,) = serve["secrets"]
    assert serve["environment"]["NEARDUP_SERVE__TOKEN_FILE"] == f"/run/secrets/{secret}"
    assert all(port.startswith("127.0.0.1:") for port in serve["ports"])
    kept = compose["secrets"][secret]["file"]
    assert subprocess.run(["git", "check-ignore", kept], cwd=ROOT, check=False).returncode == 0

    token = tmp_path / "token"
    token.write_text("t" * 64)
    at = ServeSection(
        host="0.0.0.0",  # noqa: S104  as the image sets it
        token_file=token,
        tls_in_front=serve["environment"]["NEARDUP_SERVE__TLS_IN_FRONT"] == "true",
    )
    assert Rights.of(at, "neardup").given(Headers()) == frozenset()


def test_each_worker_has_a_volume_of_its_own(
    services: dict[str, Any], image: dict[str, list[str]]
) -> None:
    # Only a path, so anonymous: with a source it would be one volume for all replicas.
    assert services["worker"]["volumes"] == [STATE_DIRECTORY]
    assert image["VOLUME"] == [STATE_DIRECTORY]
    assert "container_name" not in services["worker"], "a fixed name forbids --scale"


def test_workers_wait_for_kafka_and_the_topics(services: dict[str, Any]) -> None:
    assert services["worker"]["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "topics": {"condition": "service_completed_successfully"},
    }
    assert services["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}


def test_health_checks_ask_the_worker_and_kafka(
    services: dict[str, Any], image: dict[str, list[str]]
) -> None:
    (health,) = re.findall(r"COPY deploy/health /usr/local/bin/(\S+)", DOCKERFILE.read_text())
    (check,) = image["HEALTHCHECK"]
    assert json.loads(check[check.index("[") :]) == [health, "/healthz"]
    assert services["worker"]["healthcheck"]["test"] == ["CMD", health, "/readyz"]
    assert services["kafka"]["healthcheck"]["test"] == ["CMD", "nc", "-z", "kafka", "19092"]


def test_metrics_of_each_replica_are_on_a_free_port_of_this_machine(
    services: dict[str, Any], image: dict[str, list[str]]
) -> None:
    # Without a number on the host's side: a fixed port forbids --scale.
    port = image["EXPOSE"][0].split()[0]
    assert services["worker"]["ports"] == [f"127.0.0.1::{port}"]


def test_clients_find_kafka_where_it_listens(services: dict[str, Any]) -> None:
    kafka = services["kafka"]["environment"]
    listeners = dict(entry.split("://") for entry in kafka["KAFKA_ADVERTISED_LISTENERS"].split(","))
    assert listeners == {"PLAINTEXT_HOST": "localhost:9092", "PLAINTEXT": "kafka:19092"}
    for service in ("topics", "worker", "serve"):
        assert listeners["PLAINTEXT"] in services[service]["environment"].values()


def test_what_is_not_asked_for_does_not_start(services: dict[str, Any]) -> None:
    profiles = {name: service.get("profiles") for name, service in services.items()}
    assert profiles == {
        "kafka": None,
        "topics": None,
        "worker": None,
        "serve": ["page"],
        "prometheus": ["monitoring"],
        "grafana": ["monitoring"],
    }


def test_prometheus_scrapes_all_that_serve_metrics(
    services: dict[str, Any], image: dict[str, list[str]]
) -> None:
    path = ROOT / "deploy" / "prometheus" / "prometheus.yml"
    (job,) = read("deploy/prometheus/prometheus.yml")["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    ours = services["worker"]["image"]
    serving = {name for name, one in services.items() if one["image"] == ours} - {"topics"}
    assert set(found["names"]) == serving
    assert str(found["port"]) == image["EXPOSE"][0].split()[0]
    assert "./deploy/prometheus:/etc/prometheus:ro" in services["prometheus"]["volumes"]
    done = subprocess.run(
        [program("promtool"), "check", "config", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_grafana_is_given_prometheus_and_all_dashboards(services: dict[str, Any]) -> None:
    (source,) = read("deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert services["prometheus"]["ports"] == ["127.0.0.1:9090:9090"]
    (provider,) = read("deploy/grafana/provisioning/dashboards/neardup.yml")["providers"]
    mounts = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    assert {path: folder for folder, path in mounts.items()} == {
        "/etc/grafana/provisioning": "./deploy/grafana/provisioning",
        provider["options"]["path"]: "./deploy/grafana",
        "/var/lib/grafana": "grafana",
    }


@pytest.mark.kafka
def test_the_start_of_kafkas_image_accepts_the_environment(
    services: dict[str, Any], tmp_path: Path
) -> None:
    """The class that the image starts with turns the environment into a configuration."""
    data = tmp_path / "data"
    given = services["kafka"]["environment"] | {"KAFKA_LOG_DIRS": str(data)}
    line = [java(), "-cp", f"{jars()}/*", "kafka.docker.KafkaDockerWrapper", "setup"]
    for name in ("default", "mounted", "final"):
        (tmp_path / name).mkdir()
        line += [f"--{name}-configs-dir", str(tmp_path / name)]
    (tmp_path / "default" / "server.properties").touch()
    for name in ("log4j2.yaml", "tools-log4j2.yaml"):
        (tmp_path / "default" / name).write_text(LOGGING)
    environment = {name: str(value) for name, value in given.items()}
    done = subprocess.run(
        line, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    written = (tmp_path / "final" / "server.properties").read_text().splitlines()
    properties = dict(each.split("=", 1) for each in written if each)
    named = (name for name in given if name.startswith("KAFKA_"))
    assert properties.keys() == {
        name.removeprefix("KAFKA_").lower().replace("_", ".") for name in named
    }
    assert f"cluster.id={given['CLUSTER_ID']}" in (data / "meta.properties").read_text()


def test_the_image_is_locked_and_not_run_as_root(image: dict[str, list[str]]) -> None:
    installs = [run for run in image["RUN"] if " -r requirements/" in run]
    assert installs
    assert all("--require-hashes" in run for run in installs)
    assert int(image["USER"][-1]) > 0


def test_base_images_have_exact_versions_of_one_debian(image: dict[str, list[str]]) -> None:
    """A tag like 3.12 would move; `make pin-images` adds the digest."""
    names = [line.split()[0] for line in image["FROM"]]
    stages = [line.split()[-1] for line in image["FROM"] if " AS " in line]
    rust, python = (name for name in names if name not in stages)
    compiled_for, run_on = (
        re.fullmatch(rf"{image}:\d+\.\d+\.\d+-slim-([a-z]+)(@sha256:[0-9a-f]{{64}})?", name)
        for image, name in {"rust": rust, "python": python}.items()
    )
    assert compiled_for is not None
    assert run_on is not None
    assert compiled_for[1] == run_on[1]


@pytest.mark.parametrize("service", SERVICES)
def test_every_container_is_confined(services: dict[str, Any], service: str) -> None:
    made = services[service]
    assert made["cap_drop"] == ["ALL"]
    assert made["security_opt"] == ["no-new-privileges:true"]
    assert made["pids_limit"] > 0
    assert made["mem_limit"]
    assert "privileged" not in made
    assert "cap_add" not in made


@pytest.mark.parametrize("service", ["topics", "worker", "serve"])
def test_our_containers_write_to_their_volume_and_tmp_only(
    services: dict[str, Any], service: str
) -> None:
    assert services[service]["read_only"] is True
    assert services[service]["tmpfs"] == ["/tmp"]  # noqa: S108 -- in the container


def test_kafka_can_be_reached_from_this_machine_only(services: dict[str, Any]) -> None:
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_all_base_images_have_digests() -> None:
    for image in images_in(ROOT):
        assert re.fullmatch(r"[a-z/]+:v?[0-9][\w.-]+@sha256:[0-9a-f]{64}", image), image


def test_pinning_adds_and_renews_the_digests_of_all_base_images(tmp_path: Path) -> None:
    for name in ("deploy/Dockerfile", "deploy/pin-images", "docker-compose.yml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    before = [image.partition("@")[0] for image in images_in(tmp_path)]
    assert len(before) == 5
    for digit in "12":
        docker.write_text(f"#!/bin/sh\nprintf 'sha256:'; printf '{digit}%.0s' $(seq 64)\n")
        docker.chmod(0o755)
        path = f"{docker.parent}:{os.environ['PATH']}"
        subprocess.run(
            [tmp_path / "deploy" / "pin-images"],
            check=True,
            capture_output=True,
            env={**os.environ, "PATH": path},
        )
        assert images_in(tmp_path) == [f"{name}@sha256:{digit * 64}" for name in before]
    compose = yaml.safe_load((tmp_path / "docker-compose.yml").read_text())
    assert compose["services"]["worker"]["image"] == f"neardup:{__version__}"


def images_in(folder: Path) -> list[str]:
    """Return the images that the Dockerfile and compose take from elsewhere."""
    named = re.findall(r"^FROM (\S+:\S+)", (folder / "deploy/Dockerfile").read_text(), re.MULTILINE)
    compose = yaml.safe_load((folder / "docker-compose.yml").read_text())
    services = [service["image"] for service in compose["services"].values()]
    return named + [image for image in services if not image.startswith("neardup:")]
