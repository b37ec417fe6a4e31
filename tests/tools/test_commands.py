"""The page of commands has all that the commands' help has."""

from __future__ import annotations

import re

from tools.commands import commands, reference


def test_the_page_has_each_argument_and_option_of_a_command() -> None:
    sections = re.split(r"^## `neardup (.*)`$", reference(), flags=re.MULTILINE)
    pages = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert list(pages) == list(commands())
    assert "| `FILE` | JSON Lines, CSV, Parquet, text" in pages["dedupe"]
    assert "| `-o, --output OUT` | " in pages["dedupe"]
    assert "| `PARTITION` | Partition of the documents topic." in pages["skip"]
    assert "| `OFFSET` | " in pages["skip"]
