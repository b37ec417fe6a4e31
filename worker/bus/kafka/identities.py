"""The ids of topics: a topic that was deleted and recreated is another topic.

Kafka's clients silently continue in the new topic at their position in the old one. So every
committed offset carries the id of its topic, and a member only reads the topics that it began
with, not others of the same names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from time import monotonic, sleep

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from worker.bus import BusError, Offset, TopicRecreated, state_of
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import asking, cause
from worker.untrusted import NOT_READ

_KEY = "topic_id"
_TRANSACTION = "transaction"
_STATE = "state"
_UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_CHANGED = re.compile(r"Topic (\S+) changed id from \S+ to (\S+)")
_CREATED_SECONDS = 3.0
_PAUSE_SECONDS = 0.1


def metadata_of(topic_id: str, offset: int, transaction: str | None = None) -> str:
    """Return the metadata that identifies the topic of a committed offset, and has its state.

    ``transaction`` identifies the transaction that commits it.
    """
    facts = {_KEY: topic_id}
    state = state_of(offset)
    if state is not None:
        facts[_STATE] = state
    if transaction is not None:
        facts[_TRANSACTION] = transaction
    return json.dumps(facts, separators=(",", ":"))


def id_in(metadata: str | None) -> str | None:
    """Return the topic id that was committed with an offset.

    None if there is none: the offset was set by another tool, or by a version that wrote no id.
    """
    return _fact(metadata, _KEY)


def offset_in(place: KafkaPartition) -> int | None:
    """Return a committed offset, with its state if it has one; None if there is no offset."""
    offset, state = place.offset, _fact(place.metadata, _STATE)
    if offset < 0:
        return None
    return offset if state is None else Offset(offset, state)


def transaction_in(metadata: str | None) -> str | None:
    """Return the id of the transaction that has committed an offset; None if there is none."""
    return _fact(metadata, _TRANSACTION)


def _fact(metadata: str | None, key: str) -> str | None:
    try:
        found = json.loads(metadata or "")
    except NOT_READ:
        return None
    fact = found.get(key) if isinstance(found, dict) else None
    return fact if isinstance(fact, str) else None


def present_ids(admin: AdminClient, topics: Collection[str], seconds: float) -> dict[str, str]:
    """Return the ids of the topics that exist.

    Raises:
        KafkaException: no answer in time, or refused.
    """
    if not topics:
        return {}
    asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=seconds)
    found = {}
    for topic, future in asked.items():
        try:
            found[topic] = str(future.result().topic_id)
        except KafkaException as error:
            if not means(cause(error), Means.MISSING):
                raise
    return found


def topic_ids(
    present: Callable[[Collection[str], float], dict[str, str]],
    topics: Collection[str],
    seconds: float,
) -> dict[str, str]:
    """Return the ids of topics; waits briefly for topics that were just created.

    ``present`` is `present_ids` for a client, or the like.

    Raises:
        BusError: a topic does not exist, or there is no answer in time.
    """
    deadline = monotonic() + _CREATED_SECONDS
    while True:
        found = asking(
            lambda left: present(topics, max(1.0, left / 3)),
            seconds,
            f"{', '.join(sorted(topics))} can't be described",
        )
        missing = sorted(set(topics) - found.keys())
        if not missing:
            return found
        if monotonic() > deadline:
            raise BusError(f"{missing[0]} can't be described: the topic does not exist")
        sleep(_PAUSE_SECONDS)


class Identities:
    """The ids of the topics that one member or reader depends on.

    All methods belong to the member's thread, except `look`, which another thread may call.

    Attributes:
        topics: the topics that it depends on.
        of: the topic that committed offsets belong to; None: each belongs to its own.
        wrong: what `check` raises: a topic was recreated, or the watcher has failed.
    """

    def __init__(
        self,
        topics: Collection[str],
        ask: Callable[[Collection[str]], dict[str, str]],
        *,
        of: str | None = None,
    ) -> None:
        """Take the topics, and a function that looks up ids. This does not call it."""
        self.topics = frozenset(topics).union(() if of is None else (of,))
        self.of = of
        self.wrong: BusError | None = None
        self._ask = ask
        self._ids: dict[str, str] = {}

    def depend_on(self, topics: Collection[str]) -> None:
        """Depend on these topics from now on."""
        self.topics = frozenset(topics).union(() if self.of is None else (self.of,))

    def check(self) -> None:
        """Raise `wrong` if it is set."""
        if self.wrong is not None:
            raise self.wrong

    def know(self, topic: str) -> str:
        """Return the first id that was seen of a topic; look it up if none was.

        Raises:
            ValueError: the topic is not one of `topics`.
            TopicRecreated: a topic was recreated.
            BusError: no answer, or the topic is missing.
        """
        if topic not in self.topics:
            raise ValueError(
                f"{topic} is not one of {', '.join(sorted(self.topics)) or 'no topics'}"
            )
        if topic not in self._ids:
            self.ask([topic])
        return self._ids[topic]

    def ask(self, topics: Collection[str]) -> None:
        """Look up and check the ids of some topics, and of the one that offsets belong to.

        Raises:
            TopicRecreated: a topic was recreated.
            BusError: no answer, or a topic is missing.
        """
        self.look(self._ask({*topics, self.of} if self.of is not None else topics))
        self.check()

    def check_offset(self, topic: str, metadata: str | None) -> None:
        """Check that an offset, committed for a topic with this metadata, is of the present topic.

        Raises:
            TopicRecreated: the offset is of an earlier topic of that name.
            BusError: see `know`.
        """
        owner = self.of or topic
        committed, known = id_in(metadata), self.know(owner)
        if committed not in (None, known):
            raise TopicRecreated(owner, str(committed), known)

    def metadata(self, topic: str, offset: int, transaction: str) -> str:
        """Return the metadata to commit with an offset for a topic in a transaction."""
        return metadata_of(self.know(self.of or topic), offset, transaction)

    def look(self, ids: Mapping[str, str]) -> None:
        """Take the topics' current ids; a topic that is left out may be in creation."""
        for topic in self.topics & ids.keys():
            known = self._ids.setdefault(topic, ids[topic])
            if known != ids[topic] and self.wrong is None:
                self.wrong = TopicRecreated(topic, known, ids[topic])

    def hear(self, line: str) -> None:
        """Take a line of librdkafka's log.

        librdkafka logs that a topic's id has changed before it fetches from the new topic, and
        the line is delivered in order with the records.
        """
        found = _CHANGED.search(line)
        if found is not None and found[1] in self._ids and found[2] != _UNKNOWN_ID:
            self.look({found[1]: found[2]})
