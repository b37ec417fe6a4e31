"""The reference of the settings is complete and current."""

from __future__ import annotations

from tests.support.command_line import ROOT
from tools import configuration

PAGE = ROOT / "docs" / "reference" / "configuration.md"


def test_the_reference_is_current() -> None:
    assert PAGE.read_text() == configuration.reference(), (
        f"run: python -m tools.configuration > {PAGE}"
    )


def test_every_setting_says_what_it_means() -> None:
    assert [setting.name for setting in configuration.settings() if not setting.meaning] == []
