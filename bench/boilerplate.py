"""Pages of many sites, each with a menu, a footer and a cookie banner around its text.

    python -m bench boilerplate

A page's text is that of a document; its frame is that of one of 60 sites, of which some have many
pages and most have few. The list of lines to leave out is learnt from the pages of one half of the
documents, and used on the other half. There, a fifth of the texts come again on another site. A
copy is found if it matches the page of the same text. A page is wrongly merged if it comes out as a
duplicate, but the exact similarity of its text to each text that it matches is more than .1 below
the threshold.

The second table is of the texts by themselves, with the lines that are frequent in these: texts
that become duplicates with the list or are none any more, and those wrongly merged.

NEARDUP_BENCH_DATA may name a folder with ``docs.jsonl.gz``, objects with a ``text``. Without it,
the security advisories that come with neardup are used.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.report import Target, console
from lsh import Fingerprinter, Index, Parameters, exact_jaccard, repeated_lines
from lsh.text import lines_of

DOCUMENTS = 6_000
SITES = 60
PLAIN = Parameters()
LEAST = PLAIN.threshold - 0.1  # below that, a merge is wrong
FOUND = 0.85  # the target: of the texts that come again
SAMPLES = Path(__file__).parents[1] / "worker" / "samples" / "pypa_advisories.jsonl.gz"
LISTS = ((0.001, 5), (0.001, 10), (0.005, 10), (0.02, 10))
"""Shares and least numbers of documents, as `repeated_lines` takes them."""
DEFAULT = LISTS[0]

_SECTIONS = (
    "Home", "News", "Politics", "Business", "Sport", "Culture", "Science", "Health", "Travel",
    "Weather", "Opinion", "Video", "Podcasts", "Archive", "Subscribe", "Sign in", "Search",
)  # fmt: skip
_NAMES = ("Daily", "Evening", "Sunday")
_FOOTER = (
    "\u00a9 2024 {name} Media Ltd. All rights reserved. Registered in England no. {number}.",
    "{name} is not responsible for the content of external sites.",
    "About {name} \u00b7 Contact us \u00b7 Advertise with {name} \u00b7 Jobs",
    "Terms of use | Privacy policy of {name} | Cookie settings | Accessibility",
    "Get the best of {name} in your inbox every morning: sign up for our newsletter.",
    "Follow {name} on every network. Call our newsroom at 020 7946 {number}.",
)
_BANNER = (
    "We and our partners use cookies to store and access information on your device.",
    "Accept all",
    "Manage your choices",
    "Share this article",
)


class Page(NamedTuple):
    """A text, and the page that has it."""

    text: str
    page: str


class Seen(NamedTuple):
    """What an index makes of pages: shares of the copies, and of all pages."""

    found: float
    merged: float


def frames(random: Random) -> list[tuple[str, str]]:
    """Return what stands before and behind the text on the pages of each site."""
    found = []
    for site in range(SITES):
        name, number = f"The {_NAMES[site % 3]} {site:02}", 1_000 + 7 * site
        menu = "\n".join(random.sample(_SECTIONS, 9))
        lines = [line.format(name=name, number=number) for line in _FOOTER]
        footer = "\n".join([*_BANNER, *random.sample(lines, 5)])
        found.append((f"{name}\n{menu}\n", f"\n{footer}\n"))
    return found


def pages(
    texts: list[str], *, copied: bool, random: Random, sites: list[tuple[str, str]]
) -> list[Page]:
    """Return a page of each text, and those of copies."""
    weights = [1 / (rank + 1) for rank in range(SITES)]
    made = []
    for at, text in enumerate(texts):
        times = 2 if copied and at % 5 == 0 else 1
        chosen: set[int] = set()
        while len(chosen) < times:
            chosen.add(random.choices(range(SITES), weights)[0])
        made += [Page(text, sites[site][0] + text + sites[site][1]) for site in sorted(chosen)]
    random.shuffle(made)
    return made


def seen(made: list[Page], parameters: Parameters) -> Seen:
    """Judge pages in their order."""
    index = Index(parameters)
    hits = index.add_many((number, one.page) for number, one in enumerate(made))
    earlier: dict[str, int] = {}
    copies = found = merged = 0
    for number, one in enumerate(made):
        matched = [int(hit.id) for hit in hits.get(number, [])]
        if one.text in earlier:
            copies += 1
            found += any(made[other].text == one.text for other in matched)
        earlier.setdefault(one.text, number)
        if matched and all(exact_jaccard(one.text, made[m].text) < LEAST for m in matched):
            merged += 1
    return Seen(found / copies, merged / len(made))


def run(*, quick: bool = False) -> list[Target]:
    """Measure with and without lists, print what they have, and return the targets."""
    folder = os.environ.get("NEARDUP_BENCH_DATA")
    source = Path(folder) / "docs.jsonl.gz" if folder else SAMPLES
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        texts = dict.fromkeys(json.loads(line)["text"] for line in lines)
    kept = list(islice((text for text in texts if text.strip()), 1_000 if quick else DOCUMENTS))
    Random(1).shuffle(kept)
    found = _framed(kept)
    _bare(kept)
    _costs(kept)
    return [Target("same text on another site", found, FOUND, at_least=True, form=".3f")]


def _framed(kept: list[str]) -> float:
    """Print what lists make of pages, and return the share of copies found with the default."""
    random = Random(2)
    sites, half = frames(random), len(kept) // 2
    sample = pages(kept[:half], copied=False, random=random, sites=sites)
    judged = pages(kept[half:], copied=True, random=random, sites=sites)
    framing = {line for site in sites for part in site for line in lines_of(part) if line}
    console.print(f"\n[bold]{len(judged):,} pages of {SITES} sites")
    console.print(f"{'share':>7}{'least':>7}{'lines':>7}{'no frame':>10}{'frames':>9}", end="")
    console.print(f"{'found':>9}{'merged':>9}")
    without = seen(judged, PLAIN)
    console.print(f"{'no list':>14}{'':26}{without.found:>9.1%}{without.merged:>9.2%}")
    results = {}
    for share, least in LISTS:
        listed = _learnt((one.page for one in sample), share, least)
        result = results[share, least] = seen(judged, Parameters(boilerplate=listed))
        part = len(listed & framing) / len(framing)
        console.print(
            f"{share:>7.2%}{least:>7}{len(listed):>7}{len(listed - framing):>10}{part:>9.1%}"
            f"{result.found:>9.1%}{result.merged:>9.2%}"
        )
    return results[DEFAULT].found


def _bare(kept: list[str]) -> None:
    """Print what lists make of texts without frames."""
    without = Index(PLAIN).add_many(enumerate(kept))
    console.print(f"\n[bold]The {len(kept):,} texts by themselves")
    console.print(f"{'share':>7}{'least':>7}{'lines':>7}{'more':>8}{'fewer':>8}{'merged':>9}")
    for share, least in LISTS:
        listed = _learnt(kept, share, least)
        hits = Index(Parameters(boilerplate=listed)).add_many(enumerate(kept))
        wrong = sum(
            all(exact_jaccard(kept[row], kept[int(hit.id)]) < LEAST for hit in hits[row])
            for row in map(int, hits)
        )
        console.print(
            f"{share:>7.2%}{least:>7}{len(listed):>7}{len(hits.keys() - without.keys()):>8}"
            f"{len(without.keys() - hits.keys()):>8}{wrong / len(kept):>9.2%}"
        )


def _costs(kept: list[str]) -> None:
    """Print how much more CPU time fingerprints take with the default list."""
    random = Random(2)
    sites = frames(random)
    framed = [one.page for one in pages(kept, copied=False, random=random, sites=sites)]
    listed = _learnt(framed, *DEFAULT)
    console.print(f"\n[bold]CPU time with a list of {len(listed)} lines, times that without")
    for name, texts in (("pages", framed), ("the texts by themselves", kept)):
        without, with_list = Fingerprinter(PLAIN), Fingerprinter(Parameters(boilerplate=listed))
        times = [(_seconds(without, texts), _seconds(with_list, texts)) for _ in range(5)]
        one, other = (min(column) for column in zip(*times, strict=True))
        console.print(f"{name:>28}{other / one:>7.2f}")


def _seconds(fingerprinter: Fingerprinter, texts: list[str]) -> float:
    began = time.process_time()
    fingerprinter.fingerprint(texts)
    return time.process_time() - began


def _learnt(texts: Iterable[str], share: float, least: int) -> frozenset[str]:
    learnt = repeated_lines(texts, PLAIN, share=share, least=least)
    return frozenset(one.line for one in learnt.lines)


if __name__ == "__main__":
    run()
