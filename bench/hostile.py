"""The cost of hostile texts: time to fingerprint 10 MB of each kind, compared with plain text.

    python -m bench.hostile

Every text has the same size in UTF-8. The measure is CPU time, and its ratio to that of a plain
text in ASCII. Whoever writes documents can choose each kind without knowing the seed.
"""

from __future__ import annotations

from bench.corpus import short_texts
from bench.fingerprint import seconds
from bench.report import Figures, Target, show
from lsh import Fingerprinter, Parameters

SIZE = 10_000_000  # bytes
QUICK_SIZE = 1_000_000
TURNS = 3
RATIO = 5.0  # the target; letters with marks cost most
RATIO_BY_PARTS = 10.0  # the same with what may have to be looked at by itself: lines, and tags
MARKS = "\u0301" * 15 + "\u0323" * 15
REPEATED = {
    "runs of marks, of 30": f"X{MARKS}",
    "letters with two marks": "E\u0323\u0301",
    "the same, some with three": "E\u0323\u0301" * 20 + "E\u0323\u0301\u0302",
    "letters that are composed anew": "\u01ed\u0323",
    "the same, with two marks": "\u01ed\u0323\u0316",
    "letters with an iota": "\u1f82",
    "letters with an iota and two marks": "\u1f82\u0323\u0301",
    "letters with an iota and two acutes": "\u1f82\u0301\u0301",
    "letters with an iota and a mark": "\u1f82\u0323",
    "letters with an iota alone and a mark": "\u1fb3\u0301",
    "long forms with two marks (U+3356)": "\u3356\u0301\u0323",
    "iotas below, each behind a letter": "x\u0345",
    "the same, behind long forms (U+3356)": "\u3356\u0345",
    "letters that stay apart, with a mark": "\u0958\u0301",
    "marks that are others (U+0341)": "\u0341",
    "marks that decompose to two": "\u0344",
    "the same, each with an iota": "\u0344\u0345",
    "the same, 15 behind each letter": "x" + "\u0344" * 15,
    "vowels of jamo alone": "\u1161",
    "the longest compatibility form (U+FDFA)": "\ufdfa",
    "the longest that isn't cut (U+3316)": "\u3316",
    "the last, each with a mark": "\u3316\u0301",
    "fractions": "\u00bd",
    "what nothing shows": "\u00ad",
    "letters with joiners that stay": "\u0915\u094d\u200d",
    "joiners out of place": "\u200d\u0430",
    "control characters": "\0a",
    "one letter": "a",
    "Chinese, with one mark": "\u4e2d\u6587\u7684\u6587\u672c",
}
PAGES = {
    "tags": "<p>a</p>",
    "tags that don't end": "<a ",
    "elements in each other": "<b>",
    "the same, and ends of paragraphs": "<b>" * 120 + "<td><p></td></p>" * 400,
    "the same, and ends of nothing": "<table><td>" + "<b>" * 120 + "</table></td></i>" * 400,
    "hidden elements": "<p hidden>",
    "styles": "<a style='display:none'>",
    "the same, with quotes": "<a '\"",
    "the same, with values in quotes": "<a x='<b y=\"'\"",
    "elements that HTML doesn't have": "<a-b>",
    "elements that aren't closed": "<script>",
    "elements whose end isn't closed": "<script></script ",
    "comments that aren't closed": "<!--",
    "declarations": "<!doctype>",
    "references": "&amp;",
    "references to nothing": "&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "long numbers": "&#" + "1" * 5_000,
    "addresses": "http://a.b/c ",
    "one address": "http://",
    "users without hosts": "http://a:b",
    "what could be addresses": "www.",
}
LISTED = frozenset(["Home", "News and sport", "All rights reserved.", "\u00a9 Example Ltd."])
LINES = {
    "line breaks": "\n",
    "listed lines": "Home\n",
    "listed lines and others, in turns": "Home\nx\n",
    "letters of a listed line in another order": "".join(
        "All rights reserved."[at:] + "All rights reserved."[:at] + "\n" for at in range(1, 20)
    ),
    "what may be cut (U+3316), 9 on each line": "\u3316" * 9 + "\n",
    "letters with an iota and two acutes, 9 on each line": "\u1f82\u0301\u0301" * 9 + "\n",
    "the same on one line": "\u1f82\u0301\u0301",
}


def texts(size: int) -> dict[str, str]:
    """Return a text of each kind, of about `size` bytes in UTF-8, the plain one first."""
    plain = " ".join(short_texts(size // 150))[:size]
    half = size // 4
    repeated = {
        name: pattern * (size // len(pattern.encode())) for name, pattern in REPEATED.items()
    }
    repeated["Chinese, with one mark"] += "\u0301"
    return {
        "plain": plain,
        "two endless runs of marks": "X" + "\u0301" * half + "\u0323" * half,
        **repeated,
    }


def words(size: int) -> dict[str, str]:
    """Return texts for word shingles, the plain one first."""
    return {
        "plain": " ".join(short_texts(size // 150))[:size],
        "a new word every time": " ".join(f"{at:x}" for at in range(0x10000, 0x10000 + size // 6)),
        "one endless word": "a" * size,
        "words of one letter": "\u4e2d " * (size // 4),
    }


def pages(size: int) -> dict[str, str]:
    """Return texts for the switches that take off what a text is in, the plain one first."""
    return {
        "plain": " ".join(short_texts(size // 150))[:size],
        **{name: pattern * (size // len(pattern)) for name, pattern in PAGES.items()},
    }


def lines(size: int) -> dict[str, str]:
    """Return texts of lines, some of which are left out, the plain one first."""
    repeated = {name: pattern * (size // len(pattern.encode())) for name, pattern in LINES.items()}
    numbers = "\n".join(str(at) for at in range(10**6, 10**6 + size // 8))
    return {
        "plain": "\n".join(short_texts(size // 150))[:size],
        **repeated,
        "lines of numbers": numbers,
    }


def run(*, quick: bool = False) -> list[Target]:
    """Measure each kind, print the medians, and return the targets."""
    size = QUICK_SIZE if quick else SIZE
    targets = []
    for what, parameters, kinds in (
        ("shingles of characters", Parameters(), texts(size)),
        ("shingles of words", Parameters(shingle="word"), words(size)),
        ("pages", Parameters(strip_html=True, reduce_urls=True), pages(size)),
        ("lines left out", Parameters(boilerplate=LISTED), lines(size)),
    ):
        fingerprinter = Fingerprinter(parameters)
        taken = {name: _seconds(fingerprinter, text) for name, text in kinds.items()}
        plain = Figures("plain", taken.pop("plain"), ".2f")
        others = [Figures(name, values, ".2f") for name, values in taken.items()]
        worst = max(others, key=lambda one: one.median)
        show(
            f"CPU seconds for {size / 1e6:g} MB of text, {what}, one core",
            [plain, *others],
            ", ".join(f"{one.name}: {one.median / plain.median:.1f} times" for one in others),
        )
        title = f"hostile text to plain, {what} ({worst.name})"
        by_parts = parameters.boilerplate or parameters.strip_html
        limit = RATIO_BY_PARTS if by_parts else RATIO
        targets.append(Target(title, worst.median / plain.median, limit, at_least=False))
    return targets


def _seconds(fingerprinter: Fingerprinter, text: str) -> list[float]:
    fingerprinter.fingerprint([text[:1_000]])  # The tables are filled on first use.
    return [seconds(lambda: fingerprinter.fingerprint([text])) for _ in range(TURNS)]


if __name__ == "__main__":
    run()
