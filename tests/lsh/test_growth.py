"""What a hostile text costs grows with its length alone: counted as work, not as time."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import combining

import pytest

import lsh
from lsh import PRESETS, Fingerprinter, Parameters, joining
from lsh.neighbours import Compositions
from tests.support.breadth import thinned

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Codes = NDArray[np.uint32]
    Marks = NDArray[np.uint8]
    Places = NDArray[np.int64]
    Stays = NDArray[np.bool_]

BYTES = 6_000
GROWTH = 4
SLACK = 1.15  # of what grows with the text
CONSTANT = 2_000  # calls that every text costs, of any length
_OF_CLASSES = {combining(chr(point)): chr(point) for point in range(0x300, 0x800)}
BY_CLASS = "".join(mark for number, mark in sorted(_OF_CLASSES.items()) if number)
"""A mark of each class, by class."""
OWN = str(Path(lsh.__file__).parent)


def repeated(pattern: str) -> Callable[[int], str]:
    return lambda size: pattern * (size // len(pattern.encode("utf-8", "surrogatepass")))


def counted(pattern: str) -> Callable[[int], str]:
    """Return texts in which each repetition differs: the pattern, with a number in it."""
    width = len(pattern.format(10_000).encode())
    return lambda size: "".join(pattern.format(10_000 + at) for at in range(size // width))


FAMILIES: dict[str, Callable[[int], str]] = {
    "two runs of marks": lambda size: "x" + "\u0301" * (size // 4) + "\u0323" * (size // 4),
    "marks in falling order": lambda size: "X" + "\u0345\u0301\u0323\u0334" * (size // 8),
    "marks that decompose to two": repeated("\u0344"),
    "starters that decompose to marks": repeated("\u0f73\u0f75"),
    "half-width sound marks": repeated("\uff9e"),
    "marks outside the basic plane": repeated("\U0001d165\U0001d16d"),
    "runs just below the limit": repeated("X" + "\u0301" * 15 + "\u0323" * 15),
    "runs that look long enough": repeated("X" + "\u0301" * 7 + "\u0323" * 7),
    "joiners between marks": repeated("\u0301\u034f"),
    "the longest compatibility form": repeated("\ufdfa"),
    "the longest that isn't cut": repeated("\u3316"),
    "the longest, with a mark": repeated("\u3316\u0301"),
    "fractions": repeated("\u00bd"),
    "what case folding decomposes": repeated("\u0390\u1fb7\u0130"),
    "letters with an iota and a mark": repeated("\u1f82\u0323"),
    "marks of rising class": lambda size: f"X{BY_CLASS}" * (size // (1 + 2 * len(BY_CLASS))),
    "jamo": repeated("\u1100\u1161\u11a8"),
    "vowels of jamo alone": repeated("\u1161"),
    "one letter": repeated("a"),
    "one letter, and one mark": lambda size: "a" * (size - 2) + "\u0301",
    "white space": repeated(" \u3000\u2028"),
    "a space behind each letter": repeated("\u4e2d "),
    "different words": counted("{:x} "),
    "one long word": counted("{:x}\u0301"),
    "many shingles": counted("{:o}"),
    "lone surrogates": repeated("\ud800\u0301"),
    "what nothing shows": repeated("\u00ada"),
    "control characters": repeated("\0a"),
    "joiners that stay": repeated("\u0915\u094d\u200d"),
    "joiners out of place": repeated("\u200d\u0430"),
    "one joiner behind many marks": lambda size: "\u0628" + "\u0901" * (size // 3) + "\u200c\u0628",
    "strokes": repeated("f\u0336"),
    "look-alikes": repeated("\u0430\u0455\U00010198"),
    "symbols between letters": repeated("a.\U0001f600"),
    "one stretch of symbols": lambda size: "a" + "." * size + "b",
    "letters that are composed anew": repeated("\u01ed\u0323"),
    "letters with an iota": repeated("\u1f82"),
}


class Work:
    """The calls that a fingerprint makes, and what it has joined.

    Attributes:
        calls: how often it has called a function.
        joined: how many code points were in sequences, once decomposed.
        longest: the most non-starters in a row among them: what is sorted together.
        tried: how many compositions were looked up.
        peak: the most memory that it had at once, in bytes.
    """

    def __init__(self, text: str, kind: Literal["char", "word"], **switches: bool) -> None:
        """Fingerprint `text`, as the second one of its kind, so that no table is filled."""
        self.calls = self.joined = self.longest = self.tried = 0
        more: dict[str, Any] = dict(switches)
        fingerprinter = Fingerprinter(Parameters(shingle=kind, **more))
        fingerprinter.fingerprint([text])
        compose, wholes = joining._compose, Compositions.wholes

        def composing(codes: Codes, marks: Marks, begins: Places, afters: Places) -> Stays:
            self.joined += len(codes)
            self.longest = max(self.longest, int((afters - begins).max(initial=1)) - 1)
            return compose(codes, marks, begins, afters)

        def looking_up(self_: Compositions, firsts: Codes, seconds: Codes) -> Codes:
            self.tried += len(firsts)
            return wholes(self_, firsts, seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(joining, "_compose", composing)
            patch.setattr(Compositions, "wholes", looking_up)
            fingerprinter.fingerprint([text])
        sys.setprofile(self._count)
        fingerprinter.fingerprint([text])
        sys.setprofile(None)
        tracemalloc.start()
        fingerprinter.fingerprint([text])
        self.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        self.calls += event in {"call", "c_call"} and frame.f_code.co_filename.startswith(OWN)


@pytest.mark.parametrize("kind", ["char", "word"])
@pytest.mark.parametrize("family", thinned(FAMILIES))
def test_the_work_grows_with_the_length(family: str, kind: Literal["char", "word"]) -> None:
    small, large = (Work(FAMILIES[family](size), kind) for size in (BYTES, GROWTH * BYTES))
    assert large.longest <= 30
    assert large.joined <= GROWTH * SLACK * small.joined + CONSTANT
    assert large.tried <= GROWTH * SLACK * small.tried + CONSTANT
    assert large.calls <= GROWTH * SLACK * small.calls + CONSTANT
    assert large.peak <= GROWTH * SLACK * small.peak


@pytest.mark.parametrize("family", thinned(FAMILIES))
def test_the_work_grows_with_the_length_with_the_preset_too(family: str) -> None:
    preset = PRESETS["comments"]
    small, large = (
        Work(FAMILIES[family](size), "char", **preset) for size in (BYTES, GROWTH * BYTES)
    )
    assert large.calls <= GROWTH * SLACK * small.calls + CONSTANT
    assert large.peak <= GROWTH * SLACK * small.peak


@pytest.mark.parametrize("family", FAMILIES)
def test_no_text_is_joined_from_more_than_its_share(family: str) -> None:
    text = FAMILIES[family](BYTES)
    size = len(text.encode("utf-8", "surrogatepass"))
    form = Fingerprinter(Parameters()).normalise(text)
    assert len(form) <= 1.25 * size + 32
    work = Work(text, "char")
    assert work.joined <= 2 * size
    assert work.tried <= 2 * size


def test_a_mark_is_joined_with_its_neighbour_alone() -> None:
    chinese = "\u4e2d" * 2_000
    assert Work(f"{chinese}\u0301{chinese}", "char").joined == 0
    assert Work(f"{chinese}E\u0323\u0301{chinese}", "char").joined == 3
