"""``neardup feed``: lines of files become documents."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from worker.admin import Cluster
from worker.admin.plan import DEFAULT_MAX_BYTES
from worker.bus.kafka.errors import cause
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.jsonlines import Inputs
from worker.cli.progress import byte_progress
from worker.settings import Settings
from worker.topology import Topology

__all__ = ["feed", "key_reader"]

_DELIVERY_SECONDS = 30.0
_GIVE_UP_SECONDS = 3.0
_RECORD_OVERHEAD_BYTES = 128
_PENDING_RECORDS = 50_000
_REPORT_EVERY = 500


def feed(
    settings: Settings,
    files: Sequence[Path],
    *,
    key_field: str | None,
    topic: str | None,
    rate: float | None,
) -> None:
    """Publish every line, and say how many.

    Raises:
        CommandError: a file can't be read, there is no such topic, or not all was delivered.
    """
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    target = topic or Topology.of(settings, 1).documents
    with Inputs(files) as inputs:
        _, states = Cluster(settings.kafka_options()).topics([target])
        state = states[target]
        if state is None:
            raise CommandError(f"there is no topic {target}; see `neardup topics create`")
        limit = int(state.settings.get("max.message.bytes", DEFAULT_MAX_BYTES))
        limit -= _RECORD_OVERHEAD_BYTES
        key_of: Callable[[bytes], bytes | None] = lambda _: None  # noqa: E731 -- a constant
        if settings.documents.format == "json" or key_field is not None:
            key_of = key_reader(key_field or settings.documents.id_field)
        sender = _Sender(settings, target, limit)
        pace = _Pace(rate, sender.serve)
        begun = monotonic()
        try:
            with byte_progress(inputs.total, shown=sys.stderr.isatty()) as advance:
                for chunk in inputs.chunks(limit):
                    for number, line in enumerate(chunk):
                        pace.wait()
                        if line.size > limit + 2:
                            sender.refuse(line.key, line.size)
                            continue
                        value = line.value
                        sender.send(line.key, key_of(value), value)
                        if not number % _REPORT_EVERY:
                            advance(inputs.position, sender.delivered)
                    advance(inputs.position, sender.delivered)
                sender.finish(lambda: advance(inputs.position, sender.delivered))
        except KeyboardInterrupt:
            sender.give_up()
            raise CommandError(f"interrupted: {sender.summary()}", 130) from None
        except CommandError as error:
            sender.give_up()
            raise CommandError(f"{error}; {sender.summary()}", error.status) from None
    seconds = monotonic() - begun
    if sender.refused:
        raise CommandError(
            f"{sender.summary()}; {sender.refused} are larger than the topic takes"
            f" ({limit} bytes), the first is {sender.first_refused}",
            EXIT_FAILED,
        )
    each = sender.delivered / seconds if seconds else 0.0
    print(f"{sender.summary()} in {seconds:,.1f} s ({each:,.0f}/s)", file=sys.stderr)  # noqa: T201


def key_reader(field: str) -> Callable[[bytes], bytes | None]:
    """Give a function that finds a record's key in a JSON object, None if there is none."""
    shape = msgspec.defstruct(
        "Keyed", [("key", str | int | None, None)], rename={"key": field}, gc=False
    )
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(shape).decode

    def key_of(value: bytes) -> bytes | None:
        try:
            key = decode(value).key
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return None if key is None else str(key).encode()

    return key_of


class _Pace:
    """At most so many a second, and no bursts after a pause."""

    def __init__(self, rate: float | None, serve: Callable[[float], None]) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._serve = serve
        self._next = monotonic()

    def wait(self) -> None:
        if not self._gap:
            return
        while (left := self._next - monotonic()) > 0:
            self._serve(min(left, 0.2))
        # A machine's hiccup of a second is made up for, a longer one is not.
        self._next = max(self._next + self._gap, monotonic() - 1)


class _Sender:
    """An idempotent producer that stops at the first record that can't be delivered."""

    def __init__(self, settings: Settings, topic: str, limit: int) -> None:
        self._topic = topic
        self.sent = 0
        self.delivered = 0
        self.refused = 0
        self.first_refused = ""
        self._failure: str | None = None
        self._pending: deque[str] = deque()
        config: dict[str, Any] = {
            **settings.kafka_options().client("feed"),
            "linger.ms": 20,
            "compression.type": "lz4",
            "queue.buffering.max.messages": _PENDING_RECORDS,
            "queue.buffering.max.kbytes": 64 << 10,
            **settings.kafka.producer,
            "acks": "all",
            "enable.idempotence": True,
            "message.max.bytes": max(limit + _RECORD_OVERHEAD_BYTES, 1_000),
            "message.timeout.ms": int(_DELIVERY_SECONDS * 1000),
            "partitioner": "murmur2_random",
        }
        self._producer = Producer(config)

    def send(self, place: bytes, key: bytes | None, value: bytes) -> None:
        while True:
            self.serve(0.0)
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._on_delivery)
            except BufferError:
                self.serve(0.2)
                continue
            except KafkaException as error:
                if cause(error).code() != KafkaError.MSG_SIZE_TOO_LARGE:
                    raise CommandError(cause(error).str(), EXIT_FAILED) from None
                self.refuse(place, len(value))
                return
            self.sent += 1
            return

    def refuse(self, place: bytes, size: int) -> None:
        """Count a line that is too large; the others are sent all the same."""
        self.refused += 1
        self.first_refused = self.first_refused or f"{place.decode()} with {size} bytes"

    def serve(self, seconds: float) -> None:
        """Take what the brokers have answered."""
        self._producer.poll(seconds)
        if self._failure is not None:
            self._producer.purge()
            raise CommandError(self._failure, EXIT_FAILED)

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.delivered += 1
        elif self._failure is None:
            self._failure = f"not delivered: {error.str()}"

    def finish(self, tick: Callable[[], None] = lambda: None) -> None:
        """Wait for what is under way."""
        deadline = monotonic() + _DELIVERY_SECONDS
        while self._failure is None and len(self._producer) and monotonic() < deadline:
            self._producer.flush(0.2)
            tick()
        failed = self._failure
        self._producer.purge()
        self._producer.flush(0.2)
        if failed is not None:
            raise CommandError(failed, EXIT_FAILED)

    def give_up(self) -> None:
        """Wait a moment for what is under way, drop the rest."""
        if self._failure is None:
            self._producer.flush(_GIVE_UP_SECONDS)
        self._producer.purge()
        self._producer.flush(0.2)

    def summary(self) -> str:
        """Say what was delivered, and where to."""
        of = "" if self.delivered == self.sent else f" of {self.sent:,}"
        return f"{self.delivered:,}{of} documents delivered to {self._topic}"
