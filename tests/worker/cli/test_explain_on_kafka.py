"""``neardup explain --kafka`` on a real broker, as its users run it."""

import json
import subprocess

import pytest
from confluent_kafka import Producer

from localkafka.broker import Kafka
from tests.support.command_line import on_kafka

Headers = list[tuple[str, str | bytes | None]]
TEXT = "The council has voted to close the old ferry line, after two years of debate. " * 4


@pytest.mark.slow
def test_a_duplicate_and_its_match_are_looked_up(kafka: Kafka, app_id: str) -> None:
    def run(line: str) -> subprocess.CompletedProcess[str]:
        return on_kafka(*line.split(), "--bootstrap", kafka.bootstrap, "--app", app_id)

    assert run("topics create").returncode == 0
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(3_000):
        value = json.dumps({"id": f"n{number}", "text": f"something else, number {number}"})
        producer.produce(f"{app_id}.unique", value, partition=number % 4)
    matches = b'[{"id":"a","similarity":0.5}]'
    unique: Headers = [("neardup-source", b"documents-0-1"), ("neardup-sequence", b"1")]
    duplicate: Headers = [
        ("neardup-source", b"documents-0-2"),
        ("neardup-sequence", b"2"),
        ("neardup-matches", matches),
    ]
    for topic, ident, headers in (("unique", "a", unique), ("duplicate", "b", duplicate)):
        value = json.dumps({"id": ident, "text": f"{TEXT}{ident}"})
        producer.produce(f"{app_id}.{topic}", value, partition=0, headers=headers)
    assert producer.flush(30) == 0

    alone = run("explain --kafka b --json")
    assert alone.returncode == 0, alone.stderr
    found = json.loads(alone.stdout)
    assert [side["id"] for side in found["documents"]] == ["b", "a"]
    assert (found["verdict"], found["recorded"]) == ("duplicate", 0.5)

    shown = run("explain --kafka a b --since earliest")
    assert "a and b are near duplicates" in shown.stdout, shown.stderr
    assert "the worker had other settings" in " ".join(shown.stdout.split())

    missing = run("explain --kafka a nobody")
    assert missing.returncode == 1
    assert missing.stderr.startswith("neardup: 'nobody' is not on ")
    wrong = run("explain --kafka a --since soon")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("neardup: --since: got 'soon'")
