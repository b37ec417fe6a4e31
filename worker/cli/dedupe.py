"""``neardup dedupe``: judge the documents in files without a broker."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Annotated

import typer

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import (
    DOCUMENTS,
    Config,
    Containment,
    Encoding,
    FileFormat,
    FollowLinks,
    IdField,
    TextField,
    Threshold,
)
from worker.cli.reading import Report, for_files, say
from worker.cli.run_groups import RunGroups
from worker.cli.screen import byte_progress
from worker.files.errors import of_file
from worker.files.inputs import Inputs
from worker.files.output import Output, format_of, writer_for
from worker.formats.choice import document_format
from worker.index.errors import HeaderMismatch
from worker.offline.filter import Counts, Line, OfflineFilter, Verdict
from worker.offline.state_versions import StateError, StateVersions
from worker.process.heap import collecting, limit, relax
from worker.settings.model import Settings
from worker.visible import counted


def dedupe(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="JSON Lines, CSV, Parquet, text, HTML, mail or WARC, also compressed; a directory,"
            " or a pattern in quotes. Each may be at an address (s3, gs, az, https, hf). Arguments"
            " are read in their order. Default, and -: standard input.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="Output: JSON Lines, or a table if it is named .csv, .tsv or .parquet. Default:"
            " standard output.",
        ),
    ] = None,
    unique_only: Annotated[
        bool,
        typer.Option(
            "--unique-only",
            help="Write the lines or rows of unique documents, unchanged, instead of verdicts.",
        ),
    ] = False,
    keep_columns: Annotated[
        bool,
        typer.Option(
            "--keep-columns",
            help="Write the rows of tables, with the verdicts in columns beside: of CSV to a .csv"
            " or .tsv, of Parquet to a .parquet.",
        ),
    ] = False,
    keep_formulas: Annotated[
        bool,
        typer.Option(
            "--keep-formulas",
            help="Write verdicts to a .csv or .tsv without the apostrophe that keeps spreadsheets"
            " from running a cell that begins with =, +, - or @.",
        ),
    ] = False,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups",
            help="Also name the group of each document: all that matches connect. The output is"
            " written when all documents are judged.",
        ),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep the index here, to compare with documents of earlier runs."
        ),
    ] = None,
    threshold: Threshold = None,
    containment: Containment = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="Forget documents after this time: 30d, 12h, 90m, 45s, 1d12h. Default: never.",
        ),
    ] = None,
    same_id: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="What happens when an id comes again. The document is judged like any other"
            " (duplicate), takes the place of the earlier one (replace), or counts as the same"
            " again (ignore). Default: duplicate.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with status 1 if a document was rejected.")
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option(metavar="P", help="Shards of the index; verdicts stay the same. Default: 1."),
    ] = None,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
    id_field: IdField = None,
    text_field: TextField = None,
    time_field: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Field with the time. Default: none; a document's time is that of the run.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="What that field holds: auto (ISO 8601, RFC 822, or a number that can only be"
            " seconds, ms, µs or ns since 1970), seconds, milliseconds, microseconds, nanoseconds,"
            " excel, or a pattern such as %Y%m%d. Default: auto.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
) -> None:
    """Judge the documents in files: unique, duplicate (and of what), or rejected (and why).

    A document is a line, a row, a mail, a record, or a file of text. It is a duplicate if it
    matches an earlier one. One without an id is FILE:LINE. The output is a JSON object per line.
    """
    _check_modes(unique_only=unique_only, keep_columns=keep_columns, groups=groups)
    if format_of(out) != "csv" and keep_formulas:
        raise CommandError("--keep-formulas: only if the output is named .csv or .tsv, with -o")
    settings, reading = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        similarity__containment=containment,
        index__shards=shards,
        index__window=window,
        index__same_id=same_id,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
        documents__time_field=time_field,
        documents__time_format=time_format,
    )
    with _reported(state), _raising_on_signals() as hold:
        limit()
        began = monotonic()
        documents = document_format(settings)
        with ExitStack() as stack:
            inputs = stack.enter_context(
                Inputs(files or [], settings.documents, replace(reading, state=state))
            )
            writer = writer_for(
                out,
                documents,
                inputs,
                unique_only=unique_only,
                keep_columns=keep_columns,
                keep_formulas=keep_formulas,
            )
            output = stack.enter_context(_output(out, inputs))
            work = None
            if state is not None:
                versions = stack.enter_context(StateVersions(state))
                work = stack.enter_context(versions.work(settings.documents))
            directory = work.path if work else stack.enter_context(_scratch(output))
            kept = None
            if groups:
                kept = stack.enter_context(RunGroups(documents, directory / "verdicts"))
            report = Report(settings, documents, inputs)
            stack.enter_context(_saying_warnings())
            relax()
            stack.enter_context(collecting())
            with OfflineFilter(settings, directory, work.offsets if work else None) as judge:
                with byte_progress(inputs.total, shown=_may_show(output)) as advance:
                    for chunk, verdicts in _judged(settings, inputs, judge, report, advance):
                        if kept is None:
                            output.write(writer.encode(chunk, verdicts))
                        else:
                            kept.add(chunk, verdicts)
                reached, report.counts.older = judge.reached(), judge.older
            if not report.too_many:
                for chunk, verdicts in kept.decided() if kept else ():
                    output.write(writer.encode(chunk, verdicts))
                hold()
                output.write(writer.end())
                output.commit()
                if work is not None:
                    work.commit(reached)
        _summarise(report.counts, monotonic() - began)
        report.finish(_unchanged(out, state))
        if strict and report.counts.rejected:
            sys.exit(EXIT_FAILED)


def _check_modes(*, unique_only: bool, keep_columns: bool, groups: bool) -> None:
    if groups and unique_only:
        raise CommandError("--groups and --unique-only: choose one")
    if keep_columns and unique_only:
        raise CommandError("--keep-columns and --unique-only: choose one")
    if keep_columns and groups:
        raise CommandError("--groups: can't be used with --keep-columns")


@contextmanager
def _reported(state: Path | None) -> Iterator[None]:
    """Say what stopped a run.

    The output and then the state change at the very end. If a run is killed in between, the
    next one writes the same output again (docs/adr/0008-offline-state.md).

    Raises:
        CommandError: the state can't be used, or a signal stopped the run.
        FileError: a file can't be read or written.
    """
    try:
        yield
    except _StoppedError as stopped:
        name = "interrupted" if stopped.number == signal.SIGINT else "terminated"
        raise CommandError(name, 128 + stopped.number) from None
    except StateError as error:
        raise CommandError(str(error)) from None
    except HeaderMismatch as error:
        raise CommandError(f"--state: {error}: set these, or name a new directory") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        whose = f"--state: {state}" if state else None
        raise of_file(error, error.filename2 or error.filename or whose) from None


def _output(out: Path | None, inputs: Inputs) -> Output:
    """Return the output, which must be none of the inputs."""
    if out is not None and inputs.has(out):
        raise CommandError(f"-o {out} is one of the inputs; name another file")
    output = Output(out)
    if inputs.has(output.file):
        output.close()
        raise CommandError("standard output is one of the inputs; name another file with -o")
    return output


def _judged(
    settings: Settings,
    inputs: Inputs,
    judge: OfflineFilter,
    report: Report,
    advance: Callable[[int, int], None],
) -> Iterator[tuple[Sequence[Line], Sequence[Verdict]]]:
    """Yield documents with their verdicts, unless too many of the first can't be read."""
    window = settings.limits.reject_window
    for chunk in inputs.chunks(settings.limits.record_bytes):
        report.look(chunk)
        before = report.counts.documents
        verdicts = judge.judge(chunk)
        report.add(chunk, verdicts)
        yield chunk, verdicts
        advance(inputs.position, report.counts.documents)
        if before < window <= report.counts.documents and report.too_many:
            break


@contextmanager
def _scratch(output: Output) -> Iterator[Path]:
    """Yield a directory for a temporary index: next to the output, where there is space."""
    beside = output.work_directory
    if beside is not None:
        beside.mkdir(mode=0o700)
        yield beside  # The output removes it.
        return
    with tempfile.TemporaryDirectory(prefix="neardup-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _may_show(output: Output) -> bool:
    """Return whether a progress bar would be visible and not disturb the output."""
    to_terminal = output.place is None and sys.stdout.isatty()
    return sys.stderr.isatty() and not to_terminal


class _StoppedError(BaseException):
    """A signal came. Not an Exception, so that no handler on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


@contextmanager
def _raising_on_signals() -> Iterator[Callable[[], None]]:
    """Raise `_StoppedError` on SIGINT and SIGTERM; yield a function that makes both ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def hold() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        hold()  # Nothing may interrupt the cleanup.
        raise _StoppedError(number)

    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield hold
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Saying(logging.Handler):
    """Says on standard error what a worker has in its log."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def _saying_warnings() -> Iterator[None]:
    """Say what the stages warn of."""
    log, handler = logging.getLogger("worker"), _Saying(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _summarise(counts: Counts, seconds: float) -> None:
    rate = counts.documents / seconds if seconds else 0.0
    say(
        f"{counted(counts.documents, 'document')} in {seconds:,.1f} s ({rate:,.0f}/s):"
        f" {counts.unique:,} unique, {counts.duplicate:,} duplicate, {counts.rejected:,} rejected"
        + (f"; {counts.deleted:,} deleted" if counts.deleted else "")
    )
    if counts.older:
        older = counted(counts.older, "document was", "documents were")
        say(f"{older} dated more than a window before now, and counted as of now")


def _unchanged(out: Path | None, state: Path | None) -> str:
    """Return what becomes of the output of a run in which too many can't be read."""
    given = (("-o", out), ("--state", state))
    kept = [f"{name} {path}" for name, path in given if path is not None]
    return f"; {' and '.join(kept)} {'is' if len(kept) == 1 else 'are'} unchanged" if kept else ""
