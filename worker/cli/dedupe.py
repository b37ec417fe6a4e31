"""``neardup dedupe``: judge the documents in files without a broker."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from types import FrameType

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.hints import Hints
from worker.cli.progress_bar import byte_progress
from worker.cli.rejects import finish, say
from worker.cli.run_groups import RunGroups
from worker.files.errors import of_file
from worker.files.inputs import Inputs
from worker.files.named_files import Argument
from worker.files.output import Output
from worker.files.reading import Reading
from worker.files.tables import VerdictWriter
from worker.files.verdicts import format_of, writer_for
from worker.formats.choice import document_format, watched_fields
from worker.formats.first_documents import TextWatch
from worker.index.errors import HeaderMismatch
from worker.offline.filter import Counts, Line, OfflineFilter, Verdict
from worker.offline.state_versions import StateError, StateVersions
from worker.process.heap import collecting, limit, relax
from worker.settings.model import Settings
from worker.visible import counted


@dataclass(frozen=True, slots=True)
class Job:
    """The inputs, the output and the mode of a run."""

    files: Sequence[Argument]
    reading: Reading
    out: Path | None = None
    unique_only: bool = False
    keep_columns: bool = False
    keep_formulas: bool = False
    groups: bool = False
    state: Path | None = None
    strict: bool = False


def run_job(job: Job, settings: Settings) -> None:
    """Judge all documents, and print a summary at the end.

    The output and then the state change at the very end. If a run is killed in between, the
    next one writes the same output again (docs/adr/0008-offline-state.md).

    Raises:
        CommandError: a file can't be read or written, more than ``limits.reject_share`` of the
            documents can't be read, or a signal stopped the run.
    """
    if job.keep_columns and job.groups:
        raise CommandError("--groups: can't be used with --keep-columns")
    if format_of(job.out) != "csv" and job.keep_formulas:
        raise CommandError("--keep-formulas: only if the output is named .csv or .tsv, with -o")
    try:
        with _raising_on_signals() as hold:
            _run(job, settings, hold)
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
        state = f"--state: {job.state}" if job.state else None
        raise of_file(error, error.filename2 or error.filename or state) from None


def _run(job: Job, settings: Settings, hold: Callable[[], None]) -> None:
    limit()
    began = monotonic()
    counts = Counts()
    limits = settings.limits
    documents = document_format(settings)
    with ExitStack() as stack:
        inputs = stack.enter_context(
            Inputs(job.files, settings.documents, replace(job.reading, state=job.state))
        )
        writer = writer_for(
            job.out,
            documents,
            inputs,
            unique_only=job.unique_only,
            keep_columns=job.keep_columns,
            keep_formulas=job.keep_formulas,
        )
        _refuse_overwriting(job.out, inputs)
        output = stack.enter_context(Output(job.out))
        if inputs.has(output.file):
            raise CommandError("standard output is one of the inputs; name another file with -o")
        work = None
        if job.state is not None:
            state = stack.enter_context(StateVersions(job.state))
            work = stack.enter_context(state.work(settings.documents))
            directory = work.path
        else:
            directory = stack.enter_context(_scratch(output))
        groups = None
        if job.groups:
            groups = stack.enter_context(RunGroups(documents, directory / "verdicts"))
        texts = TextWatch(settings.parameters())
        hints = Hints(documents, watched_fields(settings), inputs, say, texts=texts)
        stack.enter_context(_saying_warnings())
        relax()
        stack.enter_context(collecting())
        with OfflineFilter(settings, directory, work.offsets if work else None) as judge:
            with byte_progress(inputs.total, shown=_may_show(output)) as advance:
                for chunk in inputs.chunks(limits.record_bytes):
                    hints.look(chunk)
                    before = counts.documents
                    verdicts = judge.judge(chunk)
                    for line, verdict in zip(chunk, verdicts, strict=True):
                        counts.add(line, verdict)
                    _write(output, writer, groups, chunk, verdicts)
                    advance(inputs.position, counts.documents)
                    window_ends = before < limits.reject_window <= counts.documents
                    if window_ends and counts.too_many_rejected(limits.reject_share):
                        break
            reached, counts.older = judge.reached(), judge.older
        if not counts.too_many_rejected(limits.reject_share):
            _write_kept(output, writer, groups)
            hold()
            output.write(writer.end())
            output.commit()
            if work is not None:
                work.commit(reached)
    _summarise(counts, monotonic() - began)
    finish(counts, hints, settings, _after(job))
    if job.strict and counts.rejected:
        sys.exit(EXIT_FAILED)


def _refuse_overwriting(out: Path | None, inputs: Inputs) -> None:
    if out is not None and inputs.has(out):
        raise CommandError(f"-o {out} is one of the inputs; name another file")


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


def _write(
    output: Output,
    writer: VerdictWriter,
    groups: RunGroups | None,
    chunk: Sequence[Line],
    verdicts: Sequence[Verdict],
) -> None:
    """Write verdicts, or keep them until all groups are known."""
    if groups is None:
        output.write(writer.encode(chunk, verdicts))
    else:
        groups.add(chunk, verdicts)


def _write_kept(output: Output, writer: VerdictWriter, groups: RunGroups | None) -> None:
    """Write what was kept."""
    for chunk, verdicts in groups.decided() if groups is not None else ():
        output.write(writer.encode(chunk, verdicts))


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


def _after(job: Job) -> str:
    """Return what becomes of the output of a run in which too many can't be read."""
    given = (("-o", job.out), ("--state", job.state))
    kept = [f"{name} {path}" for name, path in given if path is not None]
    return f"; {' and '.join(kept)} {'is' if len(kept) == 1 else 'are'} unchanged" if kept else ""
