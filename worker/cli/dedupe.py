"""``neardup dedupe``: judges the lines of files, with no broker."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import FrameType

import msgspec

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.jsonlines import Inputs, is_same_file
from worker.cli.output import Output
from worker.cli.progress import byte_progress
from worker.cli.verdict_lines import UniqueLines, VerdictLines
from worker.collector import relax
from worker.offline import Counts, Generations, OfflineFilter, StateError
from worker.settings import Settings

__all__ = ["Job", "run_job"]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done."""

    files: Sequence[Path]
    out: Path | None = None
    unique_only: bool = False
    state: Path | None = None
    strict: bool = False


def run_job(job: Job, settings: Settings) -> None:
    """Judge all lines, and say at the end what came out.

    Output and state change at the very end, in this order: a run that is killed between
    has written what the next one will write again (docs/adr/0008-offline-state.md).

    Raises:
        CommandError: something can't be read or written; or a signal came.
    """
    try:
        with _raising_on_signals() as hold:
            _run(job, settings, hold)
    except _StoppedError as stopped:
        name = "interrupted" if stopped.number == signal.SIGINT else "terminated"
        raise CommandError(name, 128 + stopped.number) from None
    except StateError as error:
        raise CommandError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise CommandError(f"{where}{error.strerror or error}") from None


def _run(job: Job, settings: Settings, hold: Callable[[], None]) -> None:
    began = monotonic()
    counts = Counts()
    first: bytes | None = None
    with ExitStack() as stack:
        inputs = stack.enter_context(Inputs(job.files))
        _refuse_overwriting(job.out, inputs)
        output = stack.enter_context(Output(job.out))
        if any(is_same_file(source, output.file) for source in inputs.handles()):
            raise CommandError("standard output is one of the inputs; name another file with -o")
        work = None
        if job.state is not None:
            work = stack.enter_context(stack.enter_context(Generations(job.state)).work())
            directory = work.path
        else:
            directory = stack.enter_context(_scratch(output))
        documents = settings.documents
        lines = (
            UniqueLines() if job.unique_only else VerdictLines(documents.format, documents.id_field)
        )
        relax()
        with OfflineFilter(settings, directory, work.offsets if work else None) as judge:
            with byte_progress(inputs.total, shown=_may_show(output)) as advance:
                for chunk in inputs.chunks(settings.limits.record_bytes):
                    first = first or chunk[0].value
                    verdicts = judge.judge(chunk)
                    for verdict in verdicts:
                        counts.add(verdict)
                    output.write(lines.encode(chunk, verdicts))
                    advance(inputs.position, counts.documents)
            reached = judge.reached()
        hold()
        output.commit()
        if work is not None:
            work.commit(reached)
    _tell(counts, monotonic() - began, first)
    if job.strict and counts.rejected:
        sys.exit(EXIT_FAILED)


def _refuse_overwriting(out: Path | None, inputs: Inputs) -> None:
    if out is not None and any(is_same_file(source, out) for source in inputs.handles()):
        raise CommandError(f"-o {out} is one of the inputs; name another file")


@contextmanager
def _scratch(output: Output) -> Iterator[Path]:
    """Give a directory for an index that isn't kept: beside the output, where there is room."""
    beside = output.work_directory
    if beside is not None:
        beside.mkdir()
        yield beside  # removed by the output
        return
    with tempfile.TemporaryDirectory(prefix="neardup-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _may_show(output: Output) -> bool:
    """Tell whether a progress bar would be seen, and disturb nothing."""
    to_terminal = output.place is None and sys.stdout.isatty()
    return sys.stderr.isatty() and not to_terminal


class _StoppedError(BaseException):
    """A signal came. Not an Exception: nothing on the way may take it for a failure."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


@contextmanager
def _raising_on_signals() -> Iterator[Callable[[], None]]:
    """Raise where SIGINT or SIGTERM finds the program; what is given holds them off."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def hold() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        hold()  # cleaning up must come to its end
        raise _StoppedError(number)

    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield hold
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(counts: Counts, seconds: float, first: bytes | None) -> None:
    rate = counts.documents / seconds if seconds else 0.0
    _say(
        f"{counts.documents:,} documents in {seconds:,.1f} s ({rate:,.0f}/s):"
        f" {counts.unique:,} unique, {counts.duplicate:,} duplicate, {counts.rejected:,} rejected"
    )
    if counts.reasons:
        listed = ", ".join(f"{code} {count:,}" for code, count in counts.reasons.most_common())
        _say(f"rejected: {listed}")
    if counts.rejected * 2 > counts.documents and first is not None:
        _say(_hint(first))


def _hint(first: bytes) -> str:
    """Say what could be the matter when most documents can't be read."""
    try:
        found = msgspec.json.decode(first)
    except (ValueError, RecursionError):
        return "the first document is no JSON; one text a line takes --format text"
    if not isinstance(found, dict):
        return "the first document is no JSON object; one text a line takes --format text"
    names = ", ".join(repr(name) for name in list(found)[:12]) or "no fields"
    return f"the first document has {names}; --text-field and --id-field say which to take"


def _say(line: str) -> None:
    print(f"neardup: {line}", file=sys.stderr)  # noqa: T201 -- the summary
