"""Compare verdicts with exact similarities, by corpus, threshold and seed, and with other filters.

    python -m bench.accuracy                                # the samples that neardup ships
    NEARDUP_ACCURACY_DATA=FOLDER python -m bench.accuracy   # each CORPUS/docs.jsonl.gz in FOLDER
    python -m bench.accuracy --slots 128 --threshold 0.5 --seeds 1

The tables are Markdown, with a row for each filter. *clear* are the documents with an earlier one
at J >= t + 0.05; *found* is the share of these that is a duplicate, *at t* that of the documents
with an earlier one at J >= t. *precision* is the share of published pairs at J >= t, *wrong* of
those at J < t - 0.1. Two numbers are the lowest and the highest of all seeds. *missed* are the
clear documents of all seeds together that were not found: estimated too low + without a band in
common + no longer in the index.

The code is that of ``neardup evaluate``. It runs once for each seed; the exact similarities are
computed once for each corpus. Other filters run once, with their own seed (`bench.accuracy_peers`).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.accuracy_peers import Judged, Peers
from bench.report import Target
from lsh import Choice
from lsh.exact import jaccard
from worker.cli.evaluate import judge
from worker.measuring.evaluation import (
    BELOW,
    CLEAR,
    Evaluation,
    Truth,
    clearly_above,
    evaluate,
    far_below,
)
from worker.offline.filter import offline_settings
from worker.settings.model import Settings

_SAMPLES = Path(__file__).parents[1] / "worker" / "samples"
_THRESHOLDS = (0.5, 0.7, 0.8, 0.9)
_KINDS = {"char": 5, "word": 3}
_SEEDS = 5
_RECALL, _WRONG = 0.99, 0.001


class Figures(NamedTuple):
    """What is compared: shares of documents found, and of published pairs."""

    clear: int
    found: float
    at_threshold: float
    precision: float
    wrong: float


class Plan(NamedTuple):
    """What to measure; ``slots`` is None if they follow from the threshold."""

    corpora: Sequence[Path]
    kinds: dict[str, int] = _KINDS
    thresholds: Sequence[float] = _THRESHOLDS
    seeds: int = _SEEDS
    slots: int | None = None
    alone: bool = False


def run(*, quick: bool) -> list[Target]:
    """Print all tables; return the targets for the worst corpus, threshold and seed."""
    if quick:
        return _measure(Plan(corpora()[-1:], {"char": 5}, (0.8,), 1))
    return _measure(Plan(corpora()))


def main() -> None:
    """Measure what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("corpora", nargs="*", help="names of corpora; default: all")
    parser.add_argument("--threshold", type=float, action="append")
    parser.add_argument("--kind", choices=_KINDS, action="append")
    parser.add_argument("--seeds", type=int, default=_SEEDS)
    parser.add_argument("--slots", type=int, help="default: follows from the threshold")
    parser.add_argument("--alone", action="store_true", help="leave other filters out")
    given = parser.parse_args()
    _measure(
        Plan(
            corpora(given.corpora),
            {kind: _KINDS[kind] for kind in given.kind or _KINDS},
            sorted(given.threshold or _THRESHOLDS),
            given.seeds,
            given.slots,
            given.alone,
        )
    )


_Plain = argparse.RawDescriptionHelpFormatter


def corpora(names: Sequence[str] = ()) -> list[Path]:
    """Return the files of the corpora with these names, or of all."""
    folder = os.environ.get("NEARDUP_ACCURACY_DATA")
    if folder is None:
        paths = sorted(_SAMPLES.glob("*.jsonl.gz"))
    else:
        paths = sorted(Path(folder).glob("*/docs.jsonl.gz"))
    return [path for path in paths if not names or named(path) in names]


def named(path: Path) -> str:
    """Return the name of the corpus in a file."""
    return path.parent.name if path.name == "docs.jsonl.gz" else path.name.partition(".")[0]


def seed_number(number: int) -> str | None:
    """Return a seed of this benchmark; number 0 is None, for the default."""
    return f"seed number {number:>4} of this benchmark" if number else None


def _measure(plan: Plan) -> list[Target]:
    """Print a table for each corpus and kind of shingle."""
    worst = [
        row for path in plan.corpora for kind in plan.kinds for row in _table(path, kind, plan)
    ]
    return [
        Target(
            f"accuracy: documents found at J >= t + {CLEAR:g}, the worst row",
            min(row.found for row in worst),
            _RECALL,
            at_least=True,
            form=".4f",
        ),
        Target(
            f"accuracy: published pairs at J < t - {BELOW:g}, the worst row",
            max(row.wrong for row in worst),
            _WRONG,
            at_least=False,
            form=".4f",
        ),
    ]


def _table(path: Path, kind: str, plan: Plan) -> list[Figures]:
    """Print the table of one corpus; return the worst seed of each threshold."""
    size = plan.kinds[kind]
    given = {"similarity.shingle": kind, "similarity.shingle_size": size}
    given |= {"similarity.slots": plan.slots} if plan.slots else {}
    first = _settings(given, plan.thresholds[0], 0)
    reading, judged = judge(first, [path])
    truth = reading.truth(plan.thresholds[0])
    del reading
    peers = None if plan.alone else Peers(path, first, truth.sets.sizes > 0)
    what = f"{size} {'characters' if kind == 'char' else 'words'}"
    print(f"\n### {named(path)}: {len(judged.duplicate):,} documents, {what}\n")
    print("| t | filter | slots, bands | clear | found | at t | precision | wrong | missed |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    worst = []
    for threshold in plan.thresholds:
        rows = []
        for seed in range(plan.seeds):
            settings = _settings(given, threshold, seed)
            again, judged = judge(settings, [path], exact=False)
            rows.append(evaluate(settings.parameters(), again, judged, truth))
        p = settings.parameters()
        figures = [_figures(row) for row in rows]
        missed = (sum(causes) for causes in zip(*(row.missed for row in rows), strict=True))
        columns = [f"{threshold:g}", "neardup", f"{p.slots}, {p.bands} x {p.rows}"]
        columns += [f"{rows[0].clear:,}", *_ranges(figures), " + ".join(map(str, missed))]
        print(f"| {' | '.join(columns)} |", flush=True)
        worst.append(_worst(figures))
        choice = Choice(p.slots, p.bands, p.rows)
        for other in peers.judge(threshold, choice) if peers is not None else ():
            columns = ["", other.name, other.parameters, ""]
            columns += [*_ranges([_figures_of_peer(other, truth, threshold)]), ""]
            print(f"| {' | '.join(columns)} |", flush=True)
    return worst


def _worst(rows: Sequence[Figures]) -> Figures:
    return Figures(
        clear=rows[0].clear,
        found=min(row.found for row in rows),
        at_threshold=min(row.at_threshold for row in rows),
        precision=min(row.precision for row in rows),
        wrong=max(row.wrong for row in rows),
    )


def _settings(given: dict[str, object], threshold: float, seed: int) -> Settings:
    own = {"similarity.seed": seed_number(seed), "similarity.threshold": threshold}
    return offline_settings(None, {**given, **own})


def _ranges(rows: Sequence[Figures]) -> Iterator[str]:
    """Yield each figure, the lowest and the highest of all seeds."""
    for name in ("found", "at_threshold", "precision", "wrong"):
        values = sorted(getattr(row, name) for row in rows)
        shown = list(dict.fromkeys(f"{value * 100:.2f}" for value in (values[0], values[-1])))
        yield " to ".join(shown) + " %"


def _figures(found: Evaluation) -> Figures:
    return Figures(
        found.clear,
        1.0 if found.recall is None else found.recall,
        found.found_at_threshold / max(found.at_threshold, 1),
        1.0 if found.precision is None else found.precision,
        found.wrong_pairs / max(found.pairs, 1),
    )


def _figures_of_peer(judged: Judged, truth: Truth, threshold: float) -> Figures:
    best = truth.nearest.similarity
    clear, right = best >= clearly_above(threshold), best >= threshold
    published = jaccard(truth.sets, judged.later, judged.earlier)
    return Figures(
        int(clear.sum()),
        float(judged.duplicate[clear].mean()) if clear.any() else 1.0,
        float(judged.duplicate[right].mean()) if right.any() else 1.0,
        float((published >= threshold).mean()) if len(published) else 1.0,
        float((published < far_below(threshold)).mean()) if len(published) else 0.0,
    )


if __name__ == "__main__":
    main()
