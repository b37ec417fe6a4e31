"""``neardup topics acls``, which needs no Kafka."""

import json
import re

import pytest
import yaml

from tests.support.command_line import neardup


def test_the_table_names_the_topics_of_the_application() -> None:
    done = neardup("topics", "acls", "--app", "news", "--command", "feed")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.decode().splitlines() if line.strip()]
    assert lines[1:] == [["feed", "topic", "news.documents", "DescribeConfigs,", "Write"]]


def test_programs_get_each_right_by_itself() -> None:
    done = neardup("topics", "acls", "--app", "news", "--command", "watch", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    documents = [one for one in found if one["name"] == "news.documents"]
    assert [(one["operation"], bool(one["when"])) for one in documents] == [
        ("Describe", False),
        ("Read", True),
    ]
    for name in ("news.matches-", "news.g"):
        assert {one["pattern"] for one in found if one["name"] == name} == {"prefixed"}
    assert {one["command"] for one in found} == {"watch"}


def test_a_reindex_writes_to_the_topics_of_later_generations() -> None:
    done = neardup("topics", "acls", "--command", "reindex", "--json")
    assert done.returncode == 0, done.stderr
    later = {one["operation"] for one in json.loads(done.stdout) if one["name"] == "neardup.g"}
    assert {"Create", "Read", "Write", "Delete"} <= later


def test_a_worker_of_one_stage_gets_the_rights_of_that_stage() -> None:
    arguments = ("topics", "acls", "--command", "run", "--stages", "index")
    done = neardup(*arguments, "--principal", "User:index")
    lines = done.stdout.decode().splitlines()
    assert all("--allow-principal User:index" in line for line in lines)
    later = [line for line in lines if line.startswith("# after the first neardup reindex:")]
    assert any("--operation Write --topic neardup.g " in line for line in later)
    writes = [line for line in lines if "--operation Write" in line and line not in later]
    assert [line.partition(" --operation Write ")[2] for line in writes] == [
        "--topic neardup.matches- --resource-pattern-type prefixed",
        "--transactional-id neardup.index. --resource-pattern-type prefixed",
    ]


def test_a_user_of_strimzi_has_the_rights_of_all_commands_that_are_named() -> None:
    arguments = ("topics", "acls", "--app", "news", "--json", "--command")
    asked = [neardup(*arguments, command) for command in ("init", "run")]
    needed = {
        (one["name"], one["operation"], one["pattern"] == "prefixed")
        for done in asked
        for one in json.loads(done.stdout)
        if not one["when"]
    }
    done = neardup("topics", "acls", "--app", "news", "--command", "init,run", "--strimzi", "k/u")
    user = yaml.safe_load(done.stdout)
    assert user["kind"] == "KafkaUser"
    assert user["metadata"] == {"name": "u", "labels": {"strimzi.io/cluster": "k"}}
    rules = user["spec"]["authorization"]["acls"]
    given = {
        (rule["resource"]["name"], operation, rule["resource"]["patternType"] == "prefix")
        for rule in rules
        for operation in rule["operations"]
    }
    implied = {(name, "Describe", prefix) for name, _, prefix in given}
    assert given <= needed <= given | implied
    assert {rule["resource"]["type"] for rule in rules} == {"topic", "group", "transactionalId"}
    # What some cases need is there to be uncommented.
    commented = re.compile(r"^ {6}# (- \{|   operations)", re.MULTILINE)
    more = yaml.safe_load(commented.sub(r"      \1", done.stdout.decode()))
    assert len(more["spec"]["authorization"]["acls"]) > len(rules)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--command", "dedupe"), "--command: got 'dedupe', must be one of run, topics create"),
        (("--command", "run", "--principal", "worker"), "must be TYPE:NAME, such as User:worker"),
        (("--principal", "User:worker"), "--principal: needs --command"),
        (
            ("--command", "run", "--principal", "User:worker", "--json"),
            "--principal and --json: choose one",
        ),
        (("--command", "init,runs"), "--command: got 'runs', must be one of run, topics create"),
        (("--command", "run", "--strimzi", "worker"), "must be CLUSTER/USER"),
        (("--strimzi", "main/worker"), "--strimzi: needs --command"),
    ],
)
def test_wrong_options_end_with_one_line(arguments: tuple[str, ...], said: str) -> None:
    done = neardup("topics", "acls", *arguments)
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert said in line
