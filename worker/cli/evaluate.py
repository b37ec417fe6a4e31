"""``neardup evaluate``: verdicts compared with the exact similarity of all pairs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from lsh import Parameters
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import (
    Config,
    Containment,
    Encoding,
    FileFormat,
    Files,
    FollowLinks,
    IdField,
    Json,
    Picture,
    TextField,
    Threshold,
)
from worker.cli.reading import Report, for_files, labelled_pairs, numbered
from worker.cli.screen import byte_progress, print_json, screen, share_progress
from worker.files.inputs import Inputs
from worker.files.named_files import Argument
from worker.files.reading import Reading as ReadAs
from worker.formats.choice import document_format
from worker.measuring.evaluation import (
    Evaluation,
    Labelled,
    Reading,
    Run,
    clearly_above,
    evaluate_labels,
    far_below,
)
from worker.measuring.evaluation import (
    evaluate as compare,
)
from worker.measuring.pictures import draw_evaluation, drawable
from worker.offline.filter import OfflineFilter
from worker.settings.model import Settings
from worker.visible import counted


def evaluate(
    files: Files,
    *,
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs of ids that somebody calls duplicates: a line for each, separated by a"
            " tab.",
        ),
    ] = None,
    picture: Picture = None,
    threshold: Threshold = None,
    containment: Containment = None,
    as_json: Json = False,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Measure how right the filter is on your documents.

    Judge them as `neardup dedupe` does, compute the exact similarity of all pairs, and compare.
    """
    settings, read_as = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        similarity__containment=containment,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
    )
    if picture is not None:
        drawable(picture)
    labels = None if pairs is None else labelled_pairs(pairs)
    parameters = settings.parameters()
    reading, run = judge(settings, files, read_as)
    if run.rejected.all():
        raise CommandError("no document can be judged", EXIT_FAILED)
    with share_progress("comparing all pairs", shown=sys.stderr.isatty()) as advance:
        similarity = settings.similarity
        truth = reading.truth(
            similarity.threshold,
            advance,
            containment=similarity.containment,
            ratio=similarity.containment_ratio,
        )
    found = compare(parameters, reading, run, truth)
    labelled = None
    if labels is not None:
        labelled = evaluate_labels(numbered(labels, reading.numbers), run, truth)
    if picture is not None:
        draw_evaluation(picture, parameters, reading, truth, found)
    if as_json:
        print_json(_as_dict(parameters, found, labelled))
    else:
        _show(parameters, found, labelled)


def judge(
    settings: Settings,
    files: Sequence[Argument],
    read_as: ReadAs = ReadAs(),  # noqa: B008 -- frozen
    *,
    exact: bool = True,
) -> tuple[Reading, Run]:
    """Return the documents in files, and what the filter made of them.

    exact: keep what the truth about them needs.

    Raises:
        CommandError: a file can't be read, or too many documents can't.
    """
    documents = document_format(settings)
    reading = Reading(documents, settings.parameters(), exact=exact)
    with (
        Inputs(files, settings.documents, read_as) as inputs,
        tempfile.TemporaryDirectory(prefix="neardup-", ignore_cleanup_errors=True) as folder,
        OfflineFilter(settings, Path(folder)) as filter_,
        byte_progress(inputs.total, shown=sys.stderr.isatty()) as advance,
    ):
        report = Report(settings, documents, inputs)
        for chunk in inputs.chunks(settings.limits.record_bytes):
            report.look(chunk)
            verdicts = filter_.judge(chunk)
            reading.add(chunk, verdicts)
            report.add(chunk, verdicts)
            advance(inputs.position, report.counts.documents)
        run = reading.run(filter_.comparisons)
    report.finish()
    return reading, run


def _as_dict(
    parameters: Parameters, found: Evaluation, labelled: Labelled | None
) -> dict[str, object]:
    kept = ("shingle", "shingle_size", "slots", "bands", "rows")
    described = {name: getattr(parameters, name) for name in kept}
    labels = None if labelled is None else labelled.as_dict()
    return {**described, **found.as_dict(), "labelled": labels}


def _show(parameters: Parameters, found: Evaluation, labelled: Labelled | None) -> None:
    console = screen()
    kind = "characters" if parameters.shingle == "char" else "words"
    console.print(
        f"{counted(found.documents, 'document')}, threshold {found.threshold:g}, shingles of"
        f" {parameters.shingle_size} {kind}, {parameters.slots} slots, {parameters.bands} bands of"
        f" {parameters.rows}"
    )
    for line in _sentences(found):
        console.print(line)
    console.print(_found_table(found))
    console.print(_estimates_table(found))
    if labelled is not None:
        console.print(
            f"labelled pairs: {labelled.pairs:,}; the later document is a duplicate in"
            f" {_share(labelled.found, labelled.pairs)}, of the earlier one in"
            f" {_share(labelled.published, labelled.pairs)}"
        )
        console.print(_labelled_table(labelled))


def _sentences(found: Evaluation) -> list[str]:
    """Return what matters most, a line for each."""
    t, high, low = found.threshold, clearly_above(found.threshold), far_below(found.threshold)
    causes = found.missed
    clear = _share(found.found_clear, found.clear)
    all_ = _share(found.found_at_threshold, found.at_threshold)
    right, wrong = _share(found.right_pairs, found.pairs), _share(found.wrong_pairs, found.pairs)
    lines = [
        f"found: {clear} of the documents with an earlier one at {high:g} or above",
        f"found: {all_} of those at {t:g} or above",
    ]
    if (c := found.containment) is None:
        lines.append(f"published pairs: {right} at {t:g} or above, {wrong} below {low:g}")
    else:
        contained = _share(found.right_contained, found.contained_pairs)
        excerpts = _share(found.found_contained, found.contained)
        most = clearly_above(c)
        held = "the documents of which one at most containment_ratio times as long has"
        reached, missed = f"{t:g} or a containment of {c:g}", f"{low:g} and {far_below(c):g}"
        lines += [
            f"found: {excerpts} of {held} {most:g} or more",
            f"published pairs: {right} at {reached} or above, {wrong} below {missed}",
            f"published for a containment alone: {contained} at {c:g} or above",
            "the tables below go by similarity alone",
        ]
    mean = found.comparisons / found.documents
    lines.append(f"compared: {counted(found.comparisons, 'candidate')}, {mean:,.2f} for a document")
    if sum(causes):
        lines.append(
            f"missed at {high:g} or above: {causes.estimate:,} estimated below the"
            f" threshold, {causes.bands:,} without a band in common, {causes.gone:,} no longer in"
            " the index"
        )
    if found.rejected:
        lines.append(f"rejected, and left out here: {counted(found.rejected, 'document')}")
    return lines


def _found_table(found: Evaluation) -> Table:
    table = _table("nearest earlier document", "documents", "duplicate", "share", "predicted")
    for band in found.bands:
        label = _range(band.low, band.high) if band.low else f"none, or below {band.high:g}"
        share = f"{band.duplicates / band.documents:.2%}" if band.documents else "-"
        known = band.low and band.documents
        predicted = f"{band.predicted / band.documents:.2%}" if known else "-"
        table.add_row(label, f"{band.documents:,}", f"{band.duplicates:,}", share, predicted)
    return table


def _estimates_table(found: Evaluation) -> Table:
    table = _table("exact similarity", "pairs", "bias", "error", "expected error")
    for row in found.estimates:
        table.add_row(
            _range(row.low, row.high),
            f"{row.pairs:,}",
            f"{row.bias:+.4f}",
            f"{row.error:.4f}",
            f"{row.expected:.4f}",
        )
    return table


def _labelled_table(labelled: Labelled) -> Table:
    table = _table("labelled pairs, exact similarity", "pairs", "found", "share")
    for band in labelled.bands:
        share = f"{band.found / band.pairs:.2%}"
        label = f"{band.low:.1f} up to {band.high:.1f}"
        table.add_row(label, f"{band.pairs:,}", f"{band.found:,}", share)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _range(low: float, high: float) -> str:
    return "1 (equal)" if low == high else f"{low:.2f} up to {high:.2f}"


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" + (f" ({part / whole:.2%})" if whole else "")
