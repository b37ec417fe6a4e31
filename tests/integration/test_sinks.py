"""What reads the outputs: Kafka Connect, as the documentation has it, and a second application."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from localkafka.broker import Kafka, wait_until
from localkafka.jars import CONNECT, jars, java
from localkafka.ports import free_ports
from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.audit import read_all
from tests.support.command_line import ROOT
from worker.bus import Outgoing, TopicPartition

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PAGE = (ROOT / "docs" / "how-to" / "sinks.md").read_text(encoding="utf-8")
SECONDS = 90.0
WORDS = [f"word{number}" for number in range(120)]
FIRST = " ".join(WORDS)
NEAR = " ".join([*WORDS[:-1], "another"])
FAR = " ".join([*WORDS[:-20], *(f"other{number}" for number in range(20))])
ELSE = " ".join(f"nothing{number}" for number in range(120))


def settings_in(name: str) -> dict[str, str]:
    """Return the properties that the page has for a file."""
    found = re.search(rf"In `{name}`:\n\n```properties\n(.+?)```", PAGE, re.DOTALL)
    assert found is not None, name
    lines = [line for line in found[1].splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def written(path: Path, properties: dict[str, str]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


@contextmanager
def connect(application: ApplicationUnderTest, directory: Path) -> Iterator[Path]:
    """Run a standalone worker with the page's settings; yield the file that it writes."""
    output = directory / "duplicates.jsonl"
    place = {
        "bootstrap.servers": application.kafka.bootstrap,
        "listeners": f"http://127.0.0.1:{next(free_ports(1))}",
        "offset.storage.file.filename": str(directory / "connect.offsets"),
        "plugin.path": str(next(jars(CONNECT).glob("connect-file-*.jar"))),
    }
    sink = {"topics": application.topology.duplicate, "file": str(output)}
    configuration = [
        written(directory / name, {**settings_in(name), **ours})
        for name, ours in (("worker.properties", place), ("duplicates.properties", sink))
    ]
    line = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars(CONNECT)}/*"]
    line += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    line += ["org.apache.kafka.connect.cli.ConnectStandalone", *configuration]
    log = directory / "connect.log"
    with log.open("wb") as said:
        running = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    application.track(running.pid)
    try:
        yield output
        assert running.poll() is None, log.read_text()
    except BaseException:
        print(log.read_text())  # noqa: T201 -- pytest shows it with the failure
        raise
    finally:
        running.terminate()
        running.wait(30)


def committed(application: ApplicationUnderTest, topic: str) -> dict[str, dict[str, object]]:
    """Return the documents that readers see on a topic, by their ids."""
    partitions = range(application.topology.layout.partitions)
    records = [
        record
        for partition in partitions
        for record in read_all(application.kafka.bootstrap, TopicPartition(topic, partition))
    ]
    documents = [json.loads(record.value) for record in records if record.value is not None]
    return {document["id"]: document for document in documents}


@pytest.mark.slow
def test_a_file_of_kafka_connect_has_each_duplicate_with_its_matches(
    launch: Launch, tmp_path: Path
) -> None:
    application: ApplicationUnderTest = launch()
    application.seat("alpha")
    texts = [("first", FIRST), *((f"copy{number}", FIRST) for number in range(20)), ("else", ELSE)]
    application.feed(application.documents(texts))
    gone = Outgoing(application.topology.documents, 1, b"copy1", None)
    application.feed([gone])
    with connect(application, tmp_path) as output:

        def lines() -> list[str]:
            return output.read_text().splitlines() if output.exists() else []

        wait_until(lambda: len(lines()) >= 20, SECONDS, "20 lines in the file")
        # A tombstone would be a line "null". A later document shows that it has been passed over.
        application.feed(application.documents([("last", FIRST)], 1))
        wait_until(lambda: len(lines()) >= 21, SECONDS, "the last document in the file")
        found = [json.loads(line) for line in lines()]
    assert {one["id"]: one for one in found} == committed(
        application, application.topology.duplicate
    )
    assert len(found) == 21
    assert all(one["duplicate_of"][0]["similarity"] == 1.0 for one in found)
    firsts = {one["duplicate_first"]["id"] for one in found}
    unique = committed(application, application.topology.unique)
    assert unique.keys() == {*firsts, "else"}


@pytest.mark.slow
def test_a_second_application_judges_what_the_first_one_found_unique(
    kafka: Kafka, launch: Launch, app_id: str
) -> None:
    with ExitStack() as stack:
        strict: ApplicationUnderTest = launch(settings={"similarity": {"threshold": 0.9}})
        loose = stack.enter_context(
            ApplicationUnderTest(
                kafka,
                f"{app_id}-loose",
                settings={
                    "topics": {"documents": strict.topology.unique},
                    "similarity": {"threshold": 0.6},
                },
            )
        )
        strict.seat("strict")
        loose.seat("loose")
        texts = [("first", FIRST), ("near", NEAR), ("far", FAR), ("else", ELSE)]
        for text in texts:  # One after the other, whatever their partitions.
            strict.feed(strict.documents([text]))

        def outcome() -> list[set[str]]:
            names = (strict.topology.duplicate, loose.topology.unique, loose.topology.duplicate)
            return [set(committed(loose, name)) for name in names]

        expected = [{"near"}, {"first", "else"}, {"far"}]
        wait_until(lambda: outcome() == expected, SECONDS, f"{expected}")
        [far] = committed(loose, loose.topology.duplicate).values()
        assert far["duplicate_first"] == {"id": "first", "sequence": 0}
        # The headers are those of the second one.
        place = TopicPartition(loose.topology.duplicate, 0)
        [record] = read_all(kafka.bootstrap, place)
        headers = dict(record.headers)
        assert headers["neardup-verdict"] == b"duplicate"
        source = headers["neardup-source"]
        assert source is not None
        assert source.startswith(f"{strict.topology.unique}-0-".encode())
