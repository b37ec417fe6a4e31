"""Allowances are made within bounds, and corrections are listed, the latest first."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.embedded import Run
from worker.corrections.request import Allow, CorrectionError, decoded, encoded
from worker.corrections.service import Corrector, MadeList, listed
from worker.corrections.state import Allowance, Corrections, Erasure
from worker.generations.plan import Plan
from worker.wire.corrections import MOST_CHARACTERS, Note

NOTE = msgspec.msgpack.encode(Note(7, "ada", "so", "the text", "0-1"))
HELD = Corrections(
    tuple(
        Allowance(ident, exact, 1, b"", NOTE, since)
        for ident, exact, since in ((b"a", False, 10), (b"b", True, 30))
    ),
    (Erasure(b"#1", NOTE, 20),),
)


def page(skipped: int, limit: int, window_ms: int | None = None) -> MadeList:
    return listed(
        HELD, skipped, limit, window_ms=window_ms, is_forgotten=lambda one: one.id == b"a"
    )


@pytest.mark.parametrize(
    ("skipped", "limit", "ids", "after"),
    [
        (0, 2, ["b", "#1"], "2"),
        (0, 3, ["b", "#1", "a"], None),
        (2, 5, ["a"], None),
        (1, 1, ["#1"], "2"),
    ],
)
def test_the_latest_come_first(skipped: int, limit: int, ids: list[str], after: str | None) -> None:
    found = page(skipped, limit)
    assert ([one.id for one in found.corrections], found.next) == (ids, after)
    assert (found.count, found.allowances) == (3, 2)


def test_an_allowance_ends_and_hides_the_text_of_a_forgotten_document() -> None:
    b, erasure, a = page(0, 3, window_ms=100).corrections
    assert (b.kind, b.until, b.exact, b.text) == ("allow", 130, True, "the text")
    assert (a.kind, a.until, a.exact, a.text) == ("allow", 110, False, "")
    assert (erasure.kind, erasure.until, erasure.exact) == ("forget", None, False)
    assert erasure.source == "0-1"


def test_the_longest_id_and_text_are_allowed(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, shards=1)
    text = "x" * MOST_CHARACTERS
    with Corrector.of(run.settings, Plan.of(run.settings), run.bus) as corrector:
        request = corrector.allow(text, ident="i" * 16)
    assert decoded(encoded(request), 16) == request
    with pytest.raises(CorrectionError, match="has 16 bytes"):
        decoded(encoded(request), 15)
    with pytest.raises(CorrectionError, match="50,001 characters"):
        decoded(encoded(Allow("a", text + "x")))
