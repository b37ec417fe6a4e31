"""Whatever a topic holds: it ends on *rejected*, untouched, and the worker goes on."""

import json
import random
import string
import subprocess
import sys
from time import time
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from tests.integration.conftest import Launch
from tests.support.checker.history import reason, source
from tests.support.checker.publication import decisions, exactly_once, payloads
from tests.support.proof import history_of, prove
from tests.support.raw_producer import produce_raw
from tests.support.worker_process import ROOT
from worker.admin.plan import REJECTED_HEADERS_BYTES
from worker.bus import UNREADABLE_HEADERS, Header, Outgoing
from worker.wire.headers import PAYLOAD

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

DEEP: Final = 100_000
TEXT: Final = "a text that says nothing much, but is long enough to be told from others"
SETTINGS: Final = {
    "limits": {"reject_share": 1.0, "record_bytes": 1 << 20},
    "documents": {"time_field": "time", "require_id": True},
}

REJECTED: Final[dict[str, tuple[bytes, str]]] = {
    "not JSON": (b'{"id": "a", "text": ', "not-json"),
    "plain text": (b"hello", "not-json"),
    "nothing": (b"", "not-json"),
    "a second value": (b'{"id": "a", "text": "b"} {}', "not-json"),
    "an array": (b'[{"id": "a", "text": "b"}]', "not-an-object"),
    "null": (b"null", "null-text"),
    "a string": (b'"text"', "not-an-object"),
    "no text field": (b'{"id": "a", "body": "b"}', "no-text"),
    "text is null": (b'{"id": "a", "text": null}', "null-text"),
    "text is a number": (b'{"id": "a", "text": 7}', "text-wrong-type"),
    "text is an array": (b'{"id": "a", "text": ["b"]}', "text-wrong-type"),
    "text is an object": (b'{"id": "a", "text": {"b": 1}}', "text-wrong-type"),
    "empty text": (b'{"id": "a", "text": ""}', "empty-text"),
    "blank text": (b'{"id": "a", "text": " \\n\\t\\u2003\\u00a0"}', "empty-text"),
    "invalid UTF-8": (b'{"id": "a", "text": "\xff\xfe b"}', "invalid-utf8"),
    "overlong UTF-8": (b'{"id": "a", "text": "\xc0\xaf"}', "invalid-utf8"),
    "a surrogate in UTF-8": (b'{"id": "a", "text": "\xed\xa0\x80"}', "invalid-utf8"),
    "invalid UTF-8 elsewhere": (b'{"id": "a", "text": "b", "x": "\xff"}', "invalid-utf8"),
    "a lone surrogate": (b'{"id": "a", "text": "b \\ud800 c"}', "not-json"),
    "a lone low surrogate": (b'{"id": "a", "text": "b \\udc00"}', "not-json"),
    "a surrogate in the id": (b'{"id": "\\ud800", "text": "b"}', "not-json"),
    "NULs": (b'{"id": "a", "text": "\\u0000\\u0000"}', "empty-text"),
    "a raw NUL": (b'{"id": "a", "text": "b\0c"}', "not-json"),
    "a BOM": (b'\xef\xbb\xbf{"id": "a", "text": "b"}', "not-json"),
    "NaN": (b'{"id": "a", "text": "b", "time": NaN}', "not-json"),
    "NaN elsewhere": (b'{"id": "a", "text": "b", "x": NaN}', "not-json"),
    "infinite time": (b'{"id": "a", "text": "b", "time": 1e999}', "not-json"),
    "year 9999": (b'{"id": "a", "text": "b", "time": "9999-12-31T23:59:59Z"}', "bad-time"),
    "year 1": (b'{"id": "a", "text": "b", "time": "0001-01-01T00:00:00+14:00"}', "bad-time"),
    "time is no time": (b'{"id": "a", "text": "b", "time": "noon"}', "bad-time"),
    "time is true": (b'{"id": "a", "text": "b", "time": true}', "time-wrong-type"),
    "time is huge": (b'{"id": "a", "text": "b", "time": 1e300}', "bad-time"),
    "nested arrays": (
        b'{"id": "a", "text": "b", "x": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        "too-deep",
    ),
    "nested objects": (
        b'{"id": "a", "text": "b", "x": ' + b'{"y":' * DEEP + b"1" + b"}" * DEEP + b"}",
        "too-deep",
    ),
    "nested and unclosed": (b'{"id": "a", "text": "b", "x": ' + b"[" * DEEP, "too-deep"),
    "empty id": (b'{"id": "", "text": "b"}', "bad-id"),
    "id is true": (b'{"id": true, "text": "b"}', "id-wrong-type"),
    "id is a fraction": (b'{"id": 1.5, "text": "b"}', "id-wrong-type"),
    "id is an object": (b'{"id": {}, "text": "b"}', "id-wrong-type"),
    "id of 2,000 digits": (b'{"id": ' + b"9" * 2_000 + b', "text": "b"}', "bad-id"),
    "id of 1 MB": (json.dumps({"id": "i" * (1 << 20), "text": "b"}).encode(), "bad-id"),
    "no id": (b'{"text": "b"}', "no-id"),
    "text of 10 MB": (json.dumps({"id": "a", "text": "b " * (5 << 20)}).encode(), "text-too-long"),
}


def test_what_cannot_be_read_ends_on_rejected(launch: Launch) -> None:
    limits = {"reject_share": 1.0, "record_bytes": 16 << 20}
    application = launch(
        settings={**SETTINGS, "limits": limits}, documents_max_bytes=16 << 20, partitions=2
    )
    application.start("alpha")
    topic = application.topology.documents
    headers: tuple[Header, ...] = (
        ("case", "é".encode()),
        ("blob", b"\xff\x00\xfe"),
        ("none", None),
        ("case", b""),
        ("", b"x"),
    )
    good = json.dumps({"id": "good", "text": TEXT}).encode()
    now = int(time() * 1_000)  # Older records might be deleted before they are read.
    records = [
        Outgoing(topic, number % 2, None, value, headers, now + number)
        for number, (value, _) in enumerate(REJECTED.values())
    ]
    records.append(Outgoing(topic, 1, b"", b'{"text": "b"}', headers))
    records.append(Outgoing(topic, 0, b"\xff\xff", good, headers))
    written = application.feed(records)
    expected = {
        (record.partition, record.offset): (name, code)
        for record, (name, code) in zip(
            written,
            [
                *((name, code) for name, (_, code) in REJECTED.items()),
                ("an empty key, in place of an id", "no-id"),
            ],
            strict=False,
        )
    }
    application.audit.finish()
    found = {
        source(r): (expected.get(source(r), ("good", ""))[0], reason(r))
        for r in application.audit.rejected
    }
    assert found == expected
    history = prove(application)
    assert [record.value for record in history.unique] == [good]


@pytest.mark.slow
def test_what_is_too_large_for_the_outputs_is_rejected_nonetheless(launch: Launch) -> None:
    application = launch(settings=SETTINGS, documents_max_bytes=(1 << 20) + 122_880, partitions=1)
    application.start("alpha")
    topic = application.topology.documents

    def sized(ident: str, size: int) -> bytes:
        frame = len(json.dumps({"id": ident, "text": ""}))
        # Not compressible: the broker measures what it gets.
        text = "".join(chr(0x61 + (n * n * 7 + n // 26) % 26) for n in range(size - frame))
        return json.dumps({"id": ident, "text": text}).encode()

    limit = application.settings.limits.record_bytes
    sizes = [limit - 12_000, limit - 100, limit, limit + 100, limit + 122_000]
    application.feed(
        Outgoing(topic, 0, None, sized(str(number), size)) for number, size in enumerate(sizes)
    )
    application.audit.finish(60)
    assert {reason(record) for record in application.audit.rejected} == {"too-large"}
    prove(application)


@pytest.mark.slow
def test_a_record_that_was_sent_compressed_is_larger_than_any_topic_takes(launch: Launch) -> None:
    application = launch(settings=SETTINGS, partitions=1)
    application.start("alpha")
    value = json.dumps({"id": "a", "text": "b " * (5 << 20)}).encode()
    producer = Producer(
        {
            "bootstrap.servers": application.kafka.bootstrap,
            "compression.type": "zstd",
            "message.max.bytes": 64 << 20,
        }
    )
    producer.produce(application.topology.documents, value, None, 0)
    assert producer.flush(30) == 0
    application.feed(application.documents([("good", TEXT)]))
    application.audit.finish(60)
    assert [reason(record) for record in application.audit.rejected] == ["too-large"]
    assert [record.value for record in application.audit.rejected] == [value]


@pytest.mark.slow
def test_a_rejected_record_that_its_topic_refuses_is_published_without_its_payload(
    launch: Launch,
) -> None:
    """What comes zstd-compressed repeats itself too far apart for the producer's lz4."""
    application = launch(settings=SETTINGS, partitions=1)
    largest = 1_048_588 + REJECTED_HEADERS_BYTES
    resource = ConfigResource("topic", application.topology.rejected)
    resource.add_incremental_config(
        ConfigEntry("max.message.bytes", str(largest), incremental_operation=AlterConfigOpType.SET)
    )
    admin = application.kafka.admin()  # Held until the result is there.
    admin.incremental_alter_configs([resource])[resource].result(30)
    verify = [sys.executable, "-m", "worker.cli", "topics", "verify"]
    subprocess.run([*verify, "--config", str(application.config)], cwd=ROOT, check=True)
    application.start("alpha")
    noise = random.Random(3)
    block = "".join(noise.choices(string.ascii_letters, k=400_000))
    value = json.dumps({"id": "a", "text": block * 8}).encode()
    headers: list[tuple[str, str | bytes | None]] = [("origin", b"far")]
    producer = Producer(
        {
            "bootstrap.servers": application.kafka.bootstrap,
            "compression.type": "zstd",
            "message.max.bytes": 64 << 20,
        }
    )
    producer.produce(application.topology.documents, value, b"key", 0, headers=headers)
    assert producer.flush(30) == 0
    application.feed(application.documents([("good", TEXT)]))
    application.audit.finish(60)
    (rejected,) = application.audit.rejected
    assert reason(rejected) == "too-large"
    assert source(rejected) == (0, 0)
    assert (rejected.key, rejected.value) == (b"key", None)
    found = dict(rejected.headers)
    assert found["origin"] == b"far"
    assert (found[PAYLOAD] or b"").startswith(b"left out")
    assert len(application.audit.unique) == 1
    assert application.worker("alpha").output().count("refuses a record of") == 1
    assert application.worker("alpha").running


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the library as Linux wheels have it")
def test_a_header_whose_name_is_no_text(launch: Launch) -> None:
    application = launch(settings=SETTINGS, partitions=1)
    application.start("alpha")
    topic = application.topology.documents
    value = json.dumps({"id": "a", "text": TEXT}).encode()
    raw = [(b"fine", b"1"), (b"\xff\xfename", b"2"), (b"empty", b""), (b"\xfe", b"3")]
    # The interpreter treats what it does often differently: so also in the midst of others.
    for others in range(2):
        produce_raw(application.kafka.bootstrap, topic, 0, value, raw)
        ids = [f"b-{others}-{number}" for number in range(200)]
        application.feed(application.documents([(ident, TEXT) for ident in ids], 200 * others))
        application.audit.reach(len(application.inputs), 60)
    application.audit.finish(60)
    assert [(reason(one), one.value) for one in application.audit.rejected] == [
        ("bad-headers", value),
        ("bad-headers", value),
    ]
    # All others are kept, in their places.
    mark = UNREADABLE_HEADERS[0]
    for rejected in application.audit.rejected:
        assert rejected.headers[:4] == (("fine", b"1"), mark, ("empty", b""), mark)
    assert len(application.audit.unique) == 1


@pytest.mark.slow
def test_headers_push_a_record_over_the_limit(launch: Launch) -> None:
    application = launch(settings=SETTINGS, partitions=1)
    application.start("alpha")
    headers = tuple((f"h{number}", b"\xfe" * 1_000) for number in range(1_000))
    small = json.dumps({"id": "small", "text": TEXT}).encode()
    large = json.dumps({"id": "large", "text": TEXT + " " + "x" * 40_000}).encode()
    topic = application.topology.documents
    application.feed(Outgoing(topic, 0, None, value, headers) for value in (small, small, large))
    application.audit.finish(60)
    assert [reason(record) for record in application.audit.rejected] == ["too-large"]
    assert [record.value for record in application.audit.rejected] == [large]
    assert len(application.audit.unique) == len(application.audit.duplicate) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("open_", "close"), [(b"[", b"]"), (b'{"y":', b"}")])
def test_nesting_that_one_stage_reads_and_another_cannot(
    launch: Launch, open_: bytes, close: bytes
) -> None:
    """Twice the same text with every depth about the recursion limit: route reads it, too."""
    application = launch(settings=SETTINGS, partitions=1)
    application.start("alpha")
    inner = b"1" if close == b"}" else b""
    application.feed(
        Outgoing(
            application.topology.documents,
            0,
            None,
            b'{"id": "%d", "text": "%s", "x": ' % (depth, TEXT.encode())
            + open_ * depth
            + inner
            + close * depth
            + b"}",
        )
        for depth in range(940, 1_010)
    )
    application.audit.finish(60)
    assert {reason(record) for record in application.audit.rejected} == {"too-deep"}
    history = history_of(application)
    # Not all invariants: the check of references would have to parse this, too.
    assert not [*exactly_once(history), *payloads(history), *decisions(history)]


@pytest.mark.slow
def test_tombstones_go_to_both_outputs(launch: Launch) -> None:
    application = launch(partitions=2)
    application.start("alpha")
    documents = application.documents([(f"d{n}", f"{TEXT} {n % 3}") for n in range(20)])
    topic = application.topology.documents
    for n in range(0, 20, 4):
        documents.insert(n, Outgoing(topic, n // 4 % 2, b"d%d" % n, None, (("why", b"gone"),)))
    documents.append(Outgoing(topic, 0, None, None))
    application.feed(documents)
    prove(application)
    assert sum(record.value is None for record in application.audit.unique) == 6


@pytest.mark.slow
def test_more_rejects_than_the_set_share_stop_the_worker(launch: Launch) -> None:
    application = launch(partitions=1)
    application.start("alpha")
    topic = application.topology.documents
    application.feed(Outgoing(topic, 0, b"k", b'{"id": "a", "body": "b"}') for _ in range(300))
    alpha = application.worker("alpha")
    assert alpha.wait(60) == 1
    last = alpha.output().splitlines()[-1]
    assert last.startswith("neardup: ")
    assert "can't be read: no-text" in last
    assert "limits.reject_share" in last
    assert "Traceback" not in alpha.output()
    assert not application.audit.drained()
    history = history_of(application)
    assert not history.rejected
    # With the share raised, the same documents are rejected, each once.
    application.worker("alpha").config = application.write_config(
        "raised.toml", {"limits": {"reject_share": 1.0}}
    )
    application.start("alpha")
    prove(application)
    assert len(application.audit.rejected) == 300


@pytest.mark.slow
def test_a_time_field_that_no_document_can_be_read_by_stops_the_worker(launch: Launch) -> None:
    application = launch(partitions=1, settings={"documents": {"time_field": "at"}})
    application.start("alpha")
    topic = application.topology.documents
    value = json.dumps({"id": "a", "text": TEXT, "at": 20240101}).encode()
    application.feed(Outgoing(topic, 0, b"k", value) for _ in range(300))
    alpha = application.worker("alpha")
    assert alpha.wait(60) == 1
    last = alpha.output().splitlines()[-1]
    assert "can't be read: bad-time" in last
    assert "field 'at' is 20240101: no time from 1990 to 2031" in last
    assert "set documents.time_format (--time-format) to %Y%m%d" in last
    assert not history_of(application).rejected
