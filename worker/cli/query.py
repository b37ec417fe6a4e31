"""``neardup query``: what a text or a document would match, asked of a server or a directory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from lsh import SWITCHES
from worker.cli.client import Client
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import DOCUMENTS, App, Config, IdField, Json, Server, TextField, is_file
from worker.cli.screen import line, print_json, screen, shown
from worker.closing import Closing
from worker.files.reading import KINDS, TEXTS, suffix_of
from worker.formats.unreadable import Unreadable
from worker.index.directory import stores_in
from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.index.keyspace import StoreHeader
from worker.index.read_only import ReadOnlyStore
from worker.index.store_reader import StoreReader
from worker.offline.filter import offline_settings
from worker.offline.state_versions import StateError, current_index, recorded_documents, section_of
from worker.serve.answers import Answer, Found, Met, Reply, encoded, rejected
from worker.serve.asking import Asker, Questions
from worker.serve.queries import PATH
from worker.settings.loading import load
from worker.settings.model import Settings
from worker.visible import counted, tell

T = TypeVar("T")

_MOST_BYTES = 64 << 20
_OF_SIMILARITY = ("threshold", "shingle", "shingle_size", "slots", "bands", "rows", *SWITCHES)
_NEVER = "none"
"""Of a window, and of a containment."""


def query(
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A text; - is standard input."),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="A file with one document, instead of a text: a .txt, .md, .html and the like"
            " is one text, all else JSON. - is standard input.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Ask this directory of `dedupe --state`. Its parameters are used."
        ),
    ] = None,
    server: Server = None,
    config: Config = None,
    app: App = None,
    as_json: Json = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json or text, whatever the file is named.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show what a text or a document would match, and why. Nothing is written."""
    if (text is None) == (file is None):
        raise CommandError("TEXT, --file: give one of them")
    if state is not None and server is not None:
        raise CommandError("--state and --server: choose one")
    kind = None if file is None else KINDS.get(suffix_of(file.name))
    documents = {
        "documents.format": format_ or ("text" if kind in TEXTS else None),
        "documents.id_field": id_field,
        "documents.text_fields": text_field or None,
    }
    if text is not None and is_file(text):
        tell(f"neardup: {text} is a file; --file asks about what is in it")
    if state is not None:
        reply = _reply_of_state(text, file, state, config, documents)
    else:
        settings = load(config, {"app": app, **documents})
        reply = _reply_of_server(text, file, Client.of(settings, server), settings)
    _print(reply, as_json=as_json)


def _content(text: str | None, file: Path | None) -> bytes:
    """Return the text, or the document in a file; ``-`` is standard input.

    Raises:
        CommandError: the file can't be read.
    """
    try:
        if text is not None and text != "-":
            return text.encode(errors="surrogateescape")
        if file is None or str(file) == "-":
            return sys.stdin.buffer.read(_MOST_BYTES)
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None


def _reply_of_state(
    text: str | None,
    file: Path | None,
    state: Path,
    config: Sequence[Path] | None,
    documents: Mapping[str, Any],
) -> Reply:
    """Return what a state directory answers, with the parameters that it was made with.

    Raises:
        CommandError: it can't be read.
    """
    try:
        with StateShards(state) as shards:
            settings = shards.settings(config, documents)
            questions, content = Questions(settings), _content(text, file)
            question = (
                questions.text(content.decode(errors="surrogateescape"))
                if file is None
                else questions.document(content)
            )
            if isinstance(question, Unreadable):
                answer = rejected(question)
            else:
                asker = Asker(settings.topology(1).layout, settings.rules())
                answer = asker.answers(shards, [question])[0]
            similarity = settings.similarity
            return Reply(
                similarity.threshold, shards.position, None, None, [answer], similarity.containment
            )
    except StateError as error:
        raise CommandError(str(error)) from None
    except StoreDamaged as error:
        raise CommandError(str(error), EXIT_FAILED) from None


def _reply_of_server(
    text: str | None, file: Path | None, server: Client, settings: Settings
) -> Reply:
    """Return what a server answers.

    Raises:
        CommandError: it can't be reached, isn't ready, or the text isn't UTF-8.
    """
    content = _content(text, file)
    if file is None or settings.documents.format == "text":
        try:
            body = json.dumps({"text": content.decode()}).encode()
        except UnicodeDecodeError:
            raise CommandError("invalid-utf8: the text is not UTF-8", EXIT_FAILED) from None
    else:
        body = b'{"document": %s}' % content
    return server.post(PATH, body, Reply)


def _print(reply: Reply, *, as_json: bool) -> None:
    """Print a reply with one answer.

    Raises:
        CommandError: the document can't be judged.
    """
    if len(reply.answers) != 1:
        raise CommandError(f"{len(reply.answers)} answers came for one question", EXIT_FAILED)
    (answer,) = reply.answers
    if answer.reason is not None:
        raise CommandError(f"it can't be judged: {answer.reason}", EXIT_FAILED)
    if as_json:
        print_json(json.loads(encoded(reply)))
    else:
        print_answer(reply, answer)


_SHOWN_BANDS = 8
_SHOWN_MATCHES = 20
_SHOWN_BUCKETS = 3


def print_answer(reply: Reply, answer: Answer) -> None:
    """Print the verdict, the matches, and why they are matches."""
    console = screen()
    console.print(_sentence(reply, answer))
    if answer.matches:
        console.print(_matches(answer.matches, contained=reply.containment is not None))
    console.print(_facts(reply, answer))


def _sentence(reply: Reply, answer: Answer) -> Text:
    count = len(answer.matches)
    least = f"threshold {reply.threshold:g}"
    if reply.containment is not None:
        least += f" or containment {reply.containment:g}"
    if answer.allowed_by:
        others = counted(count, "document matches", "documents match")
        rest = f"; {others} at {least}" if count else ""
        return line(("unique", "bold green"), f": allowed by {answer.allowed_by}{rest}")
    if not count:
        return line(("unique", "bold green"), f": nothing matches at {least}")
    said = counted(count, "document matches", "documents match")
    return line(("duplicate", "bold red"), f": {said} at {least}")


def _matches(matches: Sequence[Found], *, contained: bool) -> Table:
    more = ["containment"] if contained else []
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("match", overflow="fold")
    for name in ("similarity", *more, "sequence"):
        table.add_column(name, no_wrap=True)
    table.add_column("found in")
    for one in matches[:_SHOWN_MATCHES]:
        table.add_row(
            shown(one.id, "bold"),
            f"{one.similarity:.4f} ±{one.error:.4f}",
            *([_share(one)] if contained else []),
            str(one.sequence),
            _places(one),
        )
    if len(matches) > _SHOWN_MATCHES:
        table.add_row(f"and {len(matches) - _SHOWN_MATCHES} more")
    return table


def _share(one: Found) -> str:
    return "" if one.containment is None else f"{one.containment:.4f}"


def _places(one: Found) -> str:
    """Return where a match was found."""
    listed = ", ".join(map(str, one.bands[:_SHOWN_BANDS]))
    more = ", …" if len(one.bands) > _SHOWN_BANDS else ""
    bands = [f"{counted(len(one.bands), 'band')}: {listed}{more}"] if one.bands else []
    return "; ".join([*(["the same text"] if one.same_text else []), *bands])


def _facts(reply: Reply, answer: Answer) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if answer.first is not None:
        first = answer.first
        table.add_row("earliest match", shown(f"{first.id}, sequence {first.sequence}"))
    table.add_row("comparisons", f"{answer.compared:,}")
    table.add_row("buckets", _buckets(answer.buckets))
    table.add_row("index", _position(reply))
    return table


def _buckets(met: Sequence[Met]) -> str:
    """Return how large the buckets are that were met, the largest first."""
    if not met:
        return "none of its keys has one"
    largest = sorted(met, key=lambda one: -sum(one.sizes))[:_SHOWN_BUCKETS]
    sizes = ", ".join(f"{' + '.join(map(str, one.sizes))} ({_name(one)})" for one in largest)
    more = ", …" if len(met) > _SHOWN_BUCKETS else ""
    keys = counted(len(met), "of its keys has", "of its keys have")
    return f"{keys} one; the largest have so many entries: {sizes}{more}"


def _name(one: Met) -> str:
    return "text" if one.band is None else f"band {one.band}"


def _position(reply: Reply) -> str:
    said = f"at offset {reply.position} of its log"
    if reply.behind is None:
        return said
    checked = "" if reply.checked_seconds is None else f", as of {reply.checked_seconds:.1f} s ago"
    return f"{said}, {counted(reply.behind, 'record')} behind{checked}"


class StateShards(Closing):
    """The shards in a state directory, opened read-only, as they are when they are opened."""

    def __init__(self, home: Path) -> None:
        """Open the current index. A run may replace it meanwhile.

        Raises:
            StateError: the directory is no state of neardup.
            StoreDamaged: a shard is missing, or can't be read.
        """
        with ExitStack() as stack:
            path = current_index(home)
            stores = {
                shard: stack.enter_context(ReadOnlyStore(store))
                for shard, store in stores_in(path).items()
            }
            facts = {shard: store.facts() for shard, store in stores.items()}
            if not facts or set(facts) != set(range(int(facts[min(facts)].header["shards"]))):
                raise StoreDamaged(f"{path}: not all of its shards are there")
            self.header: StoreHeader = facts[0].header
            self.position = min(one.offset for one in facts.values())
            self._readers: Mapping[int, StoreReader] = {
                shard: store.reader() for shard, store in stores.items()
            }
            self._path = path
            self._documents = section_of(recorded_documents(home))
            self._open = stack.pop_all()

    def settings(self, files: Path | Sequence[Path] | None, more: Mapping[str, Any]) -> Settings:
        """Return settings with the parameters that the index was made with.

        Documents are read as the others were, unless ``more`` says otherwise. ``files`` have the
        rest, such as the seed.

        Raises:
            HeaderMismatch: it was made with something that no setting can be, or another seed.
            ConfigurationError: a setting is wrong.
        """
        header = self.header
        settings = offline_settings(
            files,
            {
                **{f"documents.{name}": value for name, value in self._documents.items()},
                **{name: value for name, value in more.items() if value is not None},
                **{f"similarity.{name}": header[name] for name in _OF_SIMILARITY},
                "similarity.containment": header.get("containment", _NEVER),
                "index.shards": header["shards"],
                "index.absorb": header["absorb"],
                "index.bucket_capacity": header["bucket_capacity"],
                "index.window": header.get("window", _NEVER),
                "index.future_allowance_seconds": _seconds(header.get("future_allowance_ms")),
            },
        )
        expected = settings.parameters().describe()
        different = [
            f"{name}: it has {header.get(name, 'none')}, the settings say"
            f" {expected.get(name, 'none')}"
            for name in [*expected, *({"boilerplate"} - expected.keys())]
            if header.get(name) != expected.get(name)
        ]
        if different:
            raise HeaderMismatch(
                f"{self._path} was made with other parameters ({'; '.join(different)})"
            )
        return settings

    def read(self, shard: int, ask: Callable[[StoreReader], T]) -> T:
        """Return what ``ask`` returns; see `Shards`."""
        return ask(self._readers[shard])

    def close(self) -> None:
        """Close the stores."""
        self._open.close()


def _seconds(milliseconds: str | float | None) -> float | None:
    return None if milliseconds is None else float(milliseconds) / 1_000
