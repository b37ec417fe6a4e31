"""``neardup feed``: publish the documents in files."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Annotated, Any

import typer
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from worker.admin.cluster import Cluster
from worker.admin.plan import DEFAULT_MAX_BYTES
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import cause, refusal
from worker.cli.errors import EXIT_FAILED, CommandError, status_of
from worker.cli.options import (
    App,
    Bootstrap,
    Config,
    Encoding,
    FileFormat,
    FollowLinks,
    for_kafka,
)
from worker.cli.screen import byte_progress
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.files.reading import Reading
from worker.formats.choice import key_format
from worker.formats.unreadable import Unreadable, utf8
from worker.offline.filter import Line
from worker.settings.model import Settings
from worker.visible import counted, tell

_DELIVERY_SECONDS = 30.0
_GIVE_UP_SECONDS = 3.0
_RECORD_OVERHEAD_BYTES = 128
_PENDING_RECORDS = 50_000
_REPORT_EVERY = 500


def feed(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="What `neardup dedupe` reads; -: standard input."),
    ],
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    key_field: Annotated[
        str | None,
        typer.Option(metavar="F", help="Field with the record's key. Default: documents.id_field."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="Topic to publish to. Default: the documents topic."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.001, help="Most documents per second."),
    ] = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
) -> None:
    """Publish the documents in files: lines of JSON unchanged, and others as JSON.

    If documents.format is text, the texts are published.
    """
    settings = for_kafka(config, bootstrap, app)
    if settings.documents.format == "registry":
        raise CommandError(
            "documents.format: got registry, whose documents `neardup feed` can't write: use the"
            " serializers of your own producers"
        )
    reading = Reading.given(format_, encoding, settings.documents, follow_links=follow_links)
    if reading.format == "json" and settings.documents.format == "text":
        raise CommandError("--format json: documents.format is text, so documents have no fields")
    target = topic or settings.topology(1).documents
    with Inputs(files, settings.documents, reading) as inputs:
        sender = _Sender(settings, target, _largest_value(settings, target))
        misread = _Misread(settings.limits.reject_share)
        begun = monotonic()
        _send_all(inputs, sender, misread, _Pace(rate, sender.serve), settings, key_field)
    seconds = monotonic() - begun
    if (left_out := inputs.summary()) is not None:
        tell(left_out)
    sender.check_all_sent()
    if misread.too_many:
        raise CommandError(f"{sender.summary()}; {misread.summary()}", EXIT_FAILED)
    each = sender.delivered / seconds if seconds else 0.0
    tell(f"{sender.summary()} in {seconds:,.1f} s ({each:,.0f}/s)")
    if (summary := misread.summary()) != "":
        tell(summary)


def _largest_value(settings: Settings, topic: str) -> int:
    """Return the size of the largest value that a topic accepts.

    Raises:
        CommandError: there is no such topic.
    """
    _, states = Cluster(settings.kafka_options()).topics([topic])
    state = states[topic]
    if state is None:
        raise CommandError(f"there is no topic {topic}; run `neardup topics create`")
    largest = int(state.settings.get("max.message.bytes", DEFAULT_MAX_BYTES))
    return largest - _RECORD_OVERHEAD_BYTES


def _send_all(
    inputs: Inputs,
    sender: _Sender,
    misread: _Misread,
    pace: _Pace,
    settings: Settings,
    key_field: str | None,
) -> None:
    """Send all documents, and wait until they are delivered.

    Raises:
        CommandError: a document can't be delivered, a file can't be read, or the user interrupts.
    """
    key_of = key_format(settings, key_field).identify
    try:
        with byte_progress(inputs.total, shown=sys.stderr.isatty()) as advance:
            for chunk in inputs.chunks(sender.limit):
                misread.look(chunk)
                for number, line in enumerate(chunk):
                    pace.wait()
                    sender.add(line, key_of)
                    if not number % _REPORT_EVERY:
                        advance(inputs.position, sender.delivered)
                advance(inputs.position, sender.delivered)
            sender.finish(lambda: advance(inputs.position, sender.delivered))
    except KeyboardInterrupt:
        sender.give_up()
        raise CommandError(f"interrupted: {sender.summary()}", 130) from None
    except (CommandError, FileError) as error:
        sender.give_up()
        raise CommandError(
            f"{error}; {sender.summary()}", status_of(error) or EXIT_FAILED
        ) from None


class _Misread:
    """Counts documents that no application can read: they are no text in UTF-8."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._documents = 0
        self._count = 0
        self._first = ""

    def look(self, lines: Sequence[Line]) -> None:
        """Look at documents before they are sent, and raise if too many of the first can't be."""
        begins = not self._documents
        for line in lines:
            self._documents += 1
            try:
                utf8(line.value)
            except Unreadable as error:
                self._count += 1
                self._first = self._first or f"{line.key.decode()}, {error}"
        if begins and self.too_many:
            raise CommandError(self.summary(), EXIT_FAILED)

    @property
    def too_many(self) -> bool:
        return self._count > self._share * self._documents

    def summary(self) -> str:
        """Return how many there are; nothing if there are none."""
        if not self._count:
            return ""
        documents = counted(self._documents, "document is", "documents are")
        return (
            f"{self._count:,} of {documents} no text in UTF-8 (the first:"
            f" {self._first}), and are rejected where they are read; --encoding names another"
            " encoding"
        )


class _Pace:
    """Limits the rate of records, without bursts after a pause."""

    def __init__(self, rate: float | None, serve: Callable[[float], None]) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._serve = serve
        self._next = monotonic()

    def wait(self) -> None:
        if not self._gap:
            return
        while (left := self._next - monotonic()) > 0:
            self._serve(min(left, 0.2))
        # Catches up after a pause of up to a second.
        self._next = max(self._next + self._gap, monotonic() - 1)


class _Sender:
    """An idempotent producer that stops at the first record that can't be delivered."""

    def __init__(self, settings: Settings, topic: str, limit: int) -> None:
        self._topic = topic
        self.limit = limit
        self.sent = 0
        self.delivered = 0
        self.refused = 0
        self.first_refused = ""
        self.unreadable = 0
        self.first_unreadable = ""
        self._failure: CommandError | None = None
        self._pending: deque[str] = deque()
        config: dict[str, Any] = {
            **settings.kafka_options().client_config("feed"),
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

    def add(self, line: Line, key_of: Callable[[bytes], bytes | None]) -> None:
        """Send a document under its key, or count it if that can't be."""
        if line.fault:
            self._pass_over(line.key, line.fault)
        elif line.size > self.limit + 2:
            self._refuse(line.key, line.size)
        else:
            value = line.value
            self._send(line.key, line.key if line.named else key_of(value), value)

    def _send(self, partition: bytes, key: bytes | None, value: bytes) -> None:
        while True:
            self.serve(0.0)
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._on_delivery)
            except BufferError:
                self.serve(0.2)
                continue
            except KafkaException as error:
                if not means(cause(error), Means.REFUSED):
                    self._fail(cause(error))
                    continue
                self._refuse(partition, len(value))
                return
            self.sent += 1
            return

    def _refuse(self, partition: bytes, size: int) -> None:
        """Count a line that is too large; the others are still sent."""
        self.refused += 1
        self.first_refused = self.first_refused or f"{partition.decode()} with {size} bytes"

    def _pass_over(self, partition: bytes, fault: str) -> None:
        """Count a document that can't be read; the others are still sent."""
        self.unreadable += 1
        self.first_unreadable = self.first_unreadable or f"{partition.decode()}, {fault}"

    def check_all_sent(self) -> None:
        """Raise if lines were left out; the message names the first."""
        if self.unreadable:
            raise CommandError(
                f"{self.summary()}; {counted(self.unreadable, 'document')} can't be read: the first"
                f" is {self.first_unreadable}",
                EXIT_FAILED,
            )
        if self.refused:
            raise CommandError(
                f"{self.summary()}; {counted(self.refused, 'line is', 'lines are')} larger than the"
                f" topic accepts ({self.limit} bytes): the first is {self.first_refused}",
                EXIT_FAILED,
            )

    def serve(self, seconds: float) -> None:
        """Wait up to ``seconds`` for delivery reports, and raise if a delivery failed."""
        self._wait(self._producer.poll, seconds)
        if self._failure is not None:
            self._producer.purge()
            raise self._failure

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.delivered += 1
        else:
            self._fail(error)

    def _fail(self, error: KafkaError) -> None:
        """Keep the first error, which may be about one record or about all."""
        if self._failure is None:
            refused = refusal(error, "not delivered", f"Write on topic {self._topic}")
            self._failure = CommandError(str(refused), status_of(refused) or EXIT_FAILED)

    def _wait(self, call: Callable[[float], int], seconds: float) -> None:
        """Poll or flush. A producer that can't be used any more raises its error in every call."""
        try:
            call(seconds)
        except KafkaException as error:
            self._fail(cause(error))

    def finish(self, tick: Callable[[], None] = lambda: None) -> None:
        """Wait for all records in flight, and raise if a delivery failed."""
        deadline = monotonic() + _DELIVERY_SECONDS
        while self._failure is None and len(self._producer) and monotonic() < deadline:
            self._wait(self._producer.flush, 0.2)
            tick()
        failed = self._failure
        self._producer.purge()
        self._wait(self._producer.flush, 0.2)
        if failed is not None:
            raise failed

    def give_up(self) -> None:
        """Wait a moment for records in flight, and drop the rest."""
        if self._failure is None:
            self._wait(self._producer.flush, _GIVE_UP_SECONDS)
        self._producer.purge()
        self._wait(self._producer.flush, 0.2)

    def summary(self) -> str:
        """Return how many documents were delivered, and to which topic."""
        delivered = counted(self.sent, "document")
        if self.delivered != self.sent:
            delivered = f"{self.delivered:,} of {delivered}"
        return f"{delivered} delivered to {self._topic}"
