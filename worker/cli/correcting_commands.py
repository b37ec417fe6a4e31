"""The commands with which people correct verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.options import App, Bootstrap, Config, Json, Server, for_kafka, settings_of

Why = Annotated[
    str,
    typer.Option(
        metavar="REASON", help="The reason, noted with your name: at most 200 characters of it."
    ),
]


def allow(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; - is standard input.")
    ] = None,
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    ident: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Allow the text of the latest document with this id."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Allow the texts of a file: one a line, or in FILE.jsonl objects with text, and"
            " maybe id, exact and why.",
        ),
    ] = None,
    remove: Annotated[
        str | None,
        typer.Option(metavar="ALLOWANCE", help="Withdraw the allowance with this id."),
    ] = None,
    show: Annotated[
        bool,
        typer.Option(
            "--list", help="List what is allowed and who had what forgotten; asks a server."
        ),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Allow only the same text, once it is normalised."),
    ] = False,
    why: Why = "",
    server: Server = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Don't wait until every shard has read it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Allow texts: what is near to one is no duplicate from then on.

    The same text again replaces its allowance. With index.window, one holds for that long.
    """
    from worker.cli.allow import Wanted, show_corrections
    from worker.cli.allow import allow as body
    from worker.cli.client import Client
    from worker.cli.errors import CommandError
    from worker.cli.query import is_file

    if sum(one is not None for one in (text, ident, file, remove)) + show != 1:
        raise CommandError("TEXT, --id, --file, --remove, --list: give one of them")
    if text is not None and is_file(text):
        raise CommandError(f"{text} is a file; --file allows the texts in it")
    if show:
        show_corrections(Client.of(settings_of(config, None, app), server), as_json=as_json)
        return
    wanted = Wanted(text, ident, file, remove, exact, why)
    body(for_kafka(config, bootstrap, app), wanted, wait=not no_wait, as_json=as_json)


def forget(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID", help="The ids of the documents to forget, as they are published."
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP", help="Forget all documents of a group of `neardup campaigns`."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Forget what this text matches, as `neardup query` lists it.",
        ),
    ] = None,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Send the documents again, to be judged and published anew."),
    ] = False,
    why: Why = "",
    server: Server = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask before what --group or --text names.")
    ] = False,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Don't wait until every shard has forgotten them."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Have the index forget documents, and say when nothing is left of them.

    It sends a tombstone for each id: a record on the documents topic without a value, whose key
    is the one that has this id (documents.key). Your own producers may do the same.
    """
    from worker.cli.client import Client
    from worker.cli.errors import CommandError
    from worker.cli.forget import chosen
    from worker.cli.forget import forget as body

    if bool(ids) + (group is not None) + (text is not None) != 1:
        raise CommandError("ID, --group, --text: give one of them")
    if undo and not ids:
        raise CommandError("--undo takes ids")
    settings = for_kafka(config, bootstrap, app)
    wanted = ids or chosen(Client.of(settings, server), group, text, yes=yes)
    body(settings, wanted, why=why, undo=undo, wait=not no_wait, as_json=as_json)
