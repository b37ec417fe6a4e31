"""A store in dictionaries, with which a shard of the compiled core is opened and driven."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lsh._core import Damaged, Decision, Opening, Plan, Query, Shard, Writes, check
from lsh.index import BucketRules, DocumentBatch
from worker.index.contents import Contents
from worker.index.keyspace import CELLS, HEADER, RENEWALS, RUNS, Range, number_in, of_run
from worker.index.rocksdb import span

_RENEWAL = struct.Struct("<qB")

Groups = Sequence[tuple[int | None, Sequence[bytes]]]


@dataclass
class DictionaryStore:
    """The keys of a shard, the tables of its runs, and what a store keeps beside them."""

    keys: dict[bytes, bytes] = field(default_factory=dict)
    tables: dict[int, dict[bytes, bytes]] = field(default_factory=dict)
    unfinished: dict[int, dict[bytes, bytes]] = field(default_factory=dict)
    inserted: int = 0
    clock: bytes | None = None

    def get(self, groups: Groups) -> list[bytes | None]:
        """Return the values of keys, in their order."""
        return [
            (self.keys if run is None else self.tables.get(run, {})).get(key)
            for run, keys in groups
            for key in keys
        ]

    def contents(self) -> Contents:
        """Return a reader of everything."""
        rows: Any = _Rows(self.keys)
        pages: Any = _Pages(self)
        return Contents(rows, pages, self.keys.get(RUNS), self.inserted)

    def renewals(self) -> dict[tuple[int, int], int]:
        """Return the times, or marks, to which documents were renewed, by number and column."""
        found: dict[tuple[int, int], int] = {}
        for key, value in self.keys.items():
            if not RENEWALS.low <= key < RENEWALS.high:
                continue
            packed, number = check(key, value), number_in(key)
            while packed:
                time, count = _RENEWAL.unpack_from(packed)
                columns, packed = packed[9 : 9 + count], packed[9 + count :]
                found |= {(number, column): time for column in columns}
        return found

    def write(self, writes: Writes) -> None:
        """Write, as `Writes` says."""
        self.write_tables(writes)
        self.write_keys(writes)

    def write_tables(self, writes: Writes) -> None:
        """Write what comes before the atomic write."""
        for run, pages, finished, _ in writes.tables:
            self.unfinished.setdefault(run, {}).update(pages)
            if finished:
                self.tables.setdefault(run, {}).update(self.unfinished.pop(run))

    def write_keys(self, writes: Writes) -> None:
        """Do the atomic write."""
        for low, high in writes.ranges:
            self.keys = {key: self.keys[key] for key in self.keys if not low <= key < high}
        for key in writes.deletes:
            self.keys.pop(key, None)
        self.keys.update(writes.puts)
        self.inserted, self.clock = writes.inserted, writes.clock
        for run in writes.replaced:
            self.tables.pop(run, None)
            self.unfinished.pop(run, None)

    def open(self, *, run_documents: int, window_ms: int | None) -> Shard:
        """Open the shard, as after a crash: unfinished tables are lost."""
        self.unfinished.clear()
        opening = Opening(
            run_documents=run_documents,
            window_ms=window_ms,
            inserted=self.inserted,
            clock=self.clock,
        )
        opening.give(list(map(self.keys.get, opening.keys())))
        named, begun = opening.tables()
        if not set(named) <= self.tables.keys():
            raise Damaged(f"of the tables of runs {named}, some are missing")
        self.tables = {run: self.tables[run] for run in self.tables if run in {*named, *begun}}
        for low, high, _ in opening.ranges():
            keys = sorted(key for key in self.keys if low <= key < high)
            opening.take([(key, self.keys[key]) for key in keys])
        return opening.finish()


class _Rows:
    """Keys and values as a RocksDB returns them: in order, with a key past all ranges."""

    def __init__(self, rows: Mapping[bytes, bytes]) -> None:
        self._rows = sorted({**rows, HEADER: b""}.items())

    def items(self, from_key: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return iter(self._rows[bisect_left(self._rows, (from_key,)) :])


class _Pages:
    """The pages of runs as `worker.index.run_tables.Pages` returns them."""

    def __init__(self, store: DictionaryStore) -> None:
        self._store = store

    def of(self, run: int, keys: Range | None = None) -> Iterator[tuple[bytes, bytes]]:
        rows: Any = _Rows(self._store.tables.get(run, self._store.keys))
        return span(rows, keys or of_run(CELLS, run))

    def check(self, made: Iterable[int]) -> None:
        assert set(made) <= self._store.tables.keys()


class Driven:
    """A shard of the compiled core over a store in dictionaries."""

    def __init__(
        self, rules: BucketRules, store: DictionaryStore | None = None, *, run_documents: int = 8
    ) -> None:
        self.rules = rules
        self.store = store or DictionaryStore()
        self._run_documents = run_documents
        self.reopen()

    def reopen(self) -> None:
        """Open the shard anew from its store."""
        window = self.rules.window_ms
        self.shard = self.store.open(run_documents=self._run_documents, window_ms=window)

    def read(self, plan: Plan | Query) -> None:
        """Read until nothing is left to read."""
        while keys := plan.keys():
            plan.give(self.store.get(keys))

    def decide(self, batch: DocumentBatch) -> tuple[Plan, Decision]:
        """Judge a batch."""
        plan = self.shard.plan(batch, self.rules)
        self.read(plan)
        return plan, plan.judge()

    def prepare(self, plan: Plan) -> Writes:
        """Return the write of a decision."""
        self.read(plan)
        return plan.writes()

    def judge(self, batch: DocumentBatch) -> Decision:
        """Judge a batch, and write what is decided."""
        plan, decision = self.decide(batch)
        self.store.write(self.prepare(plan))
        self.shard.apply(plan)
        return decision

    def query(self, batch: DocumentBatch) -> Query:
        """Return queries that are answered."""
        query = self.shard.query(batch, self.rules)
        self.read(query)
        return query
