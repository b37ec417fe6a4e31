"""What a hostile text costs grows with its length alone.

`bench.hostile` measures it. Here, texts of megabytes end at all: what took the square of their
length would take hours.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unicodedata import combining

import pytest

from lsh import PRESETS, Fingerprinter, Parameters

BYTES = 30_000
MEMORY = 2_000_000  # bytes of a text that is measured
TIMES = 60  # bytes of memory for each
KINDS = [Parameters(), Parameters(shingle="word"), Parameters(**PRESETS["comments"])]
_OF_CLASSES = {combining(chr(point)): chr(point) for point in range(0x300, 0x800)}
BY_CLASS = "".join(mark for number, mark in sorted(_OF_CLASSES.items()) if number)
"""A mark of each class, by class."""
ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("family", FAMILIES)
def test_no_form_has_more_than_its_share(family: str) -> None:
    text = FAMILIES[family](BYTES)
    size = len(text.encode("utf-8", "surrogatepass"))
    form = Fingerprinter(Parameters()).normalise(text)
    assert len(form) <= 1.25 * size + 32


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in another unit")
def test_no_text_takes_more_memory_than_its_share() -> None:
    # In a process of its own, whose memory nothing else has raised.
    command = [sys.executable, "-m", "tests.lsh.test_growth"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    grown = {
        name: int(rise)
        for name, _, rise in (line.partition("\t") for line in done.stdout.splitlines())
    }
    assert set(grown) == set(FAMILIES)
    assert sum(grown.values()) <= TIMES * MEMORY


def main() -> None:
    """Write by how many bytes each family raises the most memory that this process has had."""
    fingerprinters = [Fingerprinter(one) for one in KINDS]
    for fingerprinter in fingerprinters:
        fingerprinter.fingerprint(["\u00e9 a"])
    for name, family in FAMILIES.items():
        text = family(MEMORY)
        before = most_memory()
        for fingerprinter in fingerprinters:
            fingerprinter.fingerprint([text])
        sys.stdout.write(f"{name}\t{most_memory() - before}\n")


def most_memory() -> int:
    """Return the most memory in bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


if __name__ == "__main__":
    main()
