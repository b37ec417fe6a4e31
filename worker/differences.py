"""In what two texts differ, and which of these differences count once the texts are normalised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

Normalise: TypeAlias = Callable[[str], str]
"""Returns the normal form of a text, as `lsh.Fingerprinter.normalise` does."""

_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|\s{1,80}|[^\W\u3040-\u30ff\u3400-\u9fff]{1,80}|\W"
)
"""A kana or Han character, white space, a word, or any other character."""
_ALIGNED = 1_500
"""The most tokens of a text to align with those of another: the time grows with the product."""
_BEFORE = 36
"""How many tokens are kept before the first difference of long texts."""
_NORMALISED = 32_000_000
"""The most characters to normalise for one comparison."""


class Span(msgspec.Struct, frozen=True):
    """A part of both texts, one after the other.

    ``kind``: ``same``: the two sides are equal. ``counts``: they differ, and so do their normal
    forms there. ``aside``: they differ in what doesn't count, such as case, look-alikes, markup, or
    lines that are left out.
    """

    kind: Literal["same", "aside", "counts"]
    left: str
    right: str


class Differences(NamedTuple):
    """Two texts as spans, which joined are the texts.

    begins_later, ends_earlier: whether a long text has more before the first span, or after the
        last one.
    coarse: whether there are so many differences that neighbours were judged together: each of
        them counts if one of them does.
    """

    spans: tuple[Span, ...]
    begins_later: bool
    ends_earlier: bool
    coarse: bool


def differences(left: str, right: str, normalise: Normalise) -> Differences:
    """Compare two texts word by word.

    A difference counts if to put the right side in place of the left one changes the normal form,
    with all differences before it in place. So some difference counts if and only if the normal
    forms of the compared parts differ. Of long texts, 1,500 tokens are compared, from just before
    the first difference on.

    The work is bounded: it grows with the length of the texts, beside that with the square of 1,500
    tokens, and at most 32 million characters are normalised to judge differences.
    """
    forms: dict[str, str] = {}

    def form(token: str) -> str:
        if token.isspace():
            return " "
        known = forms.get(token)
        if known is None:
            known = forms[token] = normalise(token)
        return known

    one, other = _TOKEN.findall(left), _TOKEN.findall(right)
    begin = 0
    if max(len(one), len(other)) > _ALIGNED:
        pairs = enumerate(zip(one, other, strict=False))
        shorter = min(len(one), len(other))
        first = next((at for at, (a, b) in pairs if a != b and form(a) != form(b)), shorter)
        begin = max(0, first - _BEFORE)
    end = begin + _ALIGNED
    a, b = one[begin:end], other[begin:end]
    aligned = list(_aligned(a, b, form))
    count = sum(left != right for left, right in aligned)
    size = sum(len(left) + len(right) for left, right in aligned)
    together = ceil(count * size / _NORMALISED) or 1
    spans = _judged(aligned, normalise, together)
    more = end < max(len(one), len(other))
    return Differences(tuple(_joined(spans)), begin > 0, more, together > 1)


def _aligned(
    left: Sequence[str], right: Sequence[str], form: Normalise
) -> Iterator[tuple[str, str]]:
    """Yield what stands in the place of one another. Words with equal normal forms meet.

    White space goes with the words around it: to align it as well takes ten times as long.
    """
    one, other = _Words(left, form), _Words(right, form)
    a = c = 0
    for b, d in [*_common(one.forms, other.forms), (len(one.forms), len(other.forms))]:
        if a < b or c < d:
            apart = one.spaced(a) and other.spaced(c)
            if apart:
                yield one.upto(a), other.upto(c)
            if apart and (a == b or c == d):  # One side has no words: the space after them goes.
                yield one.upto(b), other.upto(d)
            else:
                yield one.through(b - 1) if a < b else "", other.through(d - 1) if c < d else ""
        yield one.upto(b), other.upto(d)
        if b < len(one.forms):
            yield one.through(b), other.through(d)
        a, c = b + 1, d + 1


def _common(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Return where a longest common subsequence of two sequences is in both.

    It is that of Wagner and Fischer (1974): a row of the table is one step of numpy. So it takes
    some 30 ms for 1,500 words, whatever these are.
    """
    numbers: dict[str, int] = {}
    a, b = (
        np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int32)
        for words in (left, right)
    )
    lengths = np.zeros((len(a) + 1, len(b) + 1), np.int16)
    for row, word in enumerate(a):
        longer = np.maximum(lengths[row, 1:], lengths[row, :-1] + (b == word))
        np.maximum.accumulate(longer, out=lengths[row + 1, 1:])
    found = []
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1] and lengths[i, j] == lengths[i - 1, j - 1] + 1:
            i, j = i - 1, j - 1
            found.append((i, j))
        elif lengths[i - 1, j] >= lengths[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return found[::-1]


class _Words:
    """The words among tokens, by their normal forms, and how far the tokens are taken."""

    def __init__(self, tokens: Sequence[str], form: Normalise) -> None:
        self._tokens = tokens
        self._at = [at for at, token in enumerate(tokens) if not token.isspace()]
        self.forms = [form(tokens[at]) for at in self._at]
        self._at.append(len(tokens))
        self._taken = 0

    def spaced(self, word: int) -> bool:
        """Return whether white space before a word is left."""
        return self._taken < self._at[word]

    def upto(self, word: int) -> str:
        """Take what is before a word."""
        return self._take(self._at[word])

    def through(self, word: int) -> str:
        """Take what is before a word, and the word."""
        return self._take(self._at[word] + 1)

    def _take(self, end: int) -> str:
        taken = "".join(self._tokens[self._taken : end])
        self._taken = end
        return taken


def _judged(
    pairs: Sequence[tuple[str, str]], normalise: Normalise, together: int
) -> Iterator[Span]:
    """Yield what stands in the place of one another, judged; so many differences at a time."""
    left, right = ("".join(pair[side] for pair in pairs) for side in (0, 1))
    form = normalise(left)
    equal = form == normalise(right)
    made, rest = "", left
    waiting: list[tuple[str, str]] = []  # A difference, and what comes after it.
    for at, (one, other) in enumerate(pairs, 1):
        rest = rest[len(one) :]
        made += other
        if one == other and not waiting:
            if one:
                yield Span("same", one, other)
            continue
        waiting.append((one, other))
        if sum(some != another for some, another in waiting) < together and at < len(pairs):
            continue
        before, form = form, form if equal else normalise(made + rest)
        kind: Literal["aside", "counts"] = "aside" if form == before else "counts"
        for some, another in waiting:
            yield Span("same" if some == another else kind, some, another)
        waiting.clear()


def _joined(spans: Iterator[Span]) -> Iterator[Span]:
    """Join neighbours of one kind, and differences that only white space keeps apart."""
    waiting: list[Span] = []  # One, or a difference and the white space after it.
    for span in spans:
        between = span.kind != "counts" and span.left.isspace() and span.right.isspace()
        if waiting and span.kind == waiting[0].kind:
            waiting = [_together([*waiting, span])]
        elif between and len(waiting) == 1 and waiting[0].kind != "same":
            waiting.append(span)
        else:
            yield from waiting[:1]
            rest = waiting[1:]
            if rest and rest[0].kind != span.kind:
                yield from rest
                rest = []
            waiting = [_together([*rest, span])]
    yield from waiting


def _together(spans: Sequence[Span]) -> Span:
    left = "".join(span.left for span in spans)
    return Span(spans[0].kind, left, "".join(span.right for span in spans))
