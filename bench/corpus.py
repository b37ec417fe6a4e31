"""The documents that benchmarks feed: real texts if available, otherwise synthetic ones.

NEARDUP_BENCH_DATA may name a folder with ``docs.jsonl.gz`` files (anywhere below it) whose
objects have a ``text``. If there are too few documents, they are repeated with a random word
after about every third word. Two versions of a text then have a similarity of about 0.5: they
aren't near duplicates, but similar enough that the index has to compare them. About every
tenth document is a near copy of an earlier one.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

_SEED = 20_240_601
_REPEATED = 0.1
_INSERTED = 1 / 3
_REMEMBERED = 5_000
_LENGTHS = range(500, 4_000)
_SYLLABLES = (  # noqa: SIM905 -- a list of quotes is no easier to read
    "ba be bi bo ca ce ci co da de di do fa fe fi ga ge go ha he ho ja ka ke ki la le li lo lu ma"
    " me mi mo na ne ni no nu pa pe pi po ra re ri ro ru sa se si so su ta te ti to tu va ve vi wa"
    " we wi ya za ing ion ter ent con pro est per tra ver com"
).split()


def source() -> str:
    """Return where the texts come from."""
    return "NEARDUP_BENCH_DATA" if os.environ.get("NEARDUP_BENCH_DATA") else "synthetic text"


def texts(wanted: int) -> Iterator[str]:
    """Yield ``wanted`` documents of about 0.9 to 2 kB, the same ones every time."""
    chance = random.Random(_SEED)
    remembered: list[str] = []
    for fresh in islice(_fresh(chance), wanted):
        if remembered and chance.random() < _REPEATED:
            yield _touched(chance.choice(remembered), chance)
            continue
        if len(remembered) < _REMEMBERED:
            remembered.append(fresh)
        else:
            remembered[chance.randrange(_REMEMBERED)] = fresh
        yield fresh


def short_texts(wanted: int) -> Iterator[str]:
    """Yield ``wanted`` texts of about 200 characters; one in ten is a near copy."""
    chance = random.Random(_SEED)
    words = _vocabulary(chance)
    last = ""
    for _ in range(wanted):
        if last and chance.random() < _REPEATED:
            yield f"{last} {chance.choice(words)}"
            continue
        last = " ".join(words[int(len(words) * chance.random() ** 3)] for _ in range(28))
        yield last


def _fresh(chance: random.Random) -> Iterator[str]:
    folder = os.environ.get("NEARDUP_BENCH_DATA")
    if not folder:
        yield from _synthetic(chance)
        return
    found = list(_read(Path(folder)))
    if not found:
        raise SystemExit(f"NEARDUP_BENCH_DATA: no docs.jsonl.gz with texts in {folder}")
    words = sorted({word for text in found[:2_000] for word in text.split()})
    for turn in count():
        for text in found:
            yield _varied(text, words, chance) if turn else text


def _read(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("**/docs.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                text = json.loads(line)["text"]
                if len(text) in _LENGTHS:
                    yield text


def _varied(text: str, words: list[str], chance: random.Random) -> str:
    varied = []
    draw = chance.random
    for word in text.split(" "):
        varied.append(word)
        if draw() < _INSERTED:
            varied.append(words[int(draw() * len(words))])
    return " ".join(varied)


def _touched(text: str, chance: random.Random) -> str:
    """Return a near duplicate of a text: one word is replaced."""
    words = text.split(" ")
    words[chance.randrange(len(words))] = "amended"
    return " ".join(words)


def _vocabulary(chance: random.Random) -> list[str]:
    """Return synthetic words, the most frequent ones first."""
    distinct = dict.fromkeys(
        "".join(chance.choices(_SYLLABLES, k=1 + chance.randrange(4))) for _ in range(30_000)
    )
    return list(distinct)


def _synthetic(chance: random.Random) -> Iterator[str]:
    words = _vocabulary(chance)
    while True:
        size = chance.randrange(130, 290)
        yield " ".join(words[int(len(words) * chance.random() ** 4)] for _ in range(size))
