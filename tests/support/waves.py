"""Texts that whoever floods an index would send: copies, variants of a template, decoys."""

from collections.abc import Iterator
from random import Random

WORDS = 120


def distinct(random: Random, words: int = WORDS) -> str:
    """Return a text that is unlike any other."""
    return " ".join(_word(random) for _ in range(words))


def _word(random: Random) -> str:
    return f"{random.getrandbits(32):08x}"


def changed(text: str, words: int, random: Random) -> str:
    """Return a text of which so many words are others."""
    parts = text.split(" ")
    for place in random.sample(range(len(parts)), words):
        parts[place] = _word(random)
    return " ".join(parts)


def in_turns(texts: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield ids and texts: the first of each kind, then the second of each, and so on."""
    for number in range(max(map(len, texts.values()), default=0)):
        for kind, some in texts.items():
            if number < len(some):
                yield f"{kind}-{number}", some[number]
