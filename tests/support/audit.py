"""A reader of all outputs at once, as a committed consumer sees them while things break."""

from collections.abc import Callable
from time import monotonic, time
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from localkafka.broker import wait_until
from tests.support.clients import close
from worker.bus import Header, Record, TopicPartition
from worker.topology import Topology

CHECK_SECONDS: Final = 0.3
TIMEOUT_SECONDS: Final = 30.0
MOVING: Final = frozenset(
    {
        KafkaError._WAIT_COORD,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
"""What is answered, or isn't, while a leader or a coordinator moves."""


class Arrival(NamedTuple):
    """One look that brought records: when, how many, and the longest that one had waited."""

    at: float
    """Seconds, of the monotonic clock."""
    records: int
    wait: float
    """Seconds from a record's timestamp on."""


class Audit:
    """Collects *unique*, *duplicate* and *rejected*; may be asked to go on at any time."""

    def __init__(self, bootstrap: str, topology: Topology, ended: Callable[[], list[str]]) -> None:
        """Read from the start; ``ended`` gives logs of workers that died by themselves."""
        self._topology = topology
        self._ended = ended
        self.records: list[Record] = []
        self.arrivals: list[Arrival] = []
        self.visible: dict[int, int] = {}
        """By partition of the documents, the offset after the last one that readers see, if
        what follows was aborted, or is a marker. A partition that isn't named ends with a
        document."""
        self._next: dict[TopicPartition, int] = {}
        self._reader = _consumer(bootstrap, f"{topology.app}.audit")
        self._offsets = _consumer(bootstrap, topology.group("route"))
        self._ends = _consumer(bootstrap, f"{topology.app}.ends", "read_uncommitted")
        self._places = [
            Place(topic, number, 0)
            for topic in (topology.unique, topology.duplicate, topology.rejected)
            for number in range(topology.layout.partitions)
        ]
        self._reader.assign(self._places)
        self._documents = [Place(topology.documents, n) for n in range(topology.layout.partitions)]

    def widen(self, topology: Topology) -> None:
        """Read partitions that were added, too: ``topology`` has as many as there are now."""
        added = range(self._topology.layout.partitions, topology.layout.partitions)
        self._topology = topology
        outputs = (topology.unique, topology.duplicate, topology.rejected)
        more = [Place(topic, n, 0) for topic in outputs for n in added]
        self._places += more
        self._reader.incremental_assign(more)
        self._documents += [Place(topology.documents, n) for n in added]

    def of(self, topic: str) -> list[Record]:
        """Give what one topic has brought, by partition and offset."""
        return sorted(
            (record for record in self.records if record.topic == topic), key=lambda r: (r[1], r[2])
        )

    @property
    def unique(self) -> list[Record]:
        """Give what is on *unique*."""
        return self.of(self._topology.unique)

    @property
    def duplicate(self) -> list[Record]:
        """Give what is on *duplicate*."""
        return self.of(self._topology.duplicate)

    @property
    def rejected(self) -> list[Record]:
        """Give what is on *rejected*."""
        return self.of(self._topology.rejected)

    def until(
        self,
        condition: Callable[[], bool],
        seconds: float,
        what: str,
        *,
        may_end: bool = False,
    ) -> None:
        """Read until a condition holds.

        Raises:
            TimeoutError: it does not within ``seconds``.
            AssertionError: a worker ended by itself meanwhile.
        """
        deadline = monotonic() + seconds
        while not condition():
            self.read(0.1)
            ended = [] if may_end else self._ended()
            assert not ended, "\n".join(ended)
            if monotonic() > deadline:
                so_far = f"{len(self.records)} records so far"
                raise TimeoutError(f"{seconds:.0f} s in vain for {what}; {so_far}")

    def reach(self, count: int, seconds: float = 120.0) -> None:
        """Read until at least so many records are there."""
        self.until(lambda: len(self.records) >= count, seconds, f"{count} records")

    def finish(self, seconds: float = 120.0, *, may_end: bool = False) -> None:
        """Read until every document is dealt with, then all that is left.

        What counts is the offsets that *route* has committed: so records that are missing
        or too many are found, and not waited for.
        """
        checked = 0.0

        def drained() -> bool:
            nonlocal checked
            if monotonic() - checked < CHECK_SECONDS:
                return False
            checked = monotonic()
            return self.drained()

        self.until(drained, seconds, "all documents to be published", may_end=may_end)
        self.until(self._at_end, seconds, "the end of the outputs", may_end=may_end)

    def drained(self) -> bool:
        """Tell whether *route* has committed the end of every documents partition."""
        try:
            committed = self._offsets.committed(self._documents, TIMEOUT_SECONDS)
            return all(place.offset >= self._end(place) for place in committed)
        except KafkaException as error:
            if error.args[0].code() not in MOVING:
                raise
            return False

    def reached(self) -> dict[int, int]:
        """Return, by partition of the documents, the offset up to which *route* has committed."""
        found: dict[int, int] = {}

        def told() -> bool:
            try:
                committed = self._offsets.committed(self._documents, TIMEOUT_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in MOVING:
                    raise
                return False
            found.update({place.partition: place.offset for place in committed})
            return True

        wait_until(told, TIMEOUT_SECONDS, "the groups' coordinator")
        return found

    def _end(self, place: Place) -> int:
        _, end = self._offsets.get_watermark_offsets(place, TIMEOUT_SECONDS)
        return min(end, self.visible.get(place.partition, end))

    def _at_end(self) -> bool:
        # Not where the committed records end: brokers write the markers of a transaction after
        # they have answered that it is committed, and until then its records seem open.
        at = {(p.topic, p.partition): p.offset for p in self._reader.position(self._places)}
        ends = {
            (place.topic, place.partition): self._ends.get_watermark_offsets(
                Place(place.topic, place.partition), TIMEOUT_SECONDS
            )[1]
            for place in self._places
        }
        return all(max(0, at[place]) >= end for place, end in ends.items())

    def read(self, seconds: float) -> None:
        """Take what is there, or comes in so many seconds."""
        before = len(self.records)
        for message in self._reader.consume(1_000, seconds):
            error = message.error()
            if error is None:
                record = record_of(message)
                place = TopicPartition(record.topic, record.partition)
                # librdkafka may deliver an offset again when a broker comes back.
                if record.offset >= self._next.get(place, 0):
                    self._next[place] = record.offset + 1
                    self.records.append(record)
            elif error.fatal():
                raise KafkaException(error)
        if new := self.records[before:]:
            oldest = min(record.timestamp for record in new)
            self.arrivals.append(Arrival(monotonic(), len(new), time() - oldest / 1_000))

    def close(self) -> None:
        """Let go of the broker."""
        for consumer in (self._reader, self._offsets, self._ends):
            close(consumer)


def read_all(bootstrap: str, partition: TopicPartition) -> list[Record]:
    """Read the committed records of one partition from its start to its end."""
    return read_from_start(bootstrap, partition)[1]


def read_from_start(bootstrap: str, partition: TopicPartition) -> tuple[int, list[Record]]:
    """Read the same; return it behind the offset where the log began.

    The start may move while it is read, as records grow old: it is read anew then.
    """
    reader = _consumer(bootstrap, "neardup-test-reader")
    try:
        deadline = monotonic() + TIMEOUT_SECONDS
        low, high = _range(reader, partition)
        reader.assign([Place(*partition, low)])
        position, records = low, list[Record]()
        while position < high:
            assert monotonic() < deadline, f"{partition} can't be read to its end, {high}"
            found = reader.consume(1_000, 0.2)
            if any(_out_of_range(message) for message in found):
                low, high = _range(reader, partition)
                reader.assign([Place(*partition, low)])
                position, records = low, []
                continue
            if found:
                deadline = monotonic() + TIMEOUT_SECONDS
                records += [record_of(message) for message in found if message.error() is None]
            position = max(low, reader.position([Place(*partition)])[0].offset)
        return low, records
    finally:
        reader.close()


def _range(reader: Consumer, partition: TopicPartition) -> tuple[int, int]:
    low, high = reader.get_watermark_offsets(Place(*partition), TIMEOUT_SECONDS)
    return low, high


def _out_of_range(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET


def record_of(message: Message) -> Record:
    """Give a message as the port's record."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    headers = message.headers() or []
    assert isinstance(headers, list)
    return Record(
        topic,
        partition,
        offset,
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(map(_header, headers)),
    )


def _header(header: tuple[str, str | bytes | None]) -> Header:
    name, value = header
    return name, value.encode() if isinstance(value, str) else value


def _consumer(bootstrap: str, group: str, isolation: str = "read_committed") -> Consumer:
    """Make a reader that is no member of the group whose name it uses."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 16 << 20,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
            "error_cb": _ignore,
        }
    )


def _ignore(error: KafkaError) -> None:
    """Brokers come and go in these tests; what is fatal arrives with the messages."""
