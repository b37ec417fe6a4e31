"""Documents to feed: real texts where there are some, and seeded near-copies among them."""

import gzip
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

import worker

SCALES: Final = ("", "double", "full")
SCALE: Final = os.environ.get("NEARDUP_TEST_SCALE", "")
"""The scale of a run: with `double`, Hypothesis draws twice as many examples."""

FULL: Final = SCALE == "full"
"""Whether to run at the sizes of the acceptance table, in place of those that CI takes."""

DATA: Final = os.environ.get("NEARDUP_TEST_DATA")
"""A folder with ``docs.jsonl.gz``: an object with ``id`` and ``text`` a line."""

EXCERPTS: Final = 0.1
_LEAST, _MOST = 0.62, 0.76
"""Of a text, what is cut from it: too little to be similar to 0.8, enough to be found."""

_SYLLABLES: Final = [a + b for a in "bdfgklmnprstv" for b in ("a", "e", "i", "o", "u", "an", "or")]


def scaled(size: int, full: int) -> int:
    """Give a size, or the full one."""
    return full if FULL else size


def examples(double: int, full: int | None = None) -> int:
    """Give how many examples Hypothesis draws: half of these without a scale."""
    if SCALE == "double":
        return double
    return (full or double) if FULL else (double + 1) // 2


@lru_cache(1)
def corpus(count: int, seed: int) -> tuple[tuple[str, str], ...]:
    """Give ids and texts: of ten about six new ones, three edited and one exact copy."""
    random = Random(seed)
    fresh = iter(_texts(count, random))
    texts: list[str] = []
    while len(texts) < count:
        draw = random.random()
        if texts and draw < 0.3:
            texts.append(_edited(random.choice(texts), random))
        elif texts and draw < 0.4:
            texts.append(random.choice(texts))
        else:
            text = next(fresh, None)
            texts.append(text if text is not None else _edited(random.choice(texts), random))
    return tuple((f"doc-{seed}-{number}", text) for number, text in enumerate(texts))


def with_excerpts(texts: Sequence[tuple[str, str]], seed: int) -> tuple[tuple[str, str], ...]:
    """Return the same with one text in ten replaced by a part, in one piece, of an earlier one."""
    random = Random(seed)
    found: list[tuple[str, str]] = []
    for ident, text in texts:
        whole = random.choice(found)[1] if found and random.random() < EXCERPTS else None
        found.append((ident, text if whole is None else _cut(whole, random)))
    return tuple(found)


def _cut(text: str, random: Random) -> str:
    size = max(1, int(len(text) * random.uniform(_LEAST, _MOST)))
    first = random.randint(0, len(text) - size)
    return text[first : first + size]


def _texts(count: int, random: Random) -> list[str]:
    samples = sorted((Path(worker.__file__).parent / "samples").glob("*.jsonl.gz"))
    found: list[str] = []
    for path in [Path(DATA) / "docs.jsonl.gz"] if DATA else samples:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found += [json.loads(line)["text"] for line in lines]
    found = [text for text in found if text.strip() and "\0" not in text]
    random.shuffle(found)
    # Samples are few: made-up texts stand in for the rest.
    return found + [_made_up(random) for _ in range(0 if DATA else count - len(found))]


def _made_up(random: Random) -> str:
    words = ("".join(random.choices(_SYLLABLES, k=random.randint(1, 4))) for _ in range(120))
    return " ".join(words)


def _edited(text: str, random: Random) -> str:
    """Change one word, or up to every tenth."""
    words = text.split(" ")
    for _ in range(random.choice((1, 1, 2, max(1, len(words) // 10)))):
        words[random.randrange(len(words))] = "".join(random.choices(_SYLLABLES, k=3))
    return " ".join(words)
