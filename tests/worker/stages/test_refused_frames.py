"""Whatever bytes are in the log, all shards do the same with them, and no document is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stages import (
    DOCS,
    LAYOUT,
    document,
    fingerprint,
    index,
    judge,
    no_watermarks,
    process,
    records,
    route,
    seated,
    through,
    topology,
    whole_log,
)
from worker.bus import Outgoing, Record, TopicPartition
from worker.corrections.request import Allow, Request, Withdraw, encoded
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.json import JsonFormat
from worker.index.store import BandStore
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.index import Index
from worker.stages.order import placed
from worker.stages.route import Route
from worker.wire.codec import NO_FRAME, FrameError, decode, encode, hand_over
from worker.wire.corrections import ALLOWED, Correction, Kind
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.headers import CORRECTION, REASON
from worker.wire.ids import MOST_ID_BYTES, Ids, Tombstones, nameable
from worker.wire.matches import MatchFrame

TEXT: Final = "what was said before is now said a second time"
OTHERS: Final = "nothing of what was said before is said here, number %d of the series"
LENGTH: Final = 8
"""The offsets of a frame."""


def correction(offset: int, request: Request) -> Record:
    return Record("documents", 0, offset, 9, None, None, ((CORRECTION, encoded(request)),))


def inputs(number: int) -> list[Record]:
    """Give what the frame with a number is made of: documents, and what is none."""
    first = number * LENGTH
    return [
        document(first, TEXT),
        document(first + 1, OTHERS % number),
        Record("documents", 0, first + 2, 9, b"d%d" % (first - LENGTH), None),
        correction(first + 3, Allow(f"a{number}", OTHERS % (number + 1), why="so")),
        document(first + 4)._replace(value=b"{"),
        document(first + 5, f"{TEXT} and again"),
        correction(first + 6, Withdraw(f"a{number - 2}")),
        document(first + 7, OTHERS % number),
    ]


@cache
def values(count: int) -> list[bytes]:
    """Give whole frames that follow each other."""
    made = []
    stage = fingerprint()
    stage.adopt({DOCS: 0}, no_watermarks)
    for number in range(count):
        burst = process(stage, inputs(number))
        (record,) = records(burst.records, "app.fingerprints")
        made.append(record.value or b"")
    return made


class Site:
    """*index* and *route* with so many shards, and a log that both read."""

    def __init__(self, path: Path, shards: int) -> None:
        self.metrics = Metrics()
        self.index: Index[BandStore] = index(path, shards)
        self.index.metrics = self.metrics
        self.seats = [TopicPartition("app.shards", shard) for shard in range(shards)]
        self.index.adopt(dict.fromkeys(self.seats, 0), whole_log)
        self.route = route(shards, buffer_bytes=1 << 24)
        topics = ["documents", *(f"app.matches-{shard}" for shard in range(shards))]
        self.route.adopt({TopicPartition(topic, 0): 0 for topic in topics}, whole_log)
        self._answered = 0

    def take(self, log: Sequence[Record], documents: Sequence[Record]) -> list[Outgoing]:
        """Judge records of the log; return what is published of these documents."""
        seats = range(len(self.seats))
        burst = process(self.index, [one for seat in seats for one in seated(log, seat)])
        self.index.committed()
        first, self._answered = self._answered, self._answered + len(burst.records)
        answers = [records(burst.records, f"app.matches-{shard}", first) for shard in seats]
        published = process(self.route, [*documents, *chain.from_iterable(answers)])
        self.route.committed()
        return published.records


def verdicts(published: Sequence[Outgoing]) -> list[tuple[str, bytes | None, object]]:
    """Give what can be told of published records, apart from where they are."""
    return sorted(((one.topic, one.value, one.headers) for one in published), key=repr)


def log_of(parts: Sequence[bytes]) -> list[Record]:
    return [
        Record("app.fingerprints", 0, offset, 5_000, None, value)
        for offset, value in enumerate(parts)
    ]


def leaves(published: Sequence[Outgoing], sent: Sequence[Record]) -> None:
    """Fail unless each document has left once. What was rejected before is published by nobody."""
    documents = {one.value for one in sent if one.value is not None and one.value != b"{"}
    found = [_identity(one) for one in published if one.value is not None and one.value != b"{"]
    assert sorted(found) == sorted(_identity(one) for one in sent if one.value in documents)


def _identity(one: Outgoing | Record) -> str:
    ident: str = msgspec.json.decode(one.value or b"")["id"]
    return ident


EXTREMES: Final = [
    b"", b"\0", b"\xff", b"\0" * 4, b"\xff" * 4, b"\xff" * 8, b"\0" * 7 + b"\x80", b"\0\0\0\x80",
    b"\1\0\0\0\1\0\0\0", b"\xff" * 2, b"\1\0\0\0\0\0\0\x80", b"\x80" * 16,
]  # fmt: skip
NUMBERS: Final = [
    -(1 << 63),
    -1,
    0,
    1,
    LENGTH - 1,
    LENGTH,
    1 << 16,
    1 << 31,
    1 << 32,
    (1 << 64) - 1,
]
IDS: Final = [b"", b"\xff", b"\xc3", b"a\0", b"i" * MOST_ID_BYTES, b"i" * 1_025, b"i" * 70_000]
COLUMNS: Final = ("offsets", "times", "checksums", "shingles", "texts", "sketches", "accounted")


@st.composite
def bytes_like(draw: st.DrawFn, given_bytes: bytes) -> bytes:
    """Draw other bytes for a column: cut, longer, or with extreme values in it."""
    at = draw(st.integers(0, len(given_bytes)))
    extreme = draw(st.sampled_from(EXTREMES) | st.binary(max_size=16))
    way = draw(st.sampled_from(["over", "in", "cut", "all", "twice"]))
    if way == "over":
        return given_bytes[:at] + extreme + given_bytes[at + len(extreme) :]
    if way == "in":
        return given_bytes[:at] + extreme + given_bytes[at:]
    if way == "cut":
        return given_bytes[:at]
    return extreme if way == "all" else given_bytes * 2


@st.composite
def corrections(draw: st.DrawFn, found: Sequence[Correction]) -> list[list[object]]:
    """Draw corrections of which some have another value in a field."""
    made: list[list[object]] = [list(msgspec.structs.astuple(one)) for one in found]
    other: dict[int, st.SearchStrategy[object]] = {
        0: st.sampled_from(NUMBERS),
        1: st.sampled_from([*Kind, -1, 4]),
        2: st.sampled_from(IDS),
        3: st.sampled_from([b"", b"\x80", b"\x81\xa2at\xff", b"\x81\xa1x" + b"\x91" * 2_000]),
        4: st.sampled_from([b"", b"\xff", b"t" * 60_000, "é".encode() * 50_000]),
        5: st.sampled_from(NUMBERS),
        6: st.sampled_from([b"", b"\0" * 127, b"\0" * 128, b"\0" * 129]),
    }
    for one in made:
        if draw(st.booleans()):
            field = draw(st.sampled_from(sorted(other)))
            one[field] = draw(other[field])
    return draw(st.sampled_from([made, made[::-1], made * 2, made[:1]]))


@st.composite
def mutated(draw: st.DrawFn, value: bytes) -> bytes:
    """Draw a frame of which some columns are not as they were, in its place."""
    frame = decode(FingerprintFrame, value, LAYOUT)
    fields: list[Any] = msgspec.msgpack.decode(value[1:])
    names = list(frame.packed().__struct_fields__)
    for name in draw(st.lists(st.sampled_from([*names[4:], "swap"]), min_size=1, max_size=3)):
        at = names.index(name) if name in names else -1
        if name in COLUMNS:
            fields[at] = draw(bytes_like(bytes(fields[at])))
        elif name == "swap":
            one, other = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(COLUMNS))
            places = names.index(one), names.index(other)
            fields[places[0]], fields[places[1]] = fields[places[1]], fields[places[0]]
        elif name == "ids":
            count = len(frame.offsets)
            ids = draw(st.lists(st.sampled_from(IDS[:-1]), min_size=count, max_size=count))
            fields[at] = list(msgspec.structs.astuple(Ids.pack(ids).packed()))
        elif name == "tombstones":
            some = draw(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(IDS[:-1]))))
            packed = Tombstones.pack(0, some).packed()
            fields[at] = [packed.offsets, list(msgspec.structs.astuple(packed.ids))]
        else:
            fields[at] = draw(corrections(frame.corrections))
    return value[:1] + msgspec.msgpack.encode(fields)


@st.composite
def damaged(draw: st.DrawFn, value: bytes) -> bytes:
    """Draw bytes that may be no frame."""
    at = draw(st.integers(0, len(value)))
    given_bytes = draw(st.binary(max_size=8))
    return draw(
        st.sampled_from(
            [value[:at], value[:at] + given_bytes + value[at + len(given_bytes) :], given_bytes]
        )
    )


LOGS: Final = st.tuples(
    *(
        st.one_of(st.just(value), mutated(value), mutated(value), damaged(value))
        for value in values(4)
    )
)


@given(LOGS)
def test_all_shards_carry_out_the_same_or_refuse_it(parts: tuple[bytes, ...]) -> None:
    """What is no frame is beside that whose place it has; what is refused is in its place."""
    log: list[bytes] = []
    refused = nothing = 0
    for value, whole in zip(parts, values(4), strict=True):
        log.append(value)
        try:
            if hand_over(value, LAYOUT) == NO_FRAME:
                nothing += 1
                log.append(whole)
                continue
            one = placed(log_of(log)[-1], topology().layout, 0)
        except FrameError:
            log[-1] = whole  # Of another version or layout: a worker stops at it.
            continue
        expected = decode(FingerprintFrame, whole, LAYOUT)
        if (one.frame.partition, one.frame.start, one.frame.end) != (
            0,
            expected.start,
            expected.end,
        ):
            log[-1] = whole  # Out of its place: a worker stops at it.
            continue
        refused += one.refused is not None
    sent = list(chain.from_iterable(map(inputs, range(4))))
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for shards in (1, 3):
            site = Site(Path(directory, f"live-{shards}"), shards)
            published = site.take(log_of(log), sent)
            leaves(published, sent)
            found.append(verdicts(published))
            counted = site.metrics.value(table.FRAMES_REFUSED, "index") or 0
            assert counted == refused + nothing
            live = site.index.stores()[0].contents().buckets(), site.index.stores()[0].corrections
            site.index.close()
            again: Index[BandStore] = index(Path(directory, f"again-{shards}"), shards)
            again.adopt(dict.fromkeys(site.seats, len(log)), whole_log)
            process(again, [one for seat in range(shards) for one in seated(log_of(log), seat)])
            store = again.stores()[0]
            assert (store.contents().buckets(), store.corrections) == live
            again.close()
    assert found[0] == found[1]


def one_that_names(ident: bytes) -> bytes:
    """Give the second frame, whose allowance has this id."""
    whole = decode(FingerprintFrame, values(2)[1], LAYOUT)
    allowance, *others = whole.corrections
    made = msgspec.structs.replace(allowance, id=ident)
    return encode(msgspec.structs.replace(whole, corrections=(made, *others)))


def test_an_allowance_whose_id_is_too_long_costs_its_frame_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_of([values(3)[0], one_that_names(b"i" * 70_000), values(3)[2]])
    sent = list(chain.from_iterable(map(inputs, range(3))))
    published = [Site(tmp_path / str(shards), shards).take(log, sent) for shards in (1, 3)]
    assert verdicts(published[0]) == verdicts(published[1])
    leaves(published[0], sent)
    rejected = [one for one in published[0] if one.topic == "rejected"]
    places = [int(dict(one.headers)["neardup-error-offset"] or b"") for one in rejected]
    # The document that fingerprint has rejected already is not rejected again.
    assert places == [offset for offset in range(LENGTH, 2 * LENGTH) if offset != LENGTH + 4]
    reasons = {dict(one.headers)["neardup-error-reason"] for one in rejected}
    why = b"its column corrections has an id or a key that is none"
    assert reasons == {b"refused-frame: a damaged FingerprintFrame: " + why}
    said = [one.getMessage() for one in caplog.records if "is refused" in one.getMessage()]
    assert len(said) == 2  # By each of the two.
    assert "offset 1 of the fingerprints is refused" in said[0]
    assert "from offset 8 to 15" in said[0]


def test_whoever_follows_the_log_comes_to_the_same(tmp_path: Path) -> None:
    nothing = [b"", b"{}", b"\x81", b"\x04\x94"]
    log = log_of([values(3)[0], *nothing, one_that_names(b"i" * 70_000), values(3)[2], *nothing])
    site = Site(tmp_path / "live", 1)
    site.take(log, ())
    with closing(BandStore(tmp_path / "warm", {"shard": 0})) as warm:
        judge().keep_warm(0, warm, log)
        live = site.index.stores()[0]
        assert warm.contents().buckets() == live.contents().buckets() != {}
        assert warm.corrections == live.corrections
        assert dict(warm.coverage) == dict(live.coverage)
        assert warm.offset == live.offset == len(log) - len(nothing)
    site.index.close()


@pytest.mark.parametrize("shard", [0, 1, 2])
@pytest.mark.parametrize("beside", [False, True])
def test_an_answer_that_cannot_be_carried_out_costs_its_range_alone(
    tmp_path: Path, shard: int, *, beside: bool
) -> None:
    """What is no answer at all, beside the others, costs nothing."""
    site = Site(tmp_path, 3)
    sent = list(chain.from_iterable(map(inputs, range(3))))
    judged = process(site.index, [o for seat in range(3) for o in seated(log_of(values(3)), seat)])
    answers = [records(judged.records, f"app.matches-{one}") for one in range(3)]
    own = [one.value or b"" for one in answers[shard]]
    fields: list[Any] = msgspec.msgpack.decode(own[1][1:])
    fields[10] = b"\xff" * 2  # counts
    if beside:
        own.insert(1, b"{}")
    else:
        own[1] = own[1][:1] + msgspec.msgpack.encode(fields)
    answers[shard] = [
        Record(f"app.matches-{shard}", 0, offset, 5_000, None, value)
        for offset, value in enumerate(own)
    ]
    published = process(site.route, [*sent, *chain.from_iterable(answers)]).records
    leaves(published, sent)
    rejected = {one.value for one in published if one.topic == "rejected"}
    documents = {sent[place].value for place in range(8, 16) if place not in {10, 11, 14}}
    # Of those that fingerprint has rejected, only the answer of shard 0 could tell.
    documents -= set() if shard == 0 else {b"{"}
    assert rejected - {None} == (set() if beside else documents)
    site.index.close()


class Surprising(JsonFormat):
    """Fails where matches are to be spliced in."""

    def splice(self, value: bytes, matches: bytes, first: bytes) -> bytes:
        del value, matches, first
        raise RecursionError("so deep")


def judged(
    tmp_path: Path, *sent: Record, reader: DocumentFormat | None = None
) -> tuple[Route, Record]:
    """Give *route*, and the answer for some documents."""
    _, ((answer,),) = through(tmp_path, list(sent))
    stage = route(reader=reader)
    stage.adopt({DOCS: 0, TopicPartition("app.matches-0", 0): 0}, whole_log)
    return stage, answer


def test_a_verdict_that_raises_costs_its_document_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent = [document(0), document(1), document(2, OTHERS), document(3)]
    stage, answer = judged(tmp_path, *sent, reader=Surprising(DocumentOptions()))
    published = process(stage, [*sent, answer]).records
    assert [(one.topic, one.value) for one in published] == [
        (topic, sent[place].value)
        for topic, place in (("unique", 0), ("unique", 2), ("rejected", 1), ("rejected", 3))
    ]
    reasons = {dict(one.headers)[REASON] for one in published[2:]}
    assert reasons == {b"poison: RecursionError: so deep"}
    assert len([one for one in caplog.records if one.exc_info]) == 1


@pytest.mark.parametrize("matched", [ALLOWED, 0])
def test_a_verdict_that_fits_no_record_is_rejected(tmp_path: Path, matched: int) -> None:
    """Earlier versions took ids of any length, so an answer may name one that is too long."""
    large = document(1, "word " * 194_000)
    stage, answer = judged(tmp_path, document(0), large, document(2))
    frame = msgspec.structs.replace(
        decode(MatchFrame, answer.value, LAYOUT),
        matched=np.array([1, 2], np.uint32),
        counts=np.ones(2, np.uint16),
        which=np.zeros(2, np.uint16),
        similarities=np.ones(2, np.float32),
        sequences=np.array([matched], np.uint64),
        ids=Ids.pack([b"i" * 60_000]),
    )
    answers = answer._replace(value=encode(frame))
    published = process(stage, [document(0), large, document(2), answers]).records
    topics = {_identity(one): one.topic for one in published}
    other = "unique" if matched == ALLOWED else "duplicate"
    assert topics == {"d0": "unique", "d1": "rejected", "d2": other}
    (reason,) = [dict(one.headers)[REASON] for one in published if one.topic == "rejected"]
    assert (reason or b"").startswith(b"too-large: ")


@given(
    st.lists(st.tuples(st.integers(0, 1_024), st.integers(0, 2)), max_size=200),
    st.integers(1, 1_024),
)
def test_what_is_named_does_not_depend_on_the_shards(
    sized: list[tuple[int, int]], most: int
) -> None:
    """However many matches have long ids, the best of all shards are those of one."""
    ids = [b"i" * size for size, _ in sized]
    kept = ids[:most][: nameable(len(ids[:most]), ids)]
    assert sum(map(len, kept)) <= 1 << 16
    of_shards: list[tuple[int, bytes]] = []
    for shard in range(3):
        own = [(place, ids[place]) for place, (_, at) in enumerate(sized) if at == shard][:most]
        of_shards += own[: nameable(len(own), (ident for _, ident in own))]
    merged = sorted(of_shards)[:most]
    named = merged[: nameable(len(merged), (ident for _, ident in merged))]
    assert [ident for _, ident in named] == kept
