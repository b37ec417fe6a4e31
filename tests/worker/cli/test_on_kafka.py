"""The commands on a real broker, as their users run them."""

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka import TopicPartition as Place

from localkafka.broker import Kafka, wait_until
from tests.support.clusters import ClusterFactory
from tests.support.command_line import jsonl, on_kafka
from worker.admin.checks import verify
from worker.admin.cluster import Cluster
from worker.bus import TopicPartition
from worker.bus.kafka.groups import group_client
from worker.settings.loading import load
from worker.settings.model import Settings

Run = Callable[..., subprocess.CompletedProcess[str]]

# Recent enough for the topics' retention.
BEGUN_MS = int(time.time() - 3 * 86_400) * 1_000


@pytest.fixture
def run(kafka: Kafka, app_id: str) -> Run:
    def command(line: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = on_kafka(*line.split(), "--bootstrap", kafka.bootstrap, "--app", app_id)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done

    return command


@pytest.fixture
def settings(kafka: Kafka, app_id: str) -> Settings:
    return load(overrides={"kafka.bootstrap": kafka.bootstrap, "app": app_id})


def read(kafka: Kafka, topic: str, partitions: int) -> list[Message]:
    """Give all committed records of a topic."""
    config = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(config)
    consumer.assign([Place(topic, number, 0) for number in range(partitions)])
    found: list[Message] = []
    ended: set[int | None] = set()

    def at_end() -> bool:
        for message in consumer.consume(1_000, 1):
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
        return len(ended) == partitions

    wait_until(at_end, 60, f"the end of {topic}")
    consumer.close()
    return found


def test_create_makes_everything_verify_finds_it_in_order(
    run: Run, settings: Settings, app_id: str
) -> None:
    missing = run("topics verify", status=2)
    assert f"error    {app_id}.documents: the topic is missing" in missing.stdout
    assert "neardup topics create" in missing.stdout
    assert missing.stderr == "neardup: a worker can't run: 9 errors, 1 warning\n"

    made = run("topics create --partitions 3")
    assert made.stdout.count("created ") == 10
    assert made.stdout.endswith("ok: 3 partitions, 2 shards, 1 broker\n")
    assert verify(settings) == (3, [])

    again = run("topics create --from latest")
    assert "created" not in again.stdout
    assert "set      group" not in again.stdout
    assert f"kept     group {app_id}.route: 9 offsets were already set" in again.stdout
    assert "--partitions: got 4" in run("topics create --partitions 4", status=2).stderr

    shown = run("topics verify").stdout
    assert "wrong" not in shown
    assert "12 of 12 set" not in shown
    assert "9 of 9 set" in shown


@pytest.mark.slow
def test_documents_that_exist_decide_the_partition_count(
    run: Run, kafka: Kafka, settings: Settings, app_id: str
) -> None:
    kafka.create_topic(f"{app_id}.documents", 2, {"max.message.bytes": 1_100_000})
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(3):
        producer.produce(f"{app_id}.documents", b"{}", partition=1, timestamp=BEGUN_MS + number)
    producer.flush(30)
    second = datetime.fromtimestamp((BEGUN_MS + 1) / 1_000, UTC).isoformat()
    assert "ok: 2 partitions" in run(f"topics create --from {second}").stdout
    _, states = Cluster(settings.kafka_options()).topics([f"{app_id}.rejected"])
    rejected = states[f"{app_id}.rejected"]
    assert rejected is not None
    assert int(rejected.settings["max.message.bytes"]) >= 1_100_000 + 8_192
    places = [TopicPartition(f"{app_id}.documents", number) for number in (0, 1)]
    found = Cluster(settings.kafka_options()).committed(
        {f"{app_id}.fingerprint": places, f"{app_id}.route": places}
    )
    assert (
        found[f"{app_id}.fingerprint"] == found[f"{app_id}.route"] == {places[0]: 0, places[1]: 1}
    )
    run("init --from latest --force")
    found = Cluster(settings.kafka_options()).committed({f"{app_id}.route": places})
    assert found[f"{app_id}.route"] == {places[0]: 0, places[1]: 3}


@pytest.mark.slow(ci=False)
def test_three_brokers_get_three_copies(kafka_cluster: ClusterFactory, app_id: str) -> None:
    cluster = kafka_cluster(3)
    settings = load(overrides={"kafka.bootstrap": cluster.bootstrap, "app": app_id})
    arguments = [sys.executable, "-m", "worker.cli", "topics", "create"]
    # On a fresh cluster the groups' coordinator is only just being made.
    subprocess.run([*arguments, "--bootstrap", cluster.bootstrap, "--app", app_id], check=True)
    _, states = Cluster(settings.kafka_options()).topics([f"{app_id}.fingerprints"])
    frames = states[f"{app_id}.fingerprints"]
    assert frames is not None
    assert (frames.replicas, frames.settings["min.insync.replicas"]) == (3, "2")
    assert verify(settings) == (4, [])


@pytest.mark.slow
def test_offsets_of_a_group_at_work_are_not_touched(
    run: Run, settings: Settings, app_id: str
) -> None:
    run("topics create --partitions 1")
    with group_client(settings.kafka_options(), f"{app_id}.index") as member:
        member.subscribe([f"{app_id}.fingerprints"])
        wait_until(lambda: (member.poll(0.1), bool(member.assignment()))[1], 30, "a seat")
        refused = run("init --force", status=1)
    assert "the group has active members; stop all its workers first" in refused.stderr


def test_feed_publishes_lines_with_their_keys(
    run: Run, kafka: Kafka, app_id: str, tmp_path: Path
) -> None:
    run("topics create --partitions 2")
    lines = [b'{"id": "a", "text": "x"}', b"not json", b'{"id": 7}', b"\xff", b"x" * 2_000_000]
    path = tmp_path / "lines.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join(lines[:4]) + b"\n"))
    fed = run(f"feed {path} --rate 1000")
    assert fed.stderr.startswith(f"4 documents delivered to {app_id}.documents in ")
    records = read(kafka, f"{app_id}.documents", 2)
    assert {(r.key(), r.value()) for r in records} == {
        (b"a", lines[0]), (None, lines[1]), (b"7", lines[2]), (None, lines[3])
    }  # fmt: skip

    path.write_bytes(path.read_bytes()[:-12])
    assert f"{path}: " in run(f"feed {path}", status=2).stderr
    plain = tmp_path / "large.jsonl"
    plain.write_bytes(b"\n".join(lines))
    said = run(f"feed {plain}", status=1).stderr
    assert "4 documents delivered" in said
    assert "the first is large.jsonl:5 with 2000000 bytes" in said
    assert "there is no topic" in run(f"feed {plain} --topic {app_id}.nowhere", status=2).stderr


@pytest.mark.slow
def test_feed_publishes_rows_as_json_and_names_those_it_cannot_read(
    run: Run, kafka: Kafka, app_id: str, tmp_path: Path
) -> None:
    run("topics create --partitions 2")
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id,text\na,one\nb,two,three\n\xff,four\n,five\n")
    said = run(f"feed {path}", status=1).stderr
    assert (
        f"2 documents delivered to {app_id}.documents; 2 documents can't be read: the first" in said
    )
    assert "rows.csv:3, not-csv: the row has 3 cells, the header 2" in said
    assert {(r.key(), r.value()) for r in read(kafka, f"{app_id}.documents", 2)} == {
        (b"a", b'{"id":"a","text":"one"}'), (None, b'{"id":null,"text":"five"}')
    }  # fmt: skip


def test_feed_publishes_files_and_mails_under_their_ids(
    run: Run, kafka: Kafka, app_id: str, tmp_path: Path
) -> None:
    run("topics create --partitions 2")
    (tmp_path / "a.txt").write_bytes("schön\n".encode("latin-1"))
    (tmp_path / "b.mbox").write_bytes(b"From x\nMessage-ID: <1@x>\n\nA mail.\n")
    run(f"feed {tmp_path} --encoding latin-1")
    plain = tmp_path / "plain.toml"
    plain.write_text('[documents]\nformat = "text"\n')
    run(f"feed {tmp_path} --encoding latin-1 --config {plain}")
    run(f"feed {tmp_path}/a.txt --encoding latin-1 --format lines --config {plain}")
    mail = b'{"id":"<1@x>","message_id":"<1@x>","text":"A mail.\\n"}'
    assert {(r.key(), r.value()) for r in read(kafka, f"{app_id}.documents", 2)} == {
        (b"a.txt", '{"id":"a.txt","text":"schön\\n"}'.encode()),
        (b"<1@x>", mail),
        (b"a.txt", "schön".encode()),
        (b"<1@x>", b"A mail."),
        (None, "schön".encode()),
    }
    refused = run(f"feed {tmp_path} --format json --config {plain}", status=2).stderr
    assert "--format json: documents.format is text, so documents have no fields" in refused
    (tmp_path / "c.jsonl").write_bytes(b'{"text": "\xfc"}\n' * 3)
    said = run(f"feed {tmp_path}/c.jsonl", status=1).stderr
    assert "3 of 3 documents are no text in UTF-8 (the first: c.jsonl:1, invalid-utf8" in said
    assert "; 0 documents delivered to" in said


@pytest.mark.slow
def test_forget_sends_tombstones_where_feed_sends_the_documents(
    run: Run, kafka: Kafka, app_id: str, tmp_path: Path
) -> None:
    run("topics create --partitions 3")
    ids = [f"d{number}" for number in range(20)]
    path = tmp_path / "lines.jsonl"
    path.write_bytes(jsonl({"id": ident, "text": "x"} for ident in ids))
    run(f"feed {path}")
    said = run(f"forget --no-wait {' '.join(ids)}").stderr
    assert said.startswith(f"20 ids sent to {app_id}.documents to be forgotten. ")
    places: dict[bool, set[tuple[object, object]]] = {True: set(), False: set()}
    for record in read(kafka, f"{app_id}.documents", 3):
        places[record.value() is None].add((record.key(), record.partition()))
    assert len(places[True]) == 20
    assert places[True] == places[False]


def test_redrive_sends_each_rejected_record_once(run: Run, kafka: Kafka, app_id: str) -> None:
    run("topics create --partitions 2")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(20):
        reason = "no-text" if number % 2 else "not-json"
        headers: list[tuple[str, str | bytes | None]] = [
            ("trace", b"t"),
            ("neardup-error-reason", f"{reason}: why".encode()),
            ("neardup-error-topic", f"{app_id}.documents".encode()),
            ("neardup-error-partition", b"1"),
            ("neardup-error-offset", b"%d" % number),
        ]
        producer.produce(
            f"{app_id}.rejected", str(number), "key", partition=number % 2,
            headers=headers, timestamp=BEGUN_MS + number,
        )  # fmt: skip
    producer.produce(f"{app_id}.rejected", None, "gone", partition=0)
    producer.flush(30)

    first = run("redrive --reason no-text --limit 3").stderr
    assert first.startswith("3 sent again (no-text 3)")
    assert run("redrive --reason no-text").stderr.startswith("7 sent again (no-text 7)")
    assert run("redrive --reason no-text").stderr.startswith("0 sent again")
    last = run("redrive").stderr
    assert "10 sent again (not-json 10); 1 no longer has a payload" in last
    assert run("redrive").stderr == "0 sent again\n"

    records = read(kafka, f"{app_id}.documents", 2)
    assert sorted(int(r.value() or b"") for r in records) == list(range(20))
    assert {r.partition() for r in records} == {1}
    assert {r.key() for r in records} == {b"key"}
    for record in records:
        assert record.headers() == [("trace", b"t"), ("neardup-redriven", b"1")]
        assert record.timestamp()[1] == BEGUN_MS + int(record.value() or b"")


@pytest.mark.slow
def test_watch_writes_lines_to_a_pipe(run: Run, kafka: Kafka, app_id: str) -> None:
    run("topics create --partitions 1")
    process = subprocess.Popen(
        [sys.executable, "-m", "worker.cli", "watch"],
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ, "NEARDUP_KAFKA__BOOTSTRAP": kafka.bootstrap, "NEARDUP_APP": app_id
        },
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert "unique 0 (0/s)" in process.stdout.readline()
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        verdict: list[tuple[str, str | bytes | None]] = [("neardup-verdict", b"unique")]
        value = json.dumps({"id": "a", "text": "b"})
        producer.produce(f"{app_id}.unique", value, headers=verdict)
        producer.produce(f"{app_id}.documents", b"{}", timestamp=BEGUN_MS)
        producer.flush(30)
        seen: list[str] = []

        def all_seen() -> bool:
            seen.append(process.stdout.readline() if process.stdout else "")
            return all(what in seen[-1] for what in ("unique 1", "route 1 docs", " days"))

        wait_until(all_seen, 60, "the record, the lag, and its age")
        assert "; here: 2 shards, without a worker: 0, 1; no worker\n" in seen[-1]
        member = {"bootstrap.servers": kafka.bootstrap, "group.id": f"{app_id}.index"}
        worker = Consumer({**member, "group.instance.id": "worker-one"})
        worker.subscribe([f"{app_id}.shards"])

        def owned() -> bool:
            worker.poll(1)
            line = process.stdout.readline() if process.stdout else ""
            return "; here: 2 shards, all at work; 1 worker: worker-one\n" in line

        wait_until(owned, 60, "the owner of both shards")
        worker.close()
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
