"""The table of rights, and the page about it."""

import re
from pathlib import Path

import pytest

from tools.rights import page
from worker.admin.acls import COMMANDS, Grant, grants, minimal, shell
from worker.settings.loading import load
from worker.topology import Topology

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "acls.md"


@pytest.fixture
def topology() -> Topology:
    return load(overrides={"app": "a"}).topology(2)


def rights(topology: Topology, command: str, *stages: str) -> set[str]:
    wanted = minimal(grants(topology, command, stages=stages, trim_log=False))
    return {f"{one.operation} {one.kind} {one.name}" for one in wanted}


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), f"run: python -m tools.rights > {PAGE}"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_right_is_listed_once(topology: Topology, command: str) -> None:
    found = [(one.kind, one.name, one.operation) for one in minimal(grants(topology, command))]
    assert len(found) == len(set(found)) > 0


def test_a_stage_writes_nothing_of_the_others(topology: Topology) -> None:
    writes = {
        stage: {r for r in rights(topology, "run", stage) if r.startswith("Write topic")}
        for stage in ("fingerprint", "index", "route")
    }
    assert writes == {
        "fingerprint": {
            "Write topic a.fingerprints",
            "Write topic a.g",
            "Write topic a.rejected",
        },
        "index": {"Write topic a.g", "Write topic a.matches-"},
        "route": {"Write topic a.unique", "Write topic a.duplicate", "Write topic a.rejected"},
    }


def test_nobody_may_write_to_the_seats(topology: Topology) -> None:
    for command in COMMANDS:
        assert not {r for r in rights(topology, command) if r == "Write topic a.shards"}


def test_deleting_is_for_a_worker_that_trims(topology: Topology) -> None:
    deletes = Grant("topic", "a.fingerprints", "Delete", role="index")
    assert deletes in grants(topology, "run", trim_log=True)
    assert deletes not in grants(topology, "run", trim_log=False)
    assert deletes not in grants(topology, "run", stages=["route"], trim_log=True)


def test_what_other_rights_include_is_left_out(topology: Topology) -> None:
    wanted = rights(topology, "redrive")
    assert "Read topic a.redrive" in wanted
    assert "Describe topic a.redrive" not in wanted
    # Describing the settings is included in neither.
    assert "DescribeConfigs topic a.redrive" in wanted


def test_commands_quote_what_a_shell_would_take_apart() -> None:
    wanted = [
        Grant("topic", "a;b", "Read", prefixed=True),
        Grant("topic", "a;b", "Write", prefixed=True),
        Grant("group", "g", "Read", when="with `--from`"),
    ]
    prefixed = "--resource-pattern-type prefixed"
    allow = "kafka-acls.sh --bootstrap-server ... --add --force --allow-principal 'User:CN=a b'"
    assert shell(wanted, "User:CN=a b") == [
        f"# with --from: {allow} --operation Read --group g",
        f"{allow} --operation Read --operation Write --topic 'a;b' {prefixed}",
    ]


def test_each_command_that_connects_is_on_the_page() -> None:
    titles = re.findall(r"^## `neardup (.+)`$", PAGE.read_text(), re.MULTILINE)
    assert titles == list(COMMANDS)
