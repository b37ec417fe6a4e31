"""The reference of the command line, from the commands' own help; `make docs` puts it in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from worker.cli.root import LazyCommand, app

HEAD = """\
# Commands

Each command prints what is here with `--help`. The exit statuses are in
[Operate](../how-to/operate.md#exit-status). An option takes precedence over the
[setting](configuration.md) that it names.
"""


def commands() -> dict[str, TyperCommand]:
    """Return all commands by their names, as `topics create`."""
    return dict(within("", typer.main.get_command(app)))


def within(name: str, command: object) -> Iterator[tuple[str, TyperCommand]]:
    """Yield a command, or those of a group."""
    if isinstance(command, TyperGroup):
        for part, inner in command.commands.items():
            yield from within(f"{name} {part}".lstrip(), inner)
    elif isinstance(command, LazyCommand):
        yield name, command.load()


def reference() -> str:
    """Return the page, as Markdown."""
    parts = [HEAD.rstrip()]
    for name, command in commands().items():
        context = typer.Context(command, info_name=f"neardup {name}")
        parts += [f"## `neardup {name}`", plain(inspect.cleandoc(command.help or ""))]
        usage = " ".join(command.collect_usage_pieces(context))
        parts.append(f"```text\nneardup {name} {usage}\n```")
        if rows := [row for one in command.get_params(context) for row in rows_of(one, context)]:
            parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def rows_of(one: object, context: typer.Context) -> Iterator[str]:
    """Yield the row of an argument or an option that the help shows."""
    if isinstance(one, TyperArgument | TyperOption) and "--help" not in one.opts:
        record = one.get_help_record(context)
        if record is not None:
            names, meaning = (" ".join(text.split()).replace("|", "\\|") for text in record)
            yield f"| `{names}` | {plain(meaning)} |"


def plain(text: str) -> str:
    """Return a help text as Markdown."""
    return re.sub(r"([<*_])", r"\\\1", text.replace("\b", "").replace("\\[", "["))
