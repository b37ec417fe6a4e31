"""What clients ask beside queries: the feed, documents, comparisons, the flow, corrections.

Each of them has a thread of its own, so a slow search keeps nobody from looking. What waits for a
thread is bounded.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import msgspec

from lsh import Fingerprinter
from worker.app import Application
from worker.bus import Bus
from worker.closing import Closing
from worker.corrections.service import MadeList
from worker.documents.lookup import FORGOTTEN, Gone, Located, Lookup
from worker.documents.published import Document, Documents, Duplicate
from worker.formats.unreadable import Unreadable
from worker.groups.store import GroupsUnusable
from worker.observe.feed import Duplicates, Feed, Since
from worker.observe.flow import Flow, FlowLooks, Owners
from worker.serve.answers import Refused
from worker.serve.asking import Asker, Questions
from worker.serve.comparisons import Compare, Compared, Comparer, Comparison, Side
from worker.serve.correcting import Correct, Corrected, Correcting
from worker.serve.following import Following, Warming
from worker.serve.groups import Outline, outline
from worker.wire.frame import POSITION_BITS

T = TypeVar("T")
Listed = TypeVar("Listed", Document, Duplicate)

_log = logging.getLogger(__name__)

Pool = Callable[[str], Executor]
"""Returns the thread with a name; whoever made it ends it."""

_MOST_WAITING = 32
_POLL_SECONDS = 0.5
_PAUSE_SECONDS = 0.1
_RETRY_SECONDS = 2.0


class Busy(Refused):
    """Too many requests wait for the same thread."""

    def __init__(self) -> None:
        """Tell the client to come back."""
        reason = "too many requests wait; try again"
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, reason, {"Retry-After": "1"})


class Turns:
    """A thread, and how many requests wait for it."""

    def __init__(self, executor: Executor) -> None:
        """Take the thread; whoever made it ends it."""
        self._executor = executor
        self._waiting = 0

    async def run(self, call: Callable[[], T]) -> T:
        """Return what a call returns.

        Raises:
            Busy: too many wait.
        """
        if self._waiting >= _MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, call)
        finally:
            self._waiting -= 1


class Desk(Closing):
    """Answers what the page asks about one application."""

    def __init__(
        self,
        application: Application,
        bus: Bus,
        following: Following,
        owners: Owners,
        pool: Pool | None = None,
    ) -> None:
        """Take what to read from. ``pool`` has one thread for all if the bus is for one thread."""
        settings, topology = application.settings, application.topology
        self.feed = Feed(settings, topology, bus)
        self._following = following
        self._questions = Questions(settings)
        self._asker = Asker(topology.layout, application.settings.rules())
        self._comparer = Comparer(Fingerprinter(topology.layout.parameters))
        self._lookup = Lookup(settings, topology, bus)
        self._searching = Lookup(settings, topology, bus)
        self._flow = FlowLooks(topology, bus, owners)
        window = application.settings.rules().window_ms
        self._correcting = Correcting(settings, topology, bus, following, window)
        self._ending = threading.Event()
        with ExitStack() as stack:
            self._executors = {
                name: (pool or _own_thread)(name)
                for name in ("feed", "look", "search", "flow", "correct")
            }
            # It reads nothing, so it never is the thread of the bus.
            self._executors["compare"] = _own_thread("compare")
            for name, executor in self._executors.items():
                if pool is None or name == "compare":
                    stack.callback(executor.shutdown)
            for name, part in (
                ("feed", self.feed),
                ("look", self._lookup),
                ("search", self._searching),
                ("flow", self._flow),
                ("correct", self._correcting),
            ):
                stack.callback(self._in(name, part.close))
            self._turns = {name: Turns(one) for name, one in self._executors.items()}
            self._thread = threading.Thread(target=self._poll, name="feed-polls", daemon=True)
            self._thread.start()
            self._open = stack.pop_all()

    def _in(self, name: str, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: self._executors[name].submit(call).result()

    def _poll(self) -> None:
        """Have the feed read until the end."""
        feed = self._executors["feed"]
        while not self._ending.is_set():
            pause = _RETRY_SECONDS
            try:
                feed.submit(self.feed.poll, _POLL_SECONDS).result()
            except Exception:  # noqa: BLE001 -- logged; the page lives on without the latest
                _log.exception("the latest duplicates can't be read; trying again")
            else:
                pause = _RETRY_SECONDS if self.feed.trouble else _PAUSE_SECONDS
            self._ending.wait(pause)

    async def compare(self, asked: Compare) -> Comparison:
        """Return a comparison.

        Raises:
            Busy: too many wait.
            Warming: a shard can't be read yet.
            BusError: the topics can't be read.
        """
        sides, texts = await self._turns["look"].run(partial(self._sides, asked))
        return await self._turns["compare"].run(partial(self._comparer.compared, sides, texts))

    def _sides(
        self, asked: Compare
    ) -> tuple[tuple[Compared, Compared], tuple[str | None, str | None]]:
        left, left_text = self._side(asked.left)
        if asked.right.match is not msgspec.UNSET:
            right, right_text = self._match(left, left_text, asked.right.match)
        else:
            right, right_text = self._side(asked.right)
        return (left, right), (left_text, right_text)

    def _side(self, side: Side) -> tuple[Compared, str | None]:
        if side.text is not msgspec.UNSET:
            question = self._questions.text(side.text)
            if isinstance(question, Unreadable):
                return Compared(None, None, None, None, len(side.text), str(question)), None
            return Compared(None, None, None, None, len(question.text)), question.text
        assert side.sequence is not msgspec.UNSET  # noqa: S101 -- who decodes it checks that
        return self._located(side.sequence)

    def _located(self, sequence: int) -> tuple[Compared, str | None]:
        try:
            found = self._document(sequence)
        except Gone as why:
            return Compared(None, sequence, None, None, 0, str(why)), None
        side = Compared(found.id, sequence, found.source, found.time, len(found.text))
        return side, found.text

    def _match(self, left: Compared, text: str | None, ident: str) -> tuple[Compared, str | None]:
        """Return the document with an id that a text matches now."""
        gone = Compared(ident, None, None, None, 0, "the index no longer has it")
        if text is None:
            return gone, None
        question = self._questions.text(text)
        if isinstance(question, Unreadable):
            return msgspec.structs.replace(gone, gone=str(question)), None
        matches = self._asker.answers(self._following, [question])[0].matches
        for one in matches:
            if one.id == ident and one.sequence != left.sequence:
                return self._located(one.sequence)
        return gone, None

    async def with_id(self, ident: str) -> Documents:
        """Return the latest documents with an id; see `Lookup.with_id`."""
        return await self._turns["search"].run(
            lambda: self._known(self._searching.with_id(ident))
        )  # fmt: skip

    async def with_header(self, name: str, value: str | None) -> Documents:
        """Return the latest documents with a header; see `Lookup.with_header`."""
        return await self._turns["search"].run(
            lambda: self._known(self._searching.with_header(name, value))
        )

    def _known(self, found: Documents) -> Documents:
        return msgspec.structs.replace(
            found, documents=self._unforgotten(self._searching, found.documents)
        )

    def _unforgotten(self, lookup: Lookup, listed: list[Listed]) -> list[Listed]:
        """Return those documents of a list that weren't forgotten later.

        Raises:
            Warming: that can't be known yet.
        """

        def logged(sequence: int) -> int | None:
            try:
                return lookup.frame(sequence >> POSITION_BITS)[1]
            except Gone:
                return None

        return [
            one
            for one in listed
            if not self._following.forgotten(
                one.id.encode(errors="replace"), one.sequence, partial(logged, one.sequence)
            )
        ]

    async def latest(self, cursor: int | None, limit: int) -> Duplicates:
        """Return the latest duplicates, or those before a cursor, without forgotten ones."""
        found = self.feed.page(cursor, limit)
        known = partial(self._unforgotten, self._lookup, found.duplicates)
        return Duplicates(await self._turns["look"].run(known), found.next)

    async def since(self, number: int, most: int) -> Since:
        """Return what has come since a number; see `Feed.since`. None of it is forgotten."""
        found = self.feed.since(number, most)
        if not found.duplicates:
            return found
        known = partial(self._unforgotten, self._lookup, found.duplicates)
        return found._replace(duplicates=await self._turns["look"].run(known))

    async def outline(self, ident: int) -> Outline | None:
        """Return of what the group of a document consists; None if it is in none."""
        threshold = self._asker.rules.threshold
        call = partial(outline, self._following, self._searching, ident, threshold)
        return await self._turns["search"].run(call)

    async def document(self, sequence: int) -> Located:
        """Return a document; see `Lookup.document`.

        Raises:
            Gone: it can't be shown, or it was forgotten.
        """
        return await self._turns["look"].run(lambda: self._document(sequence))

    def _document(self, sequence: int) -> Located:
        found = self._lookup.document(sequence)
        if self._following.forgotten(found.id.encode(), sequence, lambda: found.logged):
            raise Gone(FORGOTTEN)
        return found

    async def flow(self) -> Flow:
        """Return how documents pass through the stages."""
        reached, feed = self._following.reached(), self.feed
        trouble = feed.trouble
        rejected = await self._turns["look"].run(lambda: feed.rejections(self._was_forgotten))
        return await self._turns["flow"].run(
            lambda: self._flow.flow(reached.behind, reached.warming, rejected, trouble)
        )

    def _was_forgotten(self, ident: str) -> bool:
        """Return whether a document was ever forgotten with an id, or that can't be known yet."""
        try:
            return self._following.forgotten(ident.encode(errors="replace"), 0, lambda: 0)
        except (Warming, GroupsUnusable):
            return True

    async def corrections(self, skipped: int, limit: int) -> MadeList:
        """Return what was corrected; see `Correcting.made`."""
        return await self._turns["look"].run(lambda: self._correcting.made(skipped, limit))

    async def correct(self, asked: Correct) -> Corrected:
        """Make a correction; see `Correcting.correct`."""
        return await self._turns["correct"].run(lambda: self._correcting.correct(asked))

    def close(self) -> None:
        """End the threads, and close the readers."""
        self._ending.set()
        self._thread.join()
        self._open.close()


def _own_thread(name: str) -> Executor:
    return ThreadPoolExecutor(1, thread_name_prefix=name)


def waits() -> Refused:
    """Return why nothing is answered before Kafka has."""
    return Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the server waits for Kafka")


def no_desk() -> Desk:
    """Refuse what a desk would answer: there is none yet.

    Raises:
        Refused: always.
    """
    raise waits()
