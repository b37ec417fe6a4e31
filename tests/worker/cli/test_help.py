"""What ``--help`` shows of each command."""

import re
from collections.abc import Iterator

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from worker.cli.root import LazyCommand, app

Command = TyperGroup | LazyCommand


def within(command: object, *path: str) -> Iterator[tuple[str, Command]]:
    assert isinstance(command, Command)
    yield " ".join(path), command
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from within(inner, *path, name)


COMMANDS = dict(within(get_command(app)))
LAZY = {name: found for name, found in COMMANDS.items() if isinstance(found, LazyCommand)}


def shown(path: str, columns: int) -> str:
    done = CliRunner().invoke(app, [*path.split(), "--help"], env={"COLUMNS": str(columns)})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("path", COMMANDS)
def test_no_word_of_a_help_is_lost(path: str) -> None:
    command = LAZY[path].load() if path in LAZY else COMMANDS[path]
    output = shown(path, 2_000)
    texts = [getattr(one, "help", None) or "" for one in command.params]
    for text in (*texts, *(command.help or "").split("\n\n")):
        assert " ".join(text.replace("\\[", "[").split()) in output


@pytest.mark.parametrize("name", LAZY)
def test_the_list_of_commands_has_the_first_line_of_each_docstring(name: str) -> None:
    about, _, _ = (LAZY[name].load().help or "").partition("\n\n")
    assert LAZY[name].help == about


@pytest.mark.parametrize("path", COMMANDS)
def test_a_help_fits_and_has_no_types_of_python(path: str) -> None:
    output = shown(path, 80)
    assert not re.search(r"<[a-z]", output)
    assert max(map(len, output.splitlines())) <= 80


def test_the_extra_that_draws_is_named() -> None:
    assert "Needs neardup[plots]." in shown("evaluate", 200)
    assert "Needs neardup[plots]." in shown("tune", 200)
