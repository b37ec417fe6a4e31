"""The stream of documents of a run: even, held up, past a partition, or in transactions.

Tombstones of earlier documents may be among them, and what a person corrects. Then some documents
have no ids but those of their keys, which are any bytes.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from random import Random
from threading import Event, Lock
from time import monotonic
from typing import Final

from chaos.cell import Run
from chaos.transactions import TransactionalFeeder
from tests.support.application import ApplicationUnderTest
from worker.bus import Outgoing
from worker.corrections.request import Allow, Request, Withdraw, encoded
from worker.wire.headers import CORRECTION

SLICE_SECONDS: Final = 0.2
LARGEST_SLICE: Final = 2_000
TRICKLE: Final = 0.1
ALLOWANCES: Final = 12


class Feeding:
    """Feeds an application at an even rate. Faults may hold it up, from another thread."""

    def __init__(
        self,
        application: ApplicationUnderTest,
        over: Event,
        aborts: float = 0.0,
        forgets: float = 0.0,
    ) -> None:
        """Take whom to feed.

        Args:
            application: gets the documents.
            over: ends the feeding.
            aborts: of transactions the share that is aborted; 0: none are used.
            forgets: tombstones, as a share of the documents, and half as many corrections; 0: all
                have ids in their values.
        """
        self._application = application
        self._over = over
        self._lock = Lock()
        self._forgets = forgets
        self._random = Random(2)
        self._left_out: frozenset[int] = frozenset()
        self._held = False
        self._transactions = TransactionalFeeder(application, aborts, Random(1)) if aborts else None
        self.stopped = False
        """Whether what is left is not fed any more."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Feed nothing for a while; what was begun is in the log when this is entered."""
        self._hold(held=True)
        try:
            yield
        finally:
            self._hold(held=False)

    def _hold(self, *, held: bool) -> None:
        with self._lock:
            self._held = held

    @contextmanager
    def without(self, partitions: Collection[int]) -> Iterator[None]:
        """Leave partitions of the documents out for a while."""
        with self._lock:
            self._left_out = frozenset(partitions)
        try:
            yield
        finally:
            with self._lock:
                self._left_out = frozenset()

    def stop(self) -> None:
        """Feed nothing any more; what was begun is in the log."""
        with self._lock:
            self.stopped = True

    def first(self, texts: Sequence[tuple[str, str]]) -> None:
        """Feed the documents with which a run begins, to all partitions."""
        self._application.feed(self._application.documents(texts))

    def run(self, run: Run, first: int, struck: Event) -> None:
        """Feed what a run has, from its document ``first`` on; late after a fault, catch up.

        A tenth is kept for when the faults take longer than planned: it trickles until all
        have struck, so that none strikes a stream that has run dry.
        """
        kept = len(run.documents) * 0.9
        due, done, looked = float(first), first, monotonic()
        while done < len(run.documents) and not self._over.wait(SLICE_SECONDS):
            now = monotonic()
            more = (now - looked) * run.rate
            looked = now
            with self._lock:
                if self.stopped:
                    return
                if self._held:
                    continue
                if struck.is_set():
                    due += more
                elif due < kept:
                    due = min(kept, due + more)
                else:
                    due += more * TRICKLE
                size = min(int(due) - done, LARGEST_SLICE)
                if size > 0:
                    self._feed(run.documents[done : done + size], done)
                    self._forget(run.documents[:done], size)
                    self._correct(run.documents[:done], size)
                    done += size

    def _feed(self, texts: Sequence[tuple[str, str]], first: int) -> None:
        records = self._placed(self._application.documents(texts, first))
        if self._forgets:
            records = list(map(_keyed, records))
        if self._transactions is None:
            self._application.feed(records, self._over)
        else:
            self._transactions.feed(records, self._over)

    def _forget(self, fed: Sequence[tuple[str, str]], size: int) -> None:
        """Write tombstones of documents that are in the log, for so many that came after.

        Every other one is a delete of a change feed, which has a value.
        """
        if not self._forgets:
            return
        count = int(size * self._forgets + self._random.random())
        topology = self._application.topology
        places = self._random.choices(range(len(fed)), k=count)
        deletes = self._application.documents([(fed[place][0], "") for place in places])
        tombstones = [
            record._replace(
                partition=place % topology.layout.partitions,
                value=None if self._random.random() < 0.5 else _deleting(record),
            )
            for place, record in zip(places, map(_keyed, deletes), strict=True)
        ]
        self._application.feed(tombstones, self._over)

    def _correct(self, fed: Sequence[tuple[str, str]], size: int) -> None:
        """Allow texts of documents that are in the log, and withdraw that again."""
        count = int(size * self._forgets / 2 + self._random.random()) if self._forgets else 0
        topology = self._application.topology
        corrections = []
        for _, text in self._random.choices(fed, k=count):
            ident = f"allowance {self._random.randrange(ALLOWANCES)}"
            exact = self._random.random() < 0.3
            request: Request = Allow(ident, text, exact=exact, by="chaos", why="drawn")
            if self._random.random() < 0.3:
                request = Withdraw(ident, by="chaos")
            corrections.append(
                Outgoing(
                    topology.documents,
                    self._random.randrange(topology.layout.partitions),
                    ident.encode(),
                    None,
                    ((CORRECTION, encoded(request)),),
                )
            )
        self._application.feed(corrections, self._over)

    def _placed(self, records: list[Outgoing]) -> list[Outgoing]:
        if not self._left_out:
            return records
        taken = [
            number
            for number in range(self._application.topology.layout.partitions)
            if number not in self._left_out
        ]
        return [
            record._replace(partition=taken[number % len(taken)])
            for number, record in enumerate(records)
        ]


def _key(ident: bytes) -> bytes | None:
    """Return the key of a document that has no id but that; None if it has one."""
    digest = sha256(ident).digest()
    kind = digest[0] % 16
    if kind > 2:
        return None
    return (digest[:8], b"\0" * 1_100 + ident, ident * 200)[kind]


def _deleting(record: Outgoing) -> bytes:
    return json.dumps(json.loads(record.value or b"") | {"text": None}).encode()


def _keyed(record: Outgoing) -> Outgoing:
    key = _key(record.key or b"")
    if key is None:
        return record
    payload = json.loads(record.value or b"")
    del payload["id"]
    return record._replace(key=key, value=json.dumps(payload).encode())
