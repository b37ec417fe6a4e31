"""What is compared with the oracle, and the oracle itself, behind one interface each.

To compare another implementation, write its class here and add it to `INDEXES` or `SIGNERS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from lsh import Fingerprinter, Parameters
from lsh._core import Matches
from lsh.index import NO_TIME, BucketRules, DocumentBatch, Forgotten
from tests.core.dictionaries import Driven
from tests.oracle.fingerprint import Fingerprint, fingerprint
from tests.oracle.index import Answer, Document, Match, MetBucket, NaiveIndex
from tests.oracle.normal_form import normalise
from tests.support.stored_clock import StoredClock

Event: TypeAlias = Document | bytes
"""A document, or an id that is forgotten."""
Entries: TypeAlias = dict[tuple[int, int], list[tuple[int, int | None]]]
"""The live entries by column and key, as of `NaiveIndex.entries`."""
_COUNTED: Final = ("candidates", "absorbed", "covered", "divided", "dropped", "repeated")


class Judged(NamedTuple):
    """The matches of each document of a batch, and what was counted in the batch."""

    matches: list[list[Match]]
    counts: Counter[str]


class Index(Protocol):
    """An index of some columns."""

    def judge(self, events: Sequence[Event]) -> Judged:
        """Judge a batch, and keep what comes of it."""

    def query(self, documents: Sequence[Document]) -> list[Answer]:
        """Return what each document would match if it came now, alone; change nothing."""

    def entries(self) -> Entries:
        """Return the live entries."""


class Signer(Protocol):
    """What makes fingerprints."""

    def normalise(self, text: str) -> str:
        """Return the normal form of a text."""

    def sign(self, texts: Sequence[str]) -> list[Fingerprint | None]:
        """Return the fingerprints of a batch of texts; None for a blank one."""


class Naive:
    """The oracle, as an index and as a signer."""

    def __init__(self, rules: BucketRules, columns: Sequence[int]) -> None:
        self._index = NaiveIndex(rules, columns)

    def judge(self, events: Sequence[Event]) -> Judged:
        index, matches = self._index, list[list[Match]]()
        before = self._counts()
        for event in events:
            if isinstance(event, bytes):
                index.forget(event)
            else:
                matches.append(index.judge(event))
        return Judged(matches, self._counts() - before)

    def query(self, documents: Sequence[Document]) -> list[Answer]:
        return list(map(self._index.query, documents))

    def entries(self) -> Entries:
        return self._index.entries()

    def _counts(self) -> Counter[str]:
        return self._index.counts + Counter(older=self._index.clock.older)


class CoreShard:
    """A shard of the compiled core, opened anew now and then. Its runs and eras are short.

    Every other time, it keeps nothing in memory of what it has read.
    """

    def __init__(self, rules: BucketRules, columns: Sequence[int]) -> None:
        self._columns = columns
        self._driven = Driven(rules, run_documents=8)
        self._batches = 0

    def judge(self, events: Sequence[Event]) -> Judged:
        made = self._driven.judge(batch_of(events, self._columns))
        self._batches += 1
        if self._batches % 3 == 0:
            self._driven.reopen()
        if self._batches % 6 == 0:
            self._driven.shard.limit(0, 0)
        counts = Counter({name: getattr(made, name) for name in (*_COUNTED, "older")})
        return Judged(matches_of(made.matches), counts)

    def query(self, documents: Sequence[Document]) -> list[Answer]:
        query = self._driven.query(batch_of(documents, self._columns))
        matches, met, compared = query.answers()
        buckets = [[MetBucket(*one) for one in some] for some in met]
        return list(map(Answer, matches_of(matches), buckets, compared))

    def entries(self) -> Entries:
        store, found = self._driven.store, Entries()
        contents, renewals = store.contents(), store.renewals()
        records = dict(enumerate(contents.records(), contents.first))
        clock = StoredClock.unpacked(store.clock)
        window = self._driven.rules.window_ms
        least = None if clock.now is None or window is None else clock.now - window
        for (column, key), (documents, _) in contents.buckets().items():
            for number in documents:
                record = records[number]
                if record is None:
                    continue
                renewed = renewals.get((number, column), record.time)
                time = max(clock.settled(record.time), clock.settled(renewed))
                if least is None or time >= least:
                    dated = None if least is None else time
                    found.setdefault((column, key), []).append((record.sequence, dated))
        return found


def batch_of(events: Sequence[Event], columns: Sequence[int]) -> DocumentBatch:
    """Return documents, and what is forgotten between them, as a batch of some columns."""
    documents, forgotten = list[Document](), list[Forgotten]()
    for event in events:
        if isinstance(event, bytes):
            forgotten.append(Forgotten(len(documents), event))
        else:
            documents.append(event)
    slots = len(documents[0].sketch) if documents else 0
    sketches = np.frombuffer(b"".join(one.sketch for one in documents), np.uint8)
    keys = np.array([[d.keys[column] for d in documents] for column in columns], np.uint64)
    return DocumentBatch(
        sequences=np.array([one.sequence for one in documents], np.uint64),
        times=np.array([NO_TIME if d.time is None else d.time for d in documents], np.int64),
        ids=[one.id for one in documents],
        shingles=np.array([one.shingles for one in documents], np.uint32),
        columns=columns,
        keys=keys.reshape(len(columns), len(documents)),
        sketches=sketches.reshape(len(documents), slots),
        forgotten=forgotten,
    )


def matches_of(found: Matches) -> list[list[Match]]:
    """Return the matches of each document."""
    columns = found.sequences.tolist(), found.similarities.tolist(), found.ids
    shares = [share or None for share in found.containments.tolist()]
    every = list(map(Match, *columns, shares))
    return [every[low:high] for low, high in pairwise(found.starts.tolist())]


class NaiveSigner:
    """The oracle's fingerprints, text by text."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def normalise(self, text: str) -> str:
        return normalise(text, self._parameters)

    def sign(self, texts: Sequence[str]) -> list[Fingerprint | None]:
        return [fingerprint(text, self._parameters) for text in texts]


class CoresSigner:
    """`lsh.Fingerprinter`, which the compiled core stands behind."""

    def __init__(self, parameters: Parameters) -> None:
        self._fingerprinter = Fingerprinter(parameters)

    def normalise(self, text: str) -> str:
        return self._fingerprinter.normalise(text)

    def sign(self, texts: Sequence[str]) -> list[Fingerprint | None]:
        prints = self._fingerprinter.fingerprint(texts)
        rows = zip(
            prints.keys.tolist(),
            map(bytes, prints.sketches),
            prints.shingle_counts.tolist(),
            prints.blank.tolist(),
            strict=True,
        )
        return [None if blank else Fingerprint(*row) for *row, blank in rows]


INDEXES: Final[list[Callable[[BucketRules, Sequence[int]], Index]]] = [CoreShard]
SIGNERS: Final[list[Callable[[Parameters], Signer]]] = [CoresSigner]
