"""``neardup explain``: two documents side by side, and why they are near duplicates or not."""

from __future__ import annotations

import io
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from worker.bus import Record
from worker.cli.comparison import explained
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import (
    KAFKA,
    App,
    Bootstrap,
    Config,
    Containment,
    Encoding,
    FileFormat,
    FollowLinks,
    IdField,
    Json,
    TextField,
    Threshold,
    settings_of,
)
from worker.cli.screen import byte_progress
from worker.documents.lookup import Gone
from worker.documents.pair import Pair, Side, pair
from worker.files.encodings import by_mark, decoded
from worker.files.errors import DocumentFault, InputFault
from worker.files.inputs import Inputs
from worker.files.named_files import Argument
from worker.files.reading import Reading
from worker.files.remote import is_address, shown_address, stored
from worker.formats.base import DocumentFormat
from worker.formats.choice import line_format
from worker.formats.unreadable import Unreadable
from worker.offline.filter import Line
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.visible import counted

if TYPE_CHECKING:
    from worker.admin.cluster import Cluster
    from worker.admin.reindex.in_use import JudgedBy
    from worker.bus.ranges import Ranges

_LINES_HINT = "; for a file with a document on each line: --in FILE ID ID"


def explain(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="A B",
            help="Two files with one document each (- is standard input); or two ids, with --in or"
            " --kafka.",
        ),
    ],
    *,
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--in",
            metavar="FILE",
            help="A and B are ids in this file, or in this directory; may be repeated. A document"
            " without an id is FILE:LINE.",
        ),
    ] = None,
    kafka: Annotated[
        bool,
        typer.Option(
            "--kafka",
            help="A and B are ids on the topics unique and duplicate. Without B: the best match of"
            " A.",
            rich_help_panel=KAFKA,
        ),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="earliest|TIME",
            help="How far back to search. TIME is ISO 8601 (UTC) or an age. Default: 24h.",
            rich_help_panel=KAFKA,
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    app: App = None,
    config: Config = None,
    threshold: Threshold = None,
    containment: Containment = None,
    normal: Annotated[
        bool,
        typer.Option(
            "--normal", help="Compare the normal forms, of which the fingerprints are made."
        ),
    ] = False,
    as_json: Json = False,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show why two documents are near duplicates, or are not.

    Differences that don't count, such as case, are not marked. The settings decide what counts:
    with --kafka, those that the workers have recorded, otherwise those given here.
    """
    if kafka and within:
        raise CommandError("--in and --kafka: choose one")
    if kafka and encoding is not None:
        raise CommandError("--encoding: not with --kafka")
    if follow_links and not within:
        raise CommandError("--follow-links: only with --in")
    if not kafka and (since is not None or bootstrap is not None or app is not None):
        raise CommandError("--since, --bootstrap and --app: only with --kafka")
    if len(names) != 2 and not (kafka and len(names) == 1):  # noqa: PLR2004 -- a pair
        takes = "one or two ids" if kafka else "two ids" if within else "two files"
        raise CommandError(f"A B: got {len(names)}, takes {takes}")
    named: dict[str, Any] = {
        "bootstrap": bootstrap,
        "app": app,
        "documents__format": format_ if kafka else None,
        "documents__id_field": id_field,
        "documents__text_fields": text_field or None,
    }
    least: dict[str, Any] = {"threshold": threshold, "containment": containment}
    settings = settings_of(
        config, **named, **{f"similarity__{name}": one for name, one in least.items()}
    )
    recorded, rules, others = None, None, list[str]()
    reading = Reading.given(
        None if kafka else format_, encoding, settings.documents, follow_links=follow_links
    )
    if kafka:
        used, (left, right, recorded) = _published(
            settings_of(config, **named), names, since or "24h"
        )
        rules = used.rules
        others = [f"{one.name}: {one.recorded} there, {one.here} here" for one in used.others]
        given = {name: value for name, value in least.items() if value is not None}
        similarity = used.settings.similarity.model_copy(update=given)
        settings = used.settings.model_copy(update={"similarity": similarity})
    elif within:
        left, right = _documents_in(reading.offline(settings), within, reading, names)
    else:
        left, right = _whole_files(reading.offline(settings), reading, names)
    explained(
        settings.parameters(),
        left,
        right,
        recorded=recorded,
        rules=rules,
        others=others,
        normal=normal,
        as_json=as_json,
    )


def _published(settings: Settings, ids: Sequence[str], since: str) -> tuple[JudgedBy, Pair]:
    """Return two published documents, and what workers judge by; for one id, with its best match.

    Raises:
        CommandError: an id is not found, or the document has no match.
        ConfigurationError: a topic is missing, or ``since`` is wrong.
        BusError: the cluster doesn't answer.
    """
    from worker.admin.cluster import Cluster  # noqa: PLC0415 -- files need no client of Kafka
    from worker.admin.reindex.in_use import judged_by  # noqa: PLC0415 -- the same
    from worker.bus.kafka.bus import KafkaBus  # noqa: PLC0415 -- the same

    options = settings.kafka_options()
    cluster = Cluster(options)
    used = judged_by(cluster, settings)
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    named = settings.topology(1)
    topics = (named.unique, named.duplicate)
    ranges = _ranges(cluster, topics, since)
    progress = partial(byte_progress, shown=sys.stderr.isatty())
    with closing(KafkaBus(options).log_reader(f"{named.app}.explain", topics)) as reader:
        try:
            return used, pair(reader, ranges, used.settings, ids, progress)
        except Gone as why:
            raise CommandError(str(why), EXIT_FAILED) from None


def _ranges(cluster: Cluster, topics: Sequence[str], since: str) -> Ranges:
    """Return the offsets of some topics since a time.

    Raises:
        ConfigurationError: a topic is missing, or ``since`` is wrong.
        BusError: the cluster doesn't answer.
    """
    from worker.admin.starts import moment_of  # noqa: PLC0415 -- files need no client of Kafka

    _, known = cluster.counts()
    for topic in topics:
        if topic not in known:
            raise ConfigurationError(f"there is no topic {topic}; run `neardup topics create`")
    counts = {topic: known[topic][0] for topic in topics}
    ranges = cluster.ranges(counts)
    if since == "earliest":
        return ranges
    moment = moment_of(since, datetime.now(UTC))
    if moment is None:
        raise ConfigurationError(
            f"--since: got {since!r}, must be earliest, an ISO 8601 time (2026-01-31T12:00:00Z),"
            " or an age (90m, 24h, 7d)"
        )
    at = cluster.at_time(counts, int(moment.timestamp() * 1000))
    return {
        partition: (max(low, high if (begin := at[partition]) is None else begin), high)
        for partition, (low, high) in ranges.items()
    }


def _whole_files(settings: Settings, reading: Reading, names: Sequence[str]) -> list[Side]:
    """Return the documents in files, one in each; ``-`` is standard input.

    Raises:
        CommandError: a file can't be read, or its document can't be judged.
    """
    if names.count("-") > 1:
        raise CommandError("-: standard input has one document")
    documents = line_format(settings)
    return [_whole(settings, documents, reading, name) for name in names]


def _shown(name: str) -> str:
    """Return what a file is called in messages, and as an id."""
    return "stdin" if name == "-" else shown_address(name) if is_address(name) else name


def _whole(settings: Settings, documents: DocumentFormat, reading: Reading, name: str) -> Side:
    """Return the document that a file is. JSON may have line ends."""
    most, shown = settings.limits.record_bytes, _shown(name)
    if reading.kind(name) == "json":
        data = _content(name, most)
        if len(data) > most:
            raise CommandError(
                f"{shown}: more than limits.record_bytes ({most}) bytes", EXIT_FAILED
            )
        line = Line(shown.encode(errors="backslashreplace"), _in_utf8(data, reading), len(data))
        line = line._replace(size=len(line.raw))
        try:
            return _side(documents, line)
        except CommandError as error:
            hint = _LINES_HINT if data.strip().count(b"\n") else ""
            raise CommandError(f"{error}{hint}", EXIT_FAILED) from None
    with Inputs([name], settings.documents, reading) as inputs:
        found = [line for chunk in inputs.chunks(most, lines=2) for line in chunk]
    if len(found) != 1:
        raise CommandError(
            f"{shown}: has {counted(len(found), 'document')}{_LINES_HINT}", EXIT_FAILED
        )
    side = _side(documents, found[0])
    return side if name == "-" else side._replace(id=shown)


def _in_utf8(data: bytes, reading: Reading) -> bytes:
    encoding = reading.encoding or by_mark(data)
    if encoding is None:
        return data
    try:
        return decoded(data, encoding).encode()
    except DocumentFault:
        return data  # It can't be judged, and why is said of it.


def _content(name: str, most: int) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(most + 1)
        if is_address(name):
            [remote], _, _ = stored(name)
            with io.BufferedReader(cast("io.RawIOBase", remote.open(seekable=False))) as file:
                return file.read(most + 1)
        with Path(name).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except InputFault as fault:
        raise CommandError(f"{_shown(name)}: {fault}") from None


def _documents_in(
    settings: Settings, files: Sequence[Argument], reading: Reading, ids: Sequence[str]
) -> list[Side]:
    """Return the first documents with these ids in files, in the order of the ids.

    If the same id is given twice, its first two documents.

    Raises:
        CommandError: a file can't be read, an id is not there, or a document can't be judged.
    """
    documents = line_format(settings)
    missing = Counter(ids)
    found: dict[str, list[Side]] = {ident: [] for ident in ids}
    done = 0
    with (
        Inputs(files, settings.documents, reading) as inputs,
        byte_progress(inputs.total, shown=sys.stderr.isatty()) as advance,
    ):
        for chunk in inputs.chunks(settings.limits.record_bytes):
            for line in chunk:
                value = line.value if line.complete else b""
                ident = (documents.identify(value, line.key) or line.key).decode()
                if missing[ident]:
                    missing[ident] -= 1
                    found[ident].append(_side(documents, line))
            if not missing.total():
                break
            done += len(chunk)
            advance(inputs.position, done)
    for ident, number in missing.items():
        if number:
            again = " twice" if found[ident] else ""
            raise CommandError(f"{ident!r} is not in these files{again}", EXIT_FAILED)
    return [found[ident].pop(0) for ident in ids]


def _side(documents: DocumentFormat, line: Line) -> Side:
    key = line.key.decode()
    if not line.complete:
        raise CommandError(f"{key} can't be judged: {line.reason}", EXIT_FAILED)
    try:
        document = documents.read(Record("", 0, 0, -1, line.key, line.value))
    except Unreadable as error:
        raise CommandError(f"{key} can't be judged: {error}", EXIT_FAILED) from None
    return Side(document.id.decode(), document.text)
