"""The filter on datasketch as a worker on Kafka, with exactly-once output.

    python -m bench.datasketch_worker BOOTSTRAP GROUP SOURCE UNIQUE DUPLICATE

The index is in memory, so there is only one consumer: it can't use a second core, and a restart
begins with an empty index.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec
from confluent_kafka import Message

from bench.datasketch_filter import Filter, Payload
from bench.exactly_once import Output, copy


def main() -> None:
    """Judge documents until SIGTERM."""
    bootstrap, group, source, unique, duplicate = sys.argv[1:]
    judging, decode = Filter(), msgspec.json.Decoder(Payload).decode
    as_unique = Output(unique, [("verdict", b"unique")])

    def judge(messages: list[Message]) -> Iterator[Output]:
        for message in messages:
            matches = judging.matches(decode(message.value() or b""))
            if matches:
                listed = msgspec.json.encode(matches)
                yield Output(duplicate, [("verdict", b"duplicate"), ("duplicate-of", listed)])
            else:
                yield as_unique

    # Judges the whole batch before its transaction begins, because the transaction has a timeout.
    copy(bootstrap, group, source, lambda messages: list(judge(messages)))


if __name__ == "__main__":
    main()
