"""What ``--help`` shows of each command."""

import re
from collections.abc import Iterator

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from worker.cli.root import app


def commands(group: TyperGroup, *path: str) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)


ROOT = get_command(app)
assert isinstance(ROOT, TyperGroup)
COMMANDS = [" ".join(path) for path in commands(ROOT)]


def shown(path: str, columns: int) -> str:
    done = CliRunner().invoke(app, [*path.split(), "--help"], env={"COLUMNS": str(columns)})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("path", COMMANDS)
def test_no_word_of_a_help_is_lost(path: str) -> None:
    command = ROOT
    for name in path.split():
        assert isinstance(command, TyperGroup)
        command = command.commands[name]
    output = shown(path, 2_000)
    texts = [getattr(one, "help", None) or "" for one in command.params]
    for text in (*texts, *(command.help or "").split("\n\n")):
        assert " ".join(text.replace("\\[", "[").split()) in output


@pytest.mark.parametrize("path", COMMANDS)
def test_a_help_fits_and_has_no_types_of_python(path: str) -> None:
    output = shown(path, 80)
    assert not re.search(r"<[a-z]", output)
    assert max(map(len, output.splitlines())) <= 80


def test_the_extra_that_draws_is_named() -> None:
    assert "Needs neardup[plots]." in shown("evaluate", 200)
    assert "Needs neardup[plots]." in shown("tune", 200)
