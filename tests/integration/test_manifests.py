"""What is deployed to Kubernetes becomes ready: its job, its worker and its probes, as they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.cimpl import NewTopic

from localkafka.broker import Kafka, wait_until
from localkafka.ports import free_ports
from tests.support.command_line import ROOT, on_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

MANIFESTS = list(
    yaml.safe_load_all((ROOT / "deploy" / "kustomize" / "base" / "neardup.yaml").read_text())
)


def pod(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a pod of the base, and its only container."""
    (made,) = (one for one in MANIFESTS if one and one["kind"] == kind)
    spec = made["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return spec, container


def environment(kafka: Kafka, app: str, container: dict[str, Any], volume: Path) -> dict[str, str]:
    """Return what the container would see, with a folder in place of its volume."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("NEARDUP_")}
    found |= {"NEARDUP_APP": app, "NEARDUP_KAFKA__BOOTSTRAP": kafka.bootstrap}
    for one in container.get("env", ()):
        value = one.get("value") or f"{app}-0"
        found[one["name"]] = value.replace("/var/lib/neardup", str(volume))
    return found


def status(port: int, probe: dict[str, Any]) -> int:
    """Probe as a kubelet does; 0 if nobody answers."""
    url = f"http://127.0.0.1:{port}{probe['httpGet']['path']}"
    try:
        with urllib.request.urlopen(url, timeout=probe["timeoutSeconds"]) as answer:
            code: int = answer.status
            return code
    except urllib.error.HTTPError as error:
        return int(error.code)
    except OSError:
        return 0


@pytest.mark.slow
def test_from_the_manifests_to_a_ready_worker(kafka: Kafka, app_id: str, tmp_path: Path) -> None:
    spec, container = pod("StatefulSet")
    given = environment(kafka, app_id, container, tmp_path)
    (port,) = free_ports(1)
    given["NEARDUP_WORKER__HTTP_PORT"] = str(port)
    neardup = [sys.executable, "-m", "neardup"]
    arguments = pod("Job")[1]["args"]

    early = subprocess.run(
        [*neardup, *container["args"]], env=given, cwd=ROOT, capture_output=True, check=False
    )
    assert early.returncode == 2, early.stderr.decode()  # The kubelet starts it again.
    for _ in range(2):  # A second install or upgrade changes nothing.
        subprocess.run([*neardup, *arguments], env=given, cwd=ROOT, capture_output=True, check=True)

    log = (tmp_path / "log").open("wb")
    with (
        log,
        subprocess.Popen(
            [*neardup, *container["args"]], env=given, cwd=ROOT, stdout=log, stderr=log
        ) as worker,
    ):
        try:
            startup = container["startupProbe"]
            most = startup["periodSeconds"] * startup["failureThreshold"]
            wait_until(lambda: status(port, startup) == 200, most, "the startup probe")
            wait_until(lambda: status(port, container["readinessProbe"]) == 200, 60, "a ready pod")
            assert status(port, container["livenessProbe"]) == 200
            # The name of the pod is that of the worker, and its state is below the volume.
            assert f"instance {app_id}-0".encode() in (tmp_path / "log").read_bytes()
            assert (tmp_path / "state" / "lock").exists()
            began = time.monotonic()
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(spec["terminationGracePeriodSeconds"]) == 0
            assert time.monotonic() - began < spec["terminationGracePeriodSeconds"]
        finally:
            worker.kill()


def test_topics_as_strimzi_makes_them_are_what_a_worker_wants(kafka: Kafka, app_id: str) -> None:
    _, *resources = yaml.safe_load_all((ROOT / "deploy" / "strimzi" / "neardup.yaml").read_text())
    topics = [
        NewTopic(
            one["metadata"]["name"].replace("neardup", app_id),
            one["spec"]["partitions"],
            1,  # The broker of the tests is alone.
            config=one["spec"]["config"] | {"min.insync.replicas": "1"},
        )
        for one in resources
    ]
    admin = kafka.admin()  # What is asked for ends with it.
    for made in admin.create_topics(topics).values():
        made.result(60)
    place = ("--app", app_id, "--bootstrap", kafka.bootstrap)
    begun = on_kafka("init", *place)
    assert begun.returncode == 0, begun.stderr
    verified = on_kafka("topics", "verify", *place, "--json")
    assert verified.returncode == 0, verified.stderr
    problems = json.loads(verified.stdout)["problems"]
    assert all("replica" in json.dumps(problem) for problem in problems), problems
