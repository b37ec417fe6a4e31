"""How well the earliest match tells groups: bundled samples, and a wave of variants."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rich.table import Table

from bench.report import Target, console
from bench.wave import variants
from worker.files.inputs import Inputs
from worker.formats.choice import document_format
from worker.offline.filter import OfflineFilter, offline_settings

SHARE_TO_REACH = 0.9
"""Of the samples' duplicates. The wave has no target: it shows the limit."""


class Judged(NamedTuple):
    """A document, the ids of its matches, and that of the earliest one, if any."""

    ident: str
    matches: list[str]
    first: str | None


class Groups(NamedTuple):
    """How many duplicates and connected components a sample has, and what their matches tell.

    ``right`` duplicates name the earliest document of their component. Of the pairs within a
    component, the share ``named`` names the same document, and the share ``followed`` comes to the
    same one if the named document is a duplicate and is followed to its own.
    """

    duplicates: int
    components: int
    right: int
    named: float
    followed: float


class _Named(msgspec.Struct):
    id: str


_matches = msgspec.json.Decoder(list[_Named])
_first = msgspec.json.Decoder(_Named)


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the target."""
    table = Table(title="documents are connected that match")
    columns = "sample", "duplicates", "components", "name the earliest", "pairs", "pairs, followed"
    for column in columns:
        table.add_column(column, justify="left" if column == "sample" else "right")
    found = []
    with as_file(files("worker") / "samples") as folder:
        for sample in sorted(folder.glob("*.jsonl.gz")):
            found.append(groups(judged(sample)))
            table.add_row(sample.name, *_cells(found[-1]))
    count = 500 if quick else 2_000
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as scratch:
        wave = Path(scratch) / "wave.jsonl"
        wave.write_bytes(b"\n".join(variants(count)))
        table.add_row(f"{count:,} variants", *_cells(groups(judged(wave))))
    console.print(table)
    right = sum(one.right for one in found) / sum(one.duplicates for one in found)
    what = "share that names the earliest of its component"
    return [Target(what, right, SHARE_TO_REACH, at_least=True, form=".3f")]


def _cells(found: Groups) -> Iterator[str]:
    return (f"{one:.2f}" if isinstance(one, float) else f"{one:,}" for one in found)


def judged(sample: Path) -> Iterator[Judged]:
    """Yield the documents of a file in its order."""
    settings = offline_settings()
    documents = document_format(settings)
    with (
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
        Inputs([sample], settings.documents) as inputs,
        closing(OfflineFilter(settings, Path(folder))) as judge,
    ):
        for chunk in inputs.chunks(settings.limits.record_bytes):
            for line, verdict in zip(chunk, judge.judge(chunk), strict=True):
                ident = (documents.identify(line.value) or line.key).decode()
                if verdict.kind == "duplicate":
                    matches = [match.id for match in _matches.decode(verdict.matches)]
                    yield Judged(ident, matches, _first.decode(verdict.first).id)
                else:
                    yield Judged(ident, [], None)


def groups(documents: Iterable[Judged]) -> Groups:
    """Compare the earliest matches of documents, which are in order, with connected components."""
    parents: dict[str, str] = {}
    place: dict[str, int] = {}
    firsts: dict[str, str] = {}
    for one in documents:
        place[one.ident] = len(place)
        if one.first is not None:
            firsts[one.ident] = one.first
        for match in one.matches:
            roots = {_root(parents, one.ident), _root(parents, match)}
            parents.update(dict.fromkeys(roots, min(roots, key=place.__getitem__)))
    earliest = {ident: _root(parents, ident) for ident in place}
    return Groups(
        len(firsts),
        len({earliest[ident] for ident in firsts}),
        sum(earliest[ident] == first for ident, first in firsts.items()),
        _recall({ident: firsts.get(ident, ident) for ident in place}, earliest),
        _recall({ident: _root(firsts, ident) for ident in place}, earliest),
    )


def _recall(groups: Mapping[str, str], components: Mapping[str, str]) -> float:
    """Return the share of the pairs within components that are in one group, too."""
    both = Counter((groups[ident], component) for ident, component in components.items())
    return _pairs(both) / max(1, _pairs(Counter(components.values())))


def _pairs(sizes: Counter[Any]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())


def _root(parents: dict[str, str], ident: str) -> str:
    while (parent := parents.get(ident, ident)) != ident:
        ident = parent
    return ident
