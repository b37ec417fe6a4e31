"""``neardup explain --kafka`` on a real broker, as its users run it."""

import json
import os
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from localkafka.broker import Kafka

Headers = list[tuple[str, str | bytes | None]]
TEXT = "The council has voted to close the old ferry line, after two years of debate. " * 4


@pytest.fixture
def environment(kafka: Kafka, app_id: str) -> dict[str, str]:
    return {**os.environ, "NEARDUP_KAFKA__BOOTSTRAP": kafka.bootstrap, "NEARDUP_APP": app_id}


def run(line: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", *line.split()],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )


def test_a_duplicate_and_its_match_are_looked_up(
    kafka: Kafka, app_id: str, environment: dict[str, str]
) -> None:
    assert run("topics create", environment).returncode == 0
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(3_000):
        value = json.dumps({"id": f"n{number}", "text": f"something else, number {number}"})
        producer.produce(f"{app_id}.unique", value, partition=number % 4)
    matches = b'[{"id":"a","similarity":0.5}]'
    unique: Headers = [("neardup-sequence", b"1")]
    duplicate: Headers = [("neardup-sequence", b"2"), ("neardup-matches", matches)]
    for topic, ident, headers in (("unique", "a", unique), ("duplicate", "b", duplicate)):
        value = json.dumps({"id": ident, "text": f"{TEXT}{ident}"})
        producer.produce(f"{app_id}.{topic}", value, partition=0, headers=headers)
    assert producer.flush(30) == 0

    alone = run("explain --kafka b --json", environment)
    assert alone.returncode == 0, alone.stderr
    found = json.loads(alone.stdout)
    assert [side["id"] for side in found["documents"]] == ["b", "a"]
    assert (found["verdict"], found["recorded"]) == ("duplicate", 0.5)

    shown = run("explain --kafka a b --since earliest", environment)
    assert "a and b are near duplicates" in shown.stdout, shown.stderr
    assert "these are not the worker's settings" in " ".join(shown.stdout.split())

    missing = run("explain --kafka a nobody", environment)
    assert missing.returncode == 1
    assert missing.stderr.startswith("neardup: 'nobody' is not on ")
    wrong = run("explain --kafka a --since soon", environment)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("neardup: --since: got 'soon'")
