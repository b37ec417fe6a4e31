"""The page about upgrades and the changelog name the versions of formats that the code has."""

from __future__ import annotations

import re

import pytest

from lsh._core import NORMALISER_VERSION, UNICODE_VERSION
from lsh.parameters import SCHEME_VERSION
from tests.support.command_line import ROOT
from worker.index import keyspace
from worker.index.snapshots import manifest
from worker.offline import state_versions
from worker.wire import codec

FRAMES = ", ".join(map(str, codec.VERSIONS.values()))


@pytest.mark.parametrize(
    ("what", "version"),
    [
        ("frames on", FRAMES),
        ("the store of a shard", keyspace.FORMAT_VERSION),
        ("manifests of snapshots", manifest.FORMAT_VERSION),
        ("the state of `dedupe --state`", state_versions.FORMAT_VERSION),
        ("fingerprints,", f"{SCHEME_VERSION}, {NORMALISER_VERSION}, {UNICODE_VERSION}"),
    ],
)
def test_the_page_about_upgrades_has_each_version(what: str, version: object) -> None:
    page = (ROOT / "docs" / "how-to" / "upgrade.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {re.escape(what)}.*?\| (.+?) \|", page, re.MULTILINE)
    assert row == str(version)


def test_the_changelog_has_the_versions_of_the_newest_formats() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^### Formats\n\n(.+?)\.\n\[Upgrade\]", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    stores = f"stores {keyspace.FORMAT_VERSION}, snapshots {manifest.FORMAT_VERSION}"
    assert found[1] == (
        f"Fingerprints {SCHEME_VERSION}, normaliser {NORMALISER_VERSION} (Unicode"
        f" {UNICODE_VERSION}), frames {FRAMES.replace(', ', ' and ')}, {stores}, state of `dedupe`"
        f" {state_versions.FORMAT_VERSION}"
    )
