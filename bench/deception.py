"""Disguised copies of comments: how many are found, and how many comments are wrongly merged.

    python -m bench.deception

The last tricks are those of the web: other links, the page of a text, and markup that a browser
doesn't show, in words and between them. They are found with the preset ``news``.

Each trick leaves a comment readable. A disguised copy is found if a band or the exact text
leads from it to its original, and the estimated similarity reaches the threshold. A comment is
wrongly merged if it comes out as a duplicate, but the exact similarity of each comment that it
matches is more than .1 below the threshold. That is the similarity without white space and
without punctuation between letters; look-alikes and digits count as they are.

NEARDUP_BENCH_DATA may name a folder with ``docs.jsonl.gz``, objects with a ``text``. Without it,
a few comments that are written here are used.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import cycle
from pathlib import Path

import numpy as np

from bench.report import Target, console
from lsh import PRESETS, Fingerprinter, Fingerprints, Parameters, normalise, similarity

COMMENTS = 1_000
FOUND = 0.95  # the target: of the copies of each trick
MERGED = 0.001  # the target: more wrong merges than without the preset, of all comments
PLAIN = Parameters()
PRESET = Parameters(**PRESETS["comments"])
NEWS = Parameters(**PRESETS["news"])
TOGETHER = Parameters(drop_symbols=True, join_letters=True)
TOLERANCE = 0.1

SAMPLES = (
    "Check out my new channel, I post a cover of a song every week!",
    "Get 500 free followers today at best-followers.example/join (works in 2 minutes)",
    "This song reminds me of the summer of 2009, best time of my life",
    "I made 3,000 dollars from home last month. Ask me how: call 555 0134",
    "Please like this comment so that everybody can see it, thank you so much",
    "Who is still listening to this masterpiece in 2024? Thumbs up if you are",
    "Subscribe to my channel and I will subscribe to yours, I promise",
    "The guitar at 2:45 is the best thing that I have heard in years",
    "Free gift cards for the first 100 people, only this weekend, hurry up",
    "Can somebody tell me the name of the dancer in the red dress?",
)

_LOOKS = str.maketrans(
    "aceiopsxyABCEHIKMOPTXY",
    "\u0430\u0441\u0435\u0456\u043e\u0440\u0455\u0445\u0443"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u041a\u041c\u041e\u0420\u0422\u0425\u03a5",
)
_DIGITS = str.maketrans("0123456789", "9517362840")


def _behind_letters(marks: str) -> Callable[[str], str]:
    """Return a trick that puts these, in turn, behind each letter."""

    def trick(text: str) -> str:
        turn = cycle(marks)
        return "".join(char + next(turn) if char.isalpha() else char for char in text)

    return trick


def _between_letters(marks: Sequence[str]) -> Callable[[str], str]:
    """Return a trick that puts these, in turn, between two letters of a word."""

    def trick(text: str) -> str:
        turn = cycle(marks)
        pairs = zip(text, text[1:] + " ", strict=True)
        return "".join(
            char + next(turn) if char.isalpha() and after.isalpha() else char
            for char, after in pairs
        )

    return trick


def _spaced(text: str) -> str:
    return "   ".join(" ".join(word) for word in text.split())


def _mathematical(text: str) -> str:
    return "".join(
        chr(ord(char) - ord("a") + 0x1D41A) if "a" <= char <= "z" else char for char in text
    )


TRICKS: dict[str, Callable[[str], str]] = {
    "zero-width spaces and joiners": _between_letters("\u200b\u200c\u200d\u2060\ufeff"),
    "soft hyphens": _between_letters("\u00ad"),
    "variation selectors": _behind_letters("\ufe0e\ufe0f\U000e0100"),
    "controls of direction": _behind_letters("\u200e\u202a\u202c\u2066\u2069"),
    "control characters": _between_letters("\0\x01\x1b\x7f\x80"),
    "strokes through letters": _behind_letters("\u0336\u0335\u0338\u0337"),
    "mathematical letters": _mathematical,
    "Cyrillic and Greek letters": lambda text: text.translate(_LOOKS),
    "emoji between letters": _between_letters("\U0001f600\U0001f525\u2764\u2b50"),
    "punctuation between letters": _between_letters(".-_*"),
    "letters spaced out": _spaced,
    "other digits": lambda text: text.translate(_DIGITS),
}


def _page(text: str) -> str:
    """Return a page with the text in it: some words in bold, lines as paragraphs.

    A text that is HTML, or looks like it, is left as it is.
    """
    if set("<&") & set(text):
        return text
    words = [
        f"<b>{word}</b>" if at % 5 == 0 else word for at, word in enumerate(escape(text).split(" "))
    ]
    body = " ".join(words).replace("\n", '</p>\n<p class="text">')
    return (
        "<!DOCTYPE html><html><head><style>p { margin: 1em }</style>"
        f'<script>let shown = 1 < 2;</script></head><body><p class="text">{body}</p></body></html>'
    )


def _linked(text: str) -> str:
    """Return the text with other links to the same host in place of those that it has."""
    return re.sub(r"(https?://[^\s/<]+)[^\s<]*", r"\1/c/8f3a9d21?from=feed&session=5502117", text)


def _escaped(trick: Callable[[str], str]) -> Callable[[str], str]:
    """Return a trick for texts with nothing in them that is markup."""
    return lambda text: trick(text) if not set("<&") & set(text) else text


def _in_words(marks: Sequence[str]) -> Callable[[str], str]:
    return _escaped(_between_letters(marks))


def _between_words(hidden: str) -> Callable[[str], str]:
    return _escaped(lambda text: text.replace(" ", f" {hidden}"))


def _referred(form: str) -> Callable[[str], str]:
    """Return a trick that writes the letters that begin words by their numbers."""
    return _escaped(lambda text: re.sub(r"\b[A-Za-z](?=[g-z])", lambda at: _number(form, at), text))


def _number(form: str, letter: re.Match[str]) -> str:
    return form.format(ord(letter[0]))


OF_MARKUP: dict[str, Callable[[str], str]] = {
    "references without semicolons": _referred("&#{}"),
    "the same, hexadecimal": _referred("&#x{:x}"),
    "references with many digits": _referred("&#{:012};"),
    "end tags without names": _in_words(["</>", "</ x>", "</1>"]),
    "declarations": _in_words(["<!x>", "<!doctype x>", "<!>"]),
    "instructions": _in_words(["<?x>", "<?>", "<?xml x?>"]),
    "comments that end oddly": _in_words(["<!-->", "<!--->", "<!-- x --!>", "<!-- > -->"]),
    "sections of characters": _in_words(["<![CDATA[x>", "<![CDATA[ ]]>"]),
    "unknown elements": _in_words(["<x>", "</x>", "<zz y=1>", "<o:p>", "<me@example.org>"]),
    "custom elements": _in_words(["<a-b>", "</a-b>", "<c-d/>"]),
    "elements that break no line": _in_words(["<slot></slot>", "<img>", "<wbr>", "<meta>"]),
    "elements in no table": _in_words(["<td>", "<tr>", "</td>"]),
    "ends of nothing": _in_words(["</div>", "</li>", "</section>"]),
    "scripts in words": _in_words(["<script>x</script>", "<style>x</style>", "<svg/>"]),
    "ruby with readings": _in_words(["<ruby><rp>(</rp><rt>read</rt></ruby>"]),
    "words that are hidden": _between_words('<span hidden="">of another <b>text</b></span>'),
    "the same, by a style": _between_words("<i style='color:red; Display: none'>of another</i>"),
    "the same, in templates": _between_words("<template>of another</template>"),
    "the same, in drawings": _between_words("<svg><title>another</title>text</svg>"),
    "hidden paragraphs": _between_words("<div><span hidden>of another</div>"),
    "text in a drawing": _escaped(lambda text: f"<svg><text>{text}</text></svg>"),
    "a tag without an end": _escaped(lambda text: f"<p>{text}</p><x {text[::-1] * 9}"),
    "a comment without an end": _escaped(lambda text: f"<p>{text}</p><!-- {text[::-1] * 9}"),
}
OF_THE_WEB: dict[str, Callable[[str], str]] = {
    "the page of a text": _page,
    "other links": _linked,
    **OF_MARKUP,
}


def comments(wanted: int) -> list[str]:
    """Return different comments, the first of each."""
    folder = os.environ.get("NEARDUP_BENCH_DATA")
    texts = _read(Path(folder)) if folder else iter(SAMPLES)
    first = {normalise(text, PRESET): text for text in reversed(list(texts))}
    return [text for form, text in reversed(first.items()) if form][:wanted]


def _read(folder: Path) -> Iterator[str]:
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def share_found(texts: list[str], trick: Callable[[str], str], parameters: Parameters) -> float:
    """Return the share of disguised copies that are found, of the texts that the trick changes."""
    changed = [(text, trick(text)) for text in texts if trick(text) != text]
    fingerprinter = Fingerprinter(parameters)
    originals = fingerprinter.fingerprint([text for text, _ in changed])
    copies = fingerprinter.fingerprint([copy for _, copy in changed])
    met = (originals.keys == copies.keys).any(axis=1)
    alike = [
        similarity(one, other[None])[0] >= parameters.threshold
        for one, other in zip(originals.sketches, copies.sketches, strict=True)
    ]
    return float(np.mean(met & np.array(alike))) if changed else 1.0


def wrongly_merged(texts: list[str], parameters: Parameters) -> list[tuple[str, list[str]]]:
    """Return the texts that match earlier ones, none of which is similar; and those."""
    prints = Fingerprinter(parameters).fingerprint(texts)
    sets = [_shingles(normalise(text, TOGETHER)) for text in texts]
    least = parameters.threshold - TOLERANCE
    found = []
    for row in range(1, len(texts)):
        matched = _matches(prints, row, parameters)
        if matched and all(_jaccard(sets[row], sets[one]) < least for one in matched):
            found.append((texts[row], [texts[one] for one in matched]))
    return found


def _matches(prints: Fingerprints, row: int, parameters: Parameters) -> list[int]:
    """Return the earlier rows that a row matches."""
    met = np.flatnonzero((prints.keys[:row] == prints.keys[row]).any(axis=1))
    alike = similarity(prints.sketches[row], prints.sketches[met]) >= parameters.threshold
    matched: list[int] = met[alike].tolist()
    return matched


def _shingles(text: str) -> set[str]:
    return {text[at : at + 5] for at in range(max(len(text) - 4, 1))}


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)


def run(*, quick: bool = False) -> list[Target]:
    """Measure each trick, print the shares, and return the targets."""
    texts = comments(100 if quick else COMMENTS)
    source = "NEARDUP_BENCH_DATA" if os.environ.get("NEARDUP_BENCH_DATA") else "samples"
    console.print(f"\n[bold]Disguised copies found, of {len(texts):,} comments ({source})")
    console.print(f"{'trick':34}{'default':>9}{'comments':>10}")
    worst = 1.0
    for name, trick in TRICKS.items():
        default, preset = (share_found(texts, trick, one) for one in (PLAIN, PRESET))
        console.print(f"{name:34}{default:>9.1%}{preset:>10.1%}")
        worst = min(worst, preset)
    default_merged, preset_merged = (len(wrongly_merged(texts, one)) for one in (PLAIN, PRESET))
    console.print(f"{'wrongly merged':34}{default_merged:>9}{preset_merged:>10}")
    console.print(f"\n{'trick':34}{'default':>9}{'news':>10}")
    for name, trick in OF_THE_WEB.items():
        default, preset = (share_found(texts, trick, one) for one in (PLAIN, NEWS))
        console.print(f"{name:34}{default:>9.1%}{preset:>10.1%}")
    console.print(f"{'wrongly merged':34}{default_merged:>9}{len(wrongly_merged(texts, NEWS)):>10}")
    of_markup = min(share_found(texts, trick, NEWS) for trick in OF_MARKUP.values())
    more = (preset_merged - default_merged) / len(texts)
    return [
        Target("disguised copies found, worst trick", worst, FOUND, at_least=True, form=".3f"),
        Target("found, worst trick with markup", of_markup, FOUND, at_least=True, form=".3f"),
        Target("more wrong merges", more, MERGED, at_least=False, form=".4f"),
    ]


if __name__ == "__main__":
    run()
