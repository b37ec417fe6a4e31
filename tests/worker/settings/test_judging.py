"""The file of lines to leave out: what it may be, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings


def settings_of(path: Path) -> Settings:
    return load(overrides={"similarity.boilerplate": str(path)})


def test_its_lines_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\xef\xbb\xbf# learnt\n12\tShare this\nAll rights reserved.\n")
    settings = settings_of(path)
    lines = {"Share this", "All rights reserved."}
    assert settings.parameters().boilerplate == lines
    path.unlink()  # A list that changes below a worker changes nothing before its next start.
    assert settings.parameters().boilerplate == lines
    other = settings.similarity.model_copy(update={"threshold": 0.9})
    assert other.boilerplate_lines == lines
    assert settings.topology(4).layout.parameters.boilerplate == lines
    assert load().parameters().boilerplate == frozenset()


REFUSED = {
    "is missing": (None, r"can't be read: No such file or directory"),
    "is not UTF-8": (b"\xe9\n", "must be UTF-8"),
    "is too large": (b"Share this\n" * 100_000, "must be at most 1,048,576 bytes"),
    "is empty": (b"# no line\n\n12\t\n", "has no line; leave the setting out for no list"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_list_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, message = REFUSED[name]
    path = tmp_path / "lines.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as refused:
        settings_of(path)
    assert str(refused.value).startswith(f"similarity.boilerplate: {path} ")
    assert "\n" not in str(refused.value)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read: Is a directory"):
        settings_of(tmp_path)
