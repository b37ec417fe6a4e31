"""A small corpus in which about half of the documents nearly repeat an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

_SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]


@cache
def near_copies(amount: int, seed: int) -> Sequence[tuple[str, str]]:
    """Give ids and texts: new ones of 1 to 40 words, exact copies, copies with a word changed."""
    random = Random(seed)

    def word() -> str:
        return "".join(random.choices(_SYLLABLES, k=random.randint(1, 4)))

    texts: list[str] = []
    for _ in range(amount):
        draw = random.random()
        if not texts or draw < 0.45:
            texts.append(" ".join(word() for _ in range(random.choice((1, 25, 50, 50)))))
        elif draw < 0.65:
            texts.append(random.choice(texts))
        else:
            words = random.choice(texts).split(" ")
            words[random.randrange(len(words))] = word()
            texts.append(" ".join(words))
    return tuple((f"d{number}", text) for number, text in enumerate(texts))


@cache
def pairs(amount: int, seed: int) -> Sequence[tuple[str, str]]:
    """Give ids and texts: new ones of 30 words, and of some of the latest a copy, or a near one.

    No text has more than one copy, so nothing has to be remembered for longer because of a copy.
    """
    random = Random(seed)
    fresh: list[list[str]] = []
    texts: list[str] = []
    for _ in range(amount):
        if fresh and random.random() < 0.4:
            words = fresh.pop(random.randrange(max(0, len(fresh) - 15), len(fresh)))
            if random.random() < 0.5:
                words[random.randrange(len(words))] = random.choice(_SYLLABLES)
        else:
            words = ["".join(random.choices(_SYLLABLES, k=3)) for _ in range(30)]
            fresh.append(words)
        texts.append(" ".join(words))
    return tuple((f"d{number}", text) for number, text in enumerate(texts))


@cache
def excerpts(amount: int, seed: int) -> Sequence[tuple[str, str]]:
    """Give ids and texts: those of `near_copies`, and of each third one a part of an earlier one.

    The part has more than half of the words, and some words of its own.
    """
    random = Random(seed)
    texts: list[tuple[str, str]] = []
    for number, (ident, copy) in enumerate(near_copies(amount, seed)):
        text = copy
        if number % 3 == 2:
            words = random.choice(texts)[1].split(" ")
            size = random.randint(len(words) * 6 // 10, len(words))
            text = " ".join([*words[:size], *(["of", "its", "own"] * random.randint(0, 2))])
        texts.append((ident, text))
    return tuple(texts)


def slices(texts: Sequence[tuple[str, str]], *sizes: int) -> Iterator[list[tuple[str, str]]]:
    """Cut a corpus; what is left over comes last."""
    first = 0
    for size in sizes:
        yield list(texts[first : first + size])
        first += size
    yield list(texts[first:])
