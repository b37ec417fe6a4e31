"""In what two texts differ, and which of these differences count once the texts are normalised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple, TypeAlias

import msgspec

__all__ = ["Differences", "Normalise", "Span", "differences"]

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
    """

    spans: tuple[Span, ...]
    begins_later: bool
    ends_earlier: bool


def differences(left: str, right: str, normalise: Normalise) -> Differences:
    """Compare two texts word by word.

    A difference counts if to put the right side in place of the left one changes the normal form,
    with all differences before it in place. So some difference counts if and only if the normal
    forms of the compared parts differ. Of long texts, 1,500 tokens are compared, from just before
    the first difference on.
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
    spans = _judged(list(_aligned(a, b, form)), normalise)
    return Differences(tuple(_joined(spans)), begin > 0, end < max(len(one), len(other)))


def _aligned(
    left: Sequence[str], right: Sequence[str], form: Normalise
) -> Iterator[tuple[str, str]]:
    """Yield what stands in the place of one another. Words with equal normal forms meet.

    White space goes with the words around it: to align it as well takes ten times as long.
    """
    one, other = _Words(left, form), _Words(right, form)
    matcher = SequenceMatcher(None, one.forms, other.forms, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            for word, opposite in zip(range(a, b), range(c, d), strict=True):
                yield one.upto(word), other.upto(opposite)
                yield one.through(word), other.through(opposite)
            continue
        apart = one.spaced(a) and other.spaced(c)
        if apart:
            yield one.upto(a), other.upto(c)
        if apart and kind != "replace":  # One side has no words: the white space after them goes.
            yield one.upto(b), other.upto(d)
        else:
            yield one.through(b - 1) if a < b else "", other.through(d - 1) if c < d else ""
    yield one.upto(len(one.forms)), other.upto(len(other.forms))


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


def _judged(pairs: Sequence[tuple[str, str]], normalise: Normalise) -> Iterator[Span]:
    left, right = ("".join(pair[side] for pair in pairs) for side in (0, 1))
    form = normalise(left)
    equal = form == normalise(right)
    made, rest = "", left
    for one, other in pairs:
        rest = rest[len(one) :]
        made += other
        if one == other:
            if one:
                yield Span("same", one, other)
            continue
        before, form = form, form if equal else normalise(made + rest)
        yield Span("aside" if form == before else "counts", one, other)


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
