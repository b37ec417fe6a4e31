"""The ids of topics: a topic that was deleted and made anew is another one.

Kafka's clients go on in the new topic at the position that they had in the old one, in silence.
So every committed offset carries the id of the topic that it belongs to, and a member reads the
topics that it began with, and no others of the same names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from time import monotonic, sleep

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from worker.bus.kafka.errors import cause, retrying
from worker.bus.port import BusError, TopicRecreated

__all__ = ["Identities", "id_in", "metadata_of", "present_ids", "topic_ids"]

_KEY = "topic_id"
_UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_CHANGED = re.compile(r"Topic (\S+) changed id from \S+ to (\S+)")
_CREATED_SECONDS = 3.0
_PAUSE_SECONDS = 0.1
_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})


def metadata_of(topic_id: str) -> str:
    """Return what is committed with an offset, so that it can be told whose offset it is."""
    return json.dumps({_KEY: topic_id}, separators=(",", ":"))


def id_in(metadata: str | None) -> str | None:
    """Return the topic id that was committed with an offset.

    None if there is none: another tool has set the offset, or a version that wrote no id.
    """
    try:
        found = json.loads(metadata or "")
    except ValueError:
        return None
    topic_id = found.get(_KEY) if isinstance(found, dict) else None
    return topic_id if isinstance(topic_id, str) else None


def present_ids(admin: AdminClient, topics: Collection[str], seconds: float) -> dict[str, str]:
    """Return the ids of those topics that exist.

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
            if cause(error).code() not in _MISSING:
                raise
    return found


def topic_ids(admin: AdminClient, topics: Collection[str], seconds: float) -> dict[str, str]:
    """Return the ids of topics; one that was just created may not be known everywhere yet.

    Raises:
        BusError: a topic does not exist, or there is no answer in time.
    """
    deadline = monotonic() + _CREATED_SECONDS
    while True:
        try:
            found = retrying(
                lambda left: present_ids(admin, topics, max(1.0, left / 3)),
                seconds,
                "ids of topics",
                asking=True,
            )
        except KafkaException as error:
            msg = f"{', '.join(sorted(topics))} can't be described: {cause(error).str()}"
            raise BusError(msg) from error
        missing = sorted(set(topics) - found.keys())
        if not missing:
            return found
        if monotonic() > deadline:
            raise BusError(f"{missing[0]} can't be described: the topic does not exist")
        sleep(_PAUSE_SECONDS)


class Identities:
    """The ids of the topics that one member, or reader, depends on.

    It asks and is told in its own thread, but for `look`, which another may call.

    Attributes:
        topics: that it depends on.
        of: the topic that committed offsets belong to; None: each to its own.
        wrong: what `check` raises: that a topic was made anew, or that nobody looks any more.
    """

    def __init__(
        self,
        topics: Collection[str],
        ask: Callable[[Collection[str]], dict[str, str]],
        *,
        of: str | None = None,
    ) -> None:
        """Take the topics, and what asks for ids; nothing is asked yet."""
        self.topics = frozenset(topics).union(() if of is None else (of,))
        self.of = of
        self.wrong: BusError | None = None
        self._ask = ask
        self._ids: dict[str, str] = {}

    def check(self) -> None:
        """Raise what is wrong, if anything is."""
        if self.wrong is not None:
            raise self.wrong

    def know(self, topic: str) -> str:
        """Return the id that a topic had first; it is asked for if nobody has told it yet.

        Raises:
            ValueError: it is none of the topics.
            TopicRecreated: a topic is not what it was.
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
        """Ask for the ids of some topics, and of the one that offsets belong to; check them.

        Raises:
            TopicRecreated: one is not what it was.
            BusError: no answer, or a topic is missing.
        """
        self.look(self._ask({*topics, self.of} if self.of is not None else topics))
        self.check()

    def check_offset(self, topic: str, metadata: str | None) -> None:
        """Check that what was committed for a topic is an offset of the topic that it belongs to.

        Raises:
            TopicRecreated: it is one of an earlier topic of that name.
            BusError: see `know`.
        """
        owner = self.of or topic
        committed, known = id_in(metadata), self.know(owner)
        if committed not in (None, known):
            raise TopicRecreated(owner, str(committed), known)

    def metadata(self, topic: str) -> str:
        """Return what to commit with an offset for a topic."""
        return metadata_of(self.know(self.of or topic))

    def look(self, ids: Mapping[str, str]) -> None:
        """Take the ids that topics have now; those left out may be on their way."""
        for topic in self.topics & ids.keys():
            known = self._ids.setdefault(topic, ids[topic])
            if known != ids[topic] and self.wrong is None:
                self.wrong = TopicRecreated(topic, known, ids[topic])

    def hear(self, line: str) -> None:
        """Take a line of librdkafka's log.

        It logs that a topic's id has changed before it fetches from the new one, and the line
        is delivered in the order of the records.
        """
        found = _CHANGED.search(line)
        if found is not None and found[1] in self._ids and found[2] != _UNKNOWN_ID:
            self.look({found[1]: found[2]})
